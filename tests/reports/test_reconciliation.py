"""Every day's bill is compared with the charges."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.reconciliation import DIFFERS, EQUAL, NONE, PENDING, reconcile
from chargeback.store.control.days import DatasetDay, DatasetState, DayState
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, line, new_facts, write_lines, write_shares

FIRST = date(2026, 1, 1)


def test_states_of_days(tmp_path: Path) -> None:
    """A day is equal, different in the last digit, not calculated, or not billed; a day that was never processed is
    listed as well."""
    equal, differs, pending, billed, none = days_from(FIRST, 5)
    facts = new_facts(tmp_path)
    write_lines(facts, [line(day, "1.5") for day in (equal, differs, pending, billed)])
    write_shares(facts, [Share(equal, "sa-1", "1.5"), Share(differs, "sa-1", "1.500000000001")])
    states = {
        equal: DayState(
            equal,
            chargebacks=DatasetDay(DatasetState.CURRENT, fingerprint="x"),
            topics=DatasetDay(DatasetState.CURRENT),
        ),
        differs: DayState(differs, chargebacks=DatasetDay(DatasetState.CURRENT)),
        pending: DayState(pending, billing_gathered=True, error="no metrics"),
    }
    engine = QueryEngine(threads=1)
    try:
        with engine.cursor(CancellationToken()) as cursor:
            reader = TenantReader(cursor, facts, TagIndex())
            found = reconcile(reader, states, DayRange(FIRST, none + ONE_DAY))
    finally:
        engine.close()
    assert [(each.day, each.state) for each in found] == [
        (equal, EQUAL),
        (differs, DIFFERS),
        (pending, PENDING),
        (billed, PENDING),
        (none, NONE),
    ]
    assert [each.difference for each in found[:2]] == [0, Decimal("0.000000000001")]
    assert [each.topics for each in found[:2]] == [True, False]
    assert found[2].error == "no metrics"
    assert found[0].fingerprint == "x"
