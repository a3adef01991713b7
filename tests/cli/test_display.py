"""Tables and lines."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from chargeback.cli.display import print_days, print_findings, print_problems, print_results
from chargeback.ecosystems.contract import Finding
from chargeback.errors import Problem
from chargeback.pipeline.events import Outcome, RunResult
from chargeback.pipeline.verify import DayCheck


def test_problems_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is a line of its own, with its path, and they are counted."""
    print_problems([Problem("a.b", "should be c"), Problem("", "there is no tenant x")])
    assert capsys.readouterr().err.splitlines() == [
        "error: a.b: should be c",
        "error: there is no tenant x",
        "2 problems in the configuration; nothing was started.",
    ]


def test_results_and_their_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """A run is a line of counts; its errors go to standard error with the tenant."""
    partial = Outcome.COMPLETED_WITH_ERRORS
    print_results([RunResult("acme", partial, 3, 1, 2, 1234, ("2026-01-02: a date failed [x]",))])
    said = capsys.readouterr()
    line = next(line for line in said.out.splitlines() if line.startswith(" acme"))
    assert line.split() == ["acme", "completed", "with", "errors", "3", "2", "1", "1,234"]
    assert said.err == "error: tenant acme: 2026-01-02: a date failed [x]\n"


def test_a_pending_day_is_not_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Only a difference in a calculated day counts."""
    day, one, none = date(2026, 1, 2), Decimal("1.5"), Decimal(0)
    assert print_days("acme", [DayCheck(day, one, none, "pending"), DayCheck(day, one, one, "calculated")])
    assert not print_days("acme", [DayCheck(day, one, Decimal("1.500000000001"), "calculated")])
    said = capsys.readouterr()
    assert "0.000000000001" in said.out
    assert said.err == "error: tenant acme: 1 of 1 days differ from their bill\n"


def test_findings_tell_whether_all_works(capsys: pytest.CaptureFixture[str]) -> None:
    """One thing that does not work is enough; a warning works, and is shown as one."""
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
