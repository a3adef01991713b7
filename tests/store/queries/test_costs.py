"""The costs of a period are exactly the sums of its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from chargeback.errors import StorageError
from chargeback.model.days import ONE_DAY, instants, start_of_day, utc_now
from chargeback.model.inventory import UNTAGGED
from chargeback.store.control.catalogue import end_table, instant_of_change
from chargeback.store.facts.partial_files import PARTIALS
from chargeback.store.facts.tables import DIMENSIONS_TABLE, FactTables
from chargeback.store.queries.clusters import CLUSTER_ID
from chargeback.store.queries.costs import COST_COLUMNS, CostQuery, Costs, Totals, costs, days_with_rows
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import ColumnFilter, Selection, TagFilter, equal
from chargeback.store.queries.sums import daily_amounts
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, line, new_facts, write_lines, write_shares
from tests.support.laws import examples
from tests.support.readers import Read

UTC = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")
FIRST = date(2026, 1, 5)
NOW, BEFORE = instants(date(2026, 1, 12), date(2026, 1, 18)), instants(FIRST, date(2026, 1, 11))
TAGS = TagIndex.undated({"sa-1": {"team": "a"}}, {"lkc-1": {"team": "b"}})
CLUSTERS = {"lkc-1": "lkc-1"}
BY = (*COST_COLUMNS, "tag:team")
QUERY = CostQuery(Selection(NOW), BEFORE, BY[:3], "identity_id", 2, "day", UTC)

Matches = Callable[[Share], bool]
FILTERS: dict[str, tuple[Selection, Matches]] = {
    "none": (Selection(NOW), lambda _: True),
    "identity": (Selection(NOW, equal(identity_id="sa-1")), lambda share: share.identity == "sa-1"),
    "environment": (Selection(NOW, equal(environment_id="env-1")), lambda share: share.environment == "env-1"),
    "no environment": (Selection(NOW, equal(environment_id="")), lambda share: share.environment is None),
    "not shared": (
        Selection(NOW, (ColumnFilter("cost_type", frozenset(["shared"]), excludes=True),)),
        lambda share: share.cost_type != "shared",
    ),
    "tag": (Selection(NOW, tags=(TagFilter("team", frozenset(["b"])),)), lambda share: value(share, "tag:team") == "b"),
    "nothing": (Selection(NOW, equal(resource_id="none")), lambda _: False),
}


def value(share: Share, by: str) -> str | None:
    """Return the value under which a share is grouped."""
    if by == "tag:team":
        return TAGS.resolve(share.identity, share.resource, share.day).get("team", UNTAGGED)
    if by == CLUSTER_ID:
        return CLUSTERS.get(share.resource)
    found: str | None = share.row()[by]
    return found


shares = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(days_from(FIRST, 14)),
        identity=st.sampled_from(["sa-1", "sa-2", "sa-3", "UNALLOCATED"]),
        amount=st.decimals("-99999999", "99999999", places=12).map(str),
        resource=st.sampled_from(["lkc-1", "lkc-2"]),
        environment=st.sampled_from(["env-1", "env-2", None]),
        cost_type=st.sampled_from(["usage", "shared"]),
        hour=st.sampled_from([0, 23]),
        detail=st.sampled_from(["USAGE_RATIO_ALLOCATION", "NO_OWNER_LOCATED"]),
    ),
    min_size=1,
    max_size=30,
)


@given(
    made=shares,
    wanted=st.sampled_from(sorted(FILTERS)),
    series=st.sampled_from(BY),
    zone=st.sampled_from([UTC, BERLIN]),
)
@seed(5)
@settings(max_examples=examples(25), database=None)
def test_costs_are_the_sums_of_the_rows(
    read: Read, tmp_path_factory: pytest.TempPathFactory, made: list[Share], wanted: str, series: str, zone: ZoneInfo
) -> None:
    """For any charges, filters, breakdowns, comparisons and calendars, no cost is lost or added."""
    facts = new_facts(tmp_path_factory.mktemp("law") / "facts")
    write_shares(facts, [replace(share, portion=number) for number, share in enumerate(made)])
    selection, matches = FILTERS[wanted]
    now, before = (instants(window.start.date(), window.end.date() - ONE_DAY, zone) for window in (NOW, BEFORE))
    query = CostQuery(replace(selection, window=now), before, BY, series, 2, "day", zone)

    def _costs(reader: TenantReader) -> Costs:
        reader.plan.clusters = lambda: CLUSTERS
        return costs(reader, query)

    found: Costs = read(_costs, TAGS, facts)
    current, previous = (
        [s for s in made if matches(s) and w.start <= s.row()["timestamp"] < w.end] for w in (now, before)
    )
    assert found.totals.amount == _sum(current)
    assert found.totals.previous == _sum(previous)
    assert found.totals.usage == _sum(s for s in current if s.cost_type == "usage")
    assert found.totals.unallocated == _sum(s for s in current if s.identity == "UNALLOCATED")
    assert found.totals.rows == len(current)
    for breakdown in found.breakdowns:
        amounts, befores = _by(current, breakdown.by), _by(previous, breakdown.by)
        for item in breakdown.items:
            assert (item.amount, item.previous) == (amounts[item.value], befores[item.value])
        others = breakdown.other or (0, Decimal(0), Decimal(0))
        assert sum(item.amount for item in breakdown.items) + others[1] == _sum(current)
        assert sum(item.previous for item in breakdown.items) + others[2] == _sum(previous)
        assert len(breakdown.items) + others[0] == len(amounts.keys() | befores.keys())
        changes = [abs(item.amount - item.previous) for item in breakdown.movers]
        assert changes == sorted(changes, reverse=True)
    _check_series(found, current, series, zone)
    _check_previous(found, previous, made, before, zone)
    issues = _by([s for s in current if s.detail == "NO_OWNER_LOCATED"], "allocation_detail")
    assert sum(issue.amount for issue in found.issues) == sum(issues.values())


def _check_series(found: Costs, current: list[Share], series: str, zone: ZoneInfo) -> None:
    (breakdown,) = [each for each in found.breakdowns if each.by == series]
    for day, amounts in found.series.items():
        of_day = [s for s in current if _local_day(s, zone) == date.fromisoformat(day)]
        expected = _by(of_day, series)
        assert amounts[:-1] == [expected[item.value] for item in breakdown.items]
        assert sum(amounts) == _sum(of_day)
    assert set(found.series) == {str(_local_day(s, zone)) for s in current}


def _check_previous(found: Costs, previous: list[Share], made: list[Share], window: object, zone: ZoneInfo) -> None:
    start, end = window.start, window.end  # type: ignore[attr-defined]
    days = {_local_day(s, zone) for s in made if start <= s.row()["timestamp"] < end}
    assert found.previous == {day: _sum(s for s in previous if _local_day(s, zone) == day) for day in days}


def _local_day(share: Share, zone: ZoneInfo) -> date:
    local: date = share.row()["timestamp"].astimezone(zone).date()
    return local


def _sum(some: object) -> Decimal:
    return sum((Decimal(share.amount) for share in some), Decimal(0))  # type: ignore[attr-defined]


def _by(some: list[Share], by: str) -> dict[str | None, Decimal]:
    sums: dict[str | None, Decimal] = defaultdict(Decimal)
    for share in some:
        sums[value(share, by)] += Decimal(share.amount)
    return sums


def test_nothing_costs_nothing(read: Read) -> None:
    """Without rows, all totals are zero, and there are no values."""
    found: Costs = read(lambda reader: costs(reader, QUERY))
    assert found.totals == Totals()
    assert not any((found.issues, found.series, found.previous))
    assert [(each.items, each.other, each.movers) for each in found.breakdowns] == [((), None, ())] * 3


def test_a_charge_without_its_dimension_is_an_error(read: Read, facts: FactTables) -> None:
    """A row whose dimension is not registered raises an error when rows are summed by dimension."""
    (facts.root / PARTIALS).write_text("no folder")
    write_shares(facts, [Share(date(2026, 1, 12), "sa-1", "1")])
    with facts.control.write() as connection:
        end_table(connection, DIMENSIONS_TABLE, instant_of_change(connection, utc_now()))
    with pytest.raises(StorageError, match="lacks 1 of those"):
        read(lambda reader: costs(reader, QUERY))


def test_only_what_a_dimension_decides_can_be_filtered_by(read: Read) -> None:
    """A column that the dimension does not determine, such as the billing line, raises an error."""
    query = replace(QUERY, selection=Selection(NOW, equal(line_id="x")))
    with pytest.raises(ValueError, match="cannot be filtered by line_id"):
        read(lambda reader: costs(reader, query))


def test_days_with_rows(read: Read, facts: FactTables) -> None:
    """Whole days are counted from the table; the rows of days that a time zone divides are read."""
    days = days_from(FIRST, 3)
    write_shares(facts, [Share(day, "sa-1", "1", hour=hour, portion=hour) for day in days for hour in (0, 12)])
    assert read(lambda reader: days_with_rows(reader, instants(days[0], days[2]))) == 3
    assert read(lambda reader: days_with_rows(reader, instants(days[0], days[0], ZoneInfo("Asia/Tokyo")))) == 1
    assert read(lambda reader: days_with_rows(reader, instants(days[1], days[1], ZoneInfo("America/New_York")))) == 2
    assert read(lambda reader: days_with_rows(reader, instants(days[2] + ONE_DAY, days[2] + ONE_DAY))) == 0


def test_daily_amounts(read: Read, facts: FactTables) -> None:
    """Charges and bills are summed for each UTC day."""
    write_shares(facts, [Share(FIRST, "sa-1", "1.5"), Share(FIRST, "sa-2", "2"), Share(FIRST + ONE_DAY, "sa-1", "4")])
    write_lines(facts, [line(FIRST, "3.5")])
    window = instants(FIRST, FIRST + timedelta(days=9))
    assert window.start == start_of_day(FIRST)
    mine = Selection(window, equal(identity_id="sa-1"))
    assert read(lambda reader: daily_amounts(reader, CHARGEBACKS, mine)) == {FIRST: Decimal("1.5"), FIRST + ONE_DAY: 4}
    assert read(lambda reader: daily_amounts(reader, BILLING_LINES, Selection(window))) == {FIRST: Decimal("3.5")}
    assert (
        read(
            lambda reader: daily_amounts(reader, BILLING_LINES, Selection(instants(date(2020, 1, 1), date(2020, 1, 2))))
        )
        == {}
    )
