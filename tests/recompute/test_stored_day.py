"""A stored day as of one of its revisions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.model.run_request import RunRequest
from chargeback.recompute.stored_day import LineNotFound, LineRows, StoredDay, first, where
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant whose only day was billed 100, and an hour later 120."""
    with Laboratory(tmp_path) as opened:
        opened.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 3, ("lkc-1", "sa-b"): 1}}
        for cost, hours in (("100", 0), ("120", 1)):
            opened.sources.lines[DAY] = [line(cost)]
            opened.clock = FixedClock(NOW + timedelta(hours=hours))
            opened.run(RunRequest())
        yield opened


def test_rows_evidence_and_amounts(laboratory: Laboratory) -> None:
    """A day has the rows and the bill of the revision in force, and the amounts of all revisions."""
    for as_of, revision, cost in ((None, 2, 120), (NOW + timedelta(minutes=1), 1, 100)):
        day = StoredDay(laboratory.store, REVISED_CHARGEBACKS, DAY, as_of)
        (billing, usage, members), missing = day.evidence()
        assert billing is not None
        assert usage is not None
        assert members is not None
        assert missing is None
        assert day.revision is not None
        assert day.revision.revision == revision
        (billed,) = billing.to_pylist()
        assert LineRows.of(day.rows, billed) == LineRows(2, Decimal(cost), equals_line=True)
        amounts = day.amounts(billed["line_id"], billed, lambda rows: first(rows, identity_id="sa-a"))
        assert [each.amount for each in amounts] == [Decimal(75), Decimal(90)]
        amounts = day.amounts(billed["line_id"], billed, lambda _: None)
        assert [each.amount for each in amounts] == [Decimal(0), Decimal(0)]


def test_days_that_are_not_there(laboratory: Laboratory) -> None:
    """A day that was never calculated, or not yet at the instant, is reported."""
    with pytest.raises(LineNotFound, match="was not calculated then"):
        StoredDay(laboratory.store, REVISED_CHARGEBACKS, DAY, NOW - timedelta(days=1))
    with pytest.raises(LineNotFound, match="is not calculated"):
        StoredDay(laboratory.store, REVISED_CHARGEBACKS, DAY - timedelta(days=1), None)


def test_rows_with_some_values(laboratory: Laboratory) -> None:
    """All rows with the given values are returned, or the first one, or None."""
    rows = StoredDay(laboratory.store, REVISED_CHARGEBACKS, DAY, None).rows
    assert where(rows, identity_id="sa-a", resource_id="lkc-1").num_rows == 1
    assert first(rows, identity_id="nobody") is None
