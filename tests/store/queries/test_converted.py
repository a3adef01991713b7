"""Sums in another currency are exactly the rows times the rates of their months, divided into parts or not."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Context, Decimal
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.model.currency import Rates, converted, month_start
from chargeback.model.days import instants
from chargeback.model.money import render, total
from chargeback.reports.flow import flow
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.costs import CostQuery, Costs, costs
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.selection import Selection, equal
from tests.support.facts import Share, days_from, write_shares
from tests.support.laws import examples
from tests.support.readers import Read

EXACT = Context(prec=100)
NOW, BEFORE = instants(date(2026, 1, 28), date(2026, 2, 4)), instants(date(2026, 1, 20), date(2026, 1, 27))
WHOLE = instants(date(2026, 1, 20), date(2026, 2, 4))
UTC = ZoneInfo("UTC")

rates = st.decimals("0.00000001", "9999999", places=8)
shares = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(days_from(date(2026, 1, 20), 16)),
        identity=st.sampled_from(["sa-1", "sa-2", "UNALLOCATED"]),
        amount=st.decimals("-9999999", "9999999", places=12).map(str),
        resource=st.sampled_from(["lkc-1", "lkc-2"]),
        cost_type=st.sampled_from(["usage", "shared"]),
        hour=st.sampled_from([0, 23]),
        detail=st.sampled_from(["USAGE_RATIO_ALLOCATION", "NO_OWNER_LOCATED"]),
    ),
    min_size=1,
    max_size=20,
)


def those_of(rows: list[Share], first: date, last: date, known: Rates) -> list[tuple[Share, Decimal]]:
    """Return the rows between two UTC days, with their amounts in the other currency."""
    return [
        (row, converted(Decimal(row.amount), known[month_start(row.day)])) for row in rows if first <= row.day <= last
    ]


@given(rows=shares, january=rates, february=rates, zone=st.sampled_from(["UTC", "Asia/Tokyo"]))
@settings(max_examples=examples(25))
def test_converted_sums(
    read: Read, facts: FactTables, rows: list[Share], january: Decimal, february: Decimal, zone: str
) -> None:
    """Aggregates, costs and flows have the same total, and each part is the sum of its converted rows."""
    write_shares(facts, [*rows, *(Share(day, "sa-0", "0") for day in days_from(date(2026, 1, 20), 16))])
    known = {date(2026, 1, 1): january, date(2026, 2, 1): february}
    now = those_of(rows, date(2026, 1, 28), date(2026, 2, 4), known)
    whole = total(amount for _, amount in now)
    by_identity: dict[str, Decimal] = defaultdict(Decimal)
    for row, amount in now:
        by_identity[row.identity] = EXACT.add(by_identity[row.identity], amount)

    query = CostQuery(Selection(NOW), BEFORE, ("identity_id", "cost_type"), "identity_id", 50, "week", UTC, rates=known)
    found: Costs = read(lambda reader: costs(reader, query))
    assert found.totals.amount == whole
    assert found.totals.previous == total(a for _, a in those_of(rows, date(2026, 1, 20), date(2026, 1, 27), known))
    assert found.totals.usage == total(amount for row, amount in now if row.cost_type == "usage")
    items = {item.value: item.amount for item in found.breakdowns[0].items if item.value != "sa-0"}
    assert items | by_identity == items
    assert total(items.values()) == whole
    assert total(amount for amounts in found.series.values() for amount in amounts) == whole
    assert total(found.previous.values()) == found.totals.previous
    assert total(issue.amount for issue in found.issues) == total(
        amount for row, amount in now if row.detail == "NO_OWNER_LOCATED"
    )

    links = read(lambda reader: flow(reader, Selection(NOW), BEFORE, ("resource_id", "identity_id"), (50, 50), known))
    assert total(link.amount for link in links.links) == whole

    window = Selection(WHOLE)
    grouping = Grouping(("identity_id",), "week", ZoneInfo(zone), known)
    sums = read(lambda reader: reader.aggregate(CHARGEBACKS, window, grouping))
    everything = total(amount for _, amount in those_of(rows, date(2026, 1, 20), date(2026, 2, 4), known))
    assert sums.totals["total_amount"] == render(everything)
    assert total(Decimal(bucket["total_amount"]) for bucket in sums.buckets) == everything


def test_rates_of_one(read: Read, facts: FactTables) -> None:
    """With a rate of 1, every sum equals that in the currency of the bill, and rows are counted once."""
    rows = [Share(day, "sa-1", "0.333333333333") for day in days_from(date(2026, 1, 25), 10)]
    write_shares(facts, rows)
    ones = {date(2026, 1, 1): Decimal(1), date(2026, 2, 1): Decimal(1)}
    plain, same = (
        read(lambda reader, some=some: reader.aggregate(CHARGEBACKS, Selection(WHOLE), some))
        for some in (Grouping(("identity_id",), "month", UTC, known) for known in (None, ones))
    )
    assert (plain.rendered, plain.totals) == (same.rendered, same.totals)


def test_nothing_selected(read: Read, facts: FactTables) -> None:
    """The response is complete and has no amounts."""
    write_shares(facts, [Share(date(2026, 1, 29), "sa-1", "1")])
    selection = Selection(NOW, equal(identity_id="nobody"))
    known = {date(2026, 1, 1): Decimal("0.5")}
    query = CostQuery(selection, BEFORE, ("identity_id",), "identity_id", 5, "day", UTC, rates=known)
    assert read(lambda reader: costs(reader, query)).totals.amount == 0
    sums = read(lambda reader: reader.aggregate(CHARGEBACKS, selection, Grouping(("identity_id",), "day", UTC, known)))
    assert (sums.totals["total_rows"], sums.rendered) == (0, [])


def test_months_without_a_rate(read: Read, facts: FactTables) -> None:
    """Months without a rate are not in any sum."""
    write_shares(facts, [Share(date(2026, 1, 30), "sa-1", "1"), Share(date(2026, 2, 2), "sa-1", "3")])
    known = {date(2026, 2, 1): Decimal("0.5")}
    query = CostQuery(Selection(NOW), None, ("identity_id", "cost_type"), "identity_id", 5, "day", UTC, rates=known)
    found: Costs = read(lambda reader: costs(reader, query))
    assert (found.totals.amount, found.totals.rows) == (Decimal("1.5"), 1)
    assert found.series == {"2026-02-02": [Decimal("1.5"), Decimal(0)]}
