"""The ledger records what happened, and the page shows its records."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.model.days import utc_today
from tests.drills.ledger import FAULTS, Drill, Ledger, StoredResult

DAY = date(2026, 1, 31)
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_ROW = re.compile(r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \| \d{4}-\d\d-\d\d \|$", re.MULTILINE)


def outcome(*amounts: int) -> StoredResult:
    """Return a result whose rows have these amounts."""
    return StoredResult(pa.table({"amount": pa.array(amounts, pa.int64())}), b"")


def test_rows_that_are_lost_doubled_or_different_are_counted() -> None:
    """A different row counts as one missing and one too many; the order does not matter."""
    assert outcome(1, 2, 2).differing_rows(outcome(2, 1, 2)) == 0
    assert outcome(1, 2).differing_rows(outcome(1)) == 1
    assert outcome(1).differing_rows(outcome(1, 1)) == 1
    assert outcome(1).differing_rows(outcome(2)) == 2


def test_a_try_that_raises_is_not_survived() -> None:
    """A try that raises counts as a try, and the error propagates."""
    ledger = Ledger()
    with pytest.raises(ZeroDivisionError), ledger.drill("clock put back"):
        raise ZeroDivisionError
    with ledger.drill("clock put back"):
        pass
    assert ledger.drills == {"clock put back": Drill(tries=2, survived=1)}


def test_ledgers_of_several_sessions_are_one() -> None:
    """Counts of several sessions are added for each fault."""
    ledger = Ledger({"clock put back": Drill(1, 1, 0)})
    ledger.add({"clock put back": {"tries": 2, "survived": 1, "lost_rows": 3}, "facts file missing": {"tries": 1}})
    assert ledger.rows(DAY) == {
        "clock put back": "| clock put back | 3 | 2 | 3 | 2026-01-31 |",
        "facts file missing": "| facts file missing | 1 | 0 | 0 | 2026-01-31 |",
    }


def test_what_was_not_drilled_again_stays_in_the_table() -> None:
    """A fault that was not drilled again keeps its line and date, in the order of the faults."""
    before = "| clock put back | 3 | 3 | 0 | 2026-01-31 |\n| facts file missing | 9 | 9 | 0 | 2026-01-31 |"
    table = Ledger({"facts file missing": Drill(1, 1, 0)}).table(before)[2:]
    assert table == [f"| facts file missing | 1 | 1 | 0 | {utc_today()} |", before.partition("\n")[0]]


def test_the_page_shows_every_fault_survived() -> None:
    """The table has every drilled fault, every try was survived, and no row was lost."""
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert tuple(fault for fault, *_ in rows) == FAULTS
    assert [fault for fault, tries, survived, lost in rows if tries != survived or lost != "0" or tries == "0"] == []


def test_a_page_is_written_in_its_place(tmp_path: Path) -> None:
    """Writing the table keeps the text around it."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- drills -->\nold\n<!-- end of drills -->\nafter\n")
    Ledger({"clock put back": Drill(1, 1, 0)}).write(page)
    text = page.read_text()
    assert text.startswith("before\n<!-- drills -->\n\nMade by `make drill`, ")
    assert text.endswith(f"| clock put back | 1 | 1 | 0 | {utc_today()} |\n\n<!-- end of drills -->\nafter\n")
