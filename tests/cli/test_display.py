"""Tables and lines."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

import pytest

from chargeback.cli.display import print_days, print_findings, print_problems, print_results
from chargeback.ecosystems.contract import Finding
from chargeback.errors import ConfigProblem
from chargeback.pipeline.run_messages import RunOutcome, RunResult
from chargeback.recompute.verify import DayCheck


def test_problems_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is a line with its path, and problems are counted."""
    print_problems([ConfigProblem("a.b", "should be c"), ConfigProblem("", "there is no tenant x")])
    assert capsys.readouterr().err.splitlines() == [
        "error: a.b: should be c",
        "error: there is no tenant x",
        "2 problems in the configuration; nothing was started.",
    ]


def test_results_and_their_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """A run is printed as a line of counts; its errors go to standard error with the tenant."""
    partial = RunOutcome.COMPLETED_WITH_ERRORS
    print_results(
        [
            RunResult(
                "acme",
                partial,
                ("2026-01-02: a date failed [x]",),
                dates_gathered=3,
                dates_pending=1,
                dates_calculated=2,
                chargeback_rows_written=1234,
            )
        ]
    )
    said = capsys.readouterr()
    line = next(line for line in said.out.splitlines() if line.startswith(" acme"))
    assert line.split() == ["acme", "completed", "with", "errors", "3", "1", "2", "1,234"]
    assert re.search("days gathered +days due +days calculated +rows", said.out)
    assert "pending" not in said.out
    assert said.err == "error: tenant acme: 2026-01-02: a date failed [x]\n"


def test_a_pending_day_is_not_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Only differences of calculated days are errors."""
    day, one, none = date(2026, 1, 2), Decimal("1.5"), Decimal(0)
    assert print_days("acme", [DayCheck(day, one, none, "pending"), DayCheck(day, one, one, "calculated")])
    assert not print_days("acme", [DayCheck(day, one, Decimal("1.500000000001"), "calculated")])
    said = capsys.readouterr()
    assert "0.000000000001" in said.out
    assert said.err == "error: tenant acme: 1 of 1 days differ from their bill\n"


@pytest.mark.parametrize("days", [[], [DayCheck(date(2026, 1, 2), Decimal("1.5"), Decimal(0), "pending")]])
def test_nothing_to_compare_is_no_success(days: list[DayCheck], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a calculated day there is no error, and the output does not claim that every day sums to its bill."""
    assert print_days("acme", days)
    said = capsys.readouterr().out
    assert "there is nothing to compare" in said
    assert "sums exactly to its bill" not in said


def test_days_that_lack_something_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Days with the same missing evidence are one line; they are not errors."""
    one, away, half = Decimal(1), "metrics: HTTP 503", "bill: STORAGE: measured at 720 of 1440 steps"
    reasons = [(1, (away, half)), (2, ()), (3, (away,))]
    checks = [DayCheck(date(2026, 1, day), one, one, "calculated", incomplete=lacks) for day, lacks in reasons]
    assert print_days("acme", checks)
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")] == [
        f"note: tenant acme: 2 days, 2026-01-01 to 2026-01-03: incomplete evidence: {away}",
        f"note: tenant acme: 2026-01-01: incomplete evidence: {half}",
    ]


def test_findings_tell_whether_all_works(capsys: pytest.CaptureFixture[str]) -> None:
    """A single failure makes the result negative; a warning does not, and is marked."""
    costs = Finding("costs", ok=True, detail="3 days")
    doubted = Finding("region", ok=True, detail="no statements", warning=True)
    assert print_findings("acme", [costs, doubted])
    assert capsys.readouterr().out.splitlines() == [
        "tenant acme",
        "  ok       costs                     3 days",
        "  warning  region                    no statements",
    ]
    assert not print_findings("acme", [costs, doubted, Finding("metrics", ok=False, detail="refused [401]")])
    assert "FAILED   metrics                   refused [401]" in capsys.readouterr().out
