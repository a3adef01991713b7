"""Results of a reader with a scope come only from the rows of the scope: for every query, on random bills, tags, cost
categories and scopes."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.access.scope import RowScope
from chargeback.categories.handover import WHOLE
from chargeback.model.days import ONE_DAY, DayRange, InstantRange, start_of_day
from chargeback.model.money import from_units, to_units
from chargeback.reports.changes import changes
from chargeback.reports.flow import charged_costs, flow, topic_costs_by_cluster
from chargeback.reports.restatements import restatement
from chargeback.reports.search import entity_costs
from chargeback.reports.topic_costs import topic_costs
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.chargebacks import allocation_issues, charged_entities, dimension, rows_of_line
from chargeback.store.queries.costs import CostQuery, costs
from chargeback.store.queries.daily_totals import DayTotals, daily_totals
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, DATASETS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.paging import Order, Page
from chargeback.store.queries.partials import make_partials
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import CategoryFilter, ColumnFilter, Selection, TagFilter
from chargeback.store.queries.sums import daily_amounts, sums_by, tag_coverage
from chargeback.store.queries.visible_sums import VisibleSums
from tests.support.categories import DAYS, VALUES, BillRow
from tests.support.facts import new_facts
from tests.support.laws import examples
from tests.support.readers import Ask
from tests.support.scopes import CLUSTERS, ISSUE, SCOPES, UNKNOWN, ScopedWorld, worlds

UTC = ZoneInfo("UTC")
SPAN: Final = DayRange(DAYS[0], DAYS[-1] + ONE_DAY)
ALL: Final = Selection.of_days(SPAN)
BEFORE: Final = InstantRange(start_of_day(DAYS[0]), start_of_day(DAYS[2]))
AFTER: Final = InstantRange(start_of_day(DAYS[2]), start_of_day(DAYS[-1] + ONE_DAY))
#: The number of scopes for a bill, and of bills: 600 scopes for all kinds of queries together, in drills 500 for each.
AT_ONCE, SOME, MANY = 10, 10, 50
#: The memory for sums of visible rows, in bytes: no such sums, none kept, or all kept.
MEMORY: Final = st.sampled_from([None, 0, 2**30])

Written = Callable[[ScopedWorld, bool], FactTables]
#: Queries a world within a scope.
Asked = Callable[[Callable[[TenantReader], Any]], Any]


def kept_sums(memory: int | None) -> VisibleSums | None:
    """Return the sums that the readers of one scope share."""
    return None if memory is None else VisibleSums(revision=None, most_bytes=memory)


@pytest.fixture
def written(tmp_path_factory: pytest.TempPathFactory, ask: Ask) -> Written:
    """Return a function that writes a world, with partial aggregates or without."""

    def _write(world: ScopedWorld, kept: bool) -> FactTables:
        facts = new_facts(tmp_path_factory.mktemp("scopes") / "facts")
        world.write(facts)
        for dataset in DATASETS if kept else ():
            ask(partial(_make_partials, facts, dataset))
        return facts

    return _write


def _make_partials(facts: FactTables, dataset: Dataset, cursor: Any) -> None:
    make_partials(cursor, facts.partials, dataset, facts.snapshot(dataset.table).files)


def units_of(amounts: dict[Any, Decimal]) -> dict[Any, int]:
    """Return amounts in units, without zeros."""
    return {key: to_units(amount) for key, amount in amounts.items() if amount}


def payer(row: BillRow) -> str | None:
    """Return the identity of a row."""
    return row.identity_id


def topic(row: BillRow) -> tuple[str | None, str | None]:
    """Return the cluster and the name of the topic of a row."""
    return row.resource_id, row.topic_name


def column_of(name: str, row: BillRow) -> str | None:
    """Return a column of a row."""
    return row.subject[name]


def summed(rows: list[BillRow], visible: dict[int, int], key: Callable[[BillRow], Any]) -> dict[Any, int]:
    """Return the visible units by a key of the rows, without zeros."""
    sums: dict[Any, int] = defaultdict(int)
    for place, units in visible.items():
        sums[key(rows[place])] += units
    return {of_key: units for of_key, units in sums.items() if units}


def _check_lists(asked: Asked, world: ScopedWorld, scope: RowScope) -> None:
    visible = world.visible(world.charges, scope)
    items, count = asked(lambda reader: reader.list_rows(CHARGEBACKS, ALL, Page(0, 100)))
    assert count == len(items)
    listed = {item["metadata"]["portion"]: to_units(Decimal(item["amount"])) for item in items}
    assert listed == visible
    middle = sorted(visible.values())[len(visible) // 2] if visible else 0
    ordered = asked(partial(_dearest_first, middle))
    amounts = [to_units(Decimal(item["amount"])) for item in ordered]
    assert amounts == sorted((each for each in visible.values() if each >= middle), reverse=True)
    wanted = dict(scope.conditions)
    for item in items:
        for key, parts in item["categories"].items():
            assert sum(Decimal(part["amount"]) for part in parts) == Decimal(item["amount"])
            allowed = wanted.get(f"category:{key}")
            day = world.charges[item["metadata"]["portion"]].day
            path = partial(world.categories[key].path, day=day)
            assert allowed is None or not any(allowed.isdisjoint(path(part["value"])) for part in parts)
    lines, _ = asked(lambda reader: reader.list_rows(BILLING_LINES, ALL, Page(0, 100)))
    billed = {int(item["metadata"]["description"]): to_units(Decimal(item["total_cost"])) for item in lines}
    assert billed == world.visible(world.lines, scope)
    file = csv.DictReader(io.StringIO(asked(_exported).decode()))
    sums: dict[str, int] = defaultdict(int)
    for row in file:
        sums[row["identity_id"]] += to_units(Decimal(row["amount"]))
    assert sums.keys() == {world.charges[place].identity_id for place in visible}
    assert {who: units for who, units in sums.items() if units} == summed(world.charges, visible, payer)
    for place in range(0, len(world.charges), 5):
        assert ((place,) in asked(partial(_portions_of_line, world, place))) is (place in visible)


def _dearest_first(least: int, reader: TenantReader) -> list[dict[str, Any]]:
    selection = replace(ALL, min_amount=from_units(least))
    return reader.list_rows(CHARGEBACKS, selection, Page(0, 100), Order("amount", descending=True))[0]


def _portions_of_line(world: ScopedWorld, place: int, reader: TenantReader) -> set[tuple[Any, ...]]:
    return rows_of_line(reader, CHARGEBACKS, world.charges[place].day, f"line-{place // 2}", ("portion",))


def _exported(reader: TenantReader) -> bytes:
    return b"".join(reader.export(CHARGEBACKS, ALL, ("identity_id", "amount")))


def _check_sums(asked: Asked, world: ScopedWorld, scope: RowScope) -> None:
    rows, visible = world.charges, world.visible(world.charges, scope)
    for by in ("identity_id", "product_type", "tag:team", "category:team", "category:area"):
        answer = asked(partial(_aggregated, by))
        assert to_units(Decimal(answer.totals["total_amount"])) == sum(visible.values())
        assert answer.totals["total_rows"] == len(visible)
        days: dict[str, int] = defaultdict(int)
        for bucket in answer.buckets:
            days[bucket["time_bucket"][:10]] += to_units(Decimal(bucket["total_amount"]))
        assert {day: units for day, units in days.items() if units} == summed(rows, visible, lambda row: str(row.day))
        if by == "identity_id":
            found = {bucket["dimensions"][by] for bucket in answer.buckets}
            assert found == {rows[place].identity_id for place in visible}
    by_tag = asked(lambda reader: sums_by(reader, CHARGEBACKS, ALL, ("tag:cost", "resource_id")))
    assert units_of(by_tag) == summed(rows, visible, lambda row: (world.tag_of(row, "cost"), row.resource_id))
    assert units_of(asked(lambda reader: daily_amounts(reader, CHARGEBACKS, ALL))) == summed(
        rows, visible, lambda row: row.day
    )
    batches = asked(lambda reader: list(daily_totals(reader, CHARGEBACKS, SPAN, ("identity_id",), None)))
    daily = {(row["date"], row["identity_id"]): row["amount"] for each in batches for row in each.to_pylist()}
    assert units_of(daily) == summed(rows, visible, lambda row: (row.day, row.identity_id))
    issues, count = asked(lambda reader: allocation_issues(reader, ALL))
    assert count == len(issues)
    troubled = {place: units for place, units in visible.items() if not place % 3}
    assert sum(issue["row_count"] for issue in issues) == len(troubled)
    assert {issue["allocation_detail"] for issue in issues} <= {ISSUE}
    told: dict[Any, int] = defaultdict(int)
    for issue in issues:
        told[issue["identity_id"]] += to_units(issue["total_cost"])
    assert {who: units for who, units in told.items() if units} == summed(rows, troubled, payer)


def _aggregated(by: str, reader: TenantReader) -> Aggregate:
    return reader.aggregate(CHARGEBACKS, ALL, Grouping((by,), "day", UTC))


def _check_costs(asked: Asked, world: ScopedWorld, scope: RowScope) -> None:
    rows, by = world.charges, ("identity_id", "product_type", "environment_id")
    visible = world.visible(rows, scope)
    query = CostQuery(replace(ALL, window=AFTER), BEFORE, by, "identity_id", 50, "day", UTC)
    earlier = {place: units for place, units in visible.items() if rows[place].day < DAYS[2]}
    later = {place: units for place, units in visible.items() if rows[place].day >= DAYS[2]}
    found = asked(lambda reader: costs(reader, query))
    assert to_units(found.totals.amount) == sum(later.values())
    assert to_units(found.totals.previous) == sum(earlier.values())
    assert found.totals.rows == len(later)
    for breakdown in found.breakdowns:
        of_row = partial(column_of, breakdown.by)
        assert units_of({item.value: item.amount for item in breakdown.items}) == summed(rows, later, of_row)
        assert {item.value for item in breakdown.items} == {of_row(rows[place]) for place in visible}
    assert sum(to_units(issue.amount) for issue in found.issues) == sum(
        units for place, units in later.items() if not place % 3
    )
    assert sum(to_units(amount) for amounts in found.series.values() for amount in amounts) == sum(later.values())


def _check_flows(asked: Asked, world: ScopedWorld, scope: RowScope) -> None:
    rows, visible = world.charges, world.visible(world.charges, scope)
    earlier = {place: units for place, units in visible.items() if rows[place].day < DAYS[2]}
    later = {place: units for place, units in visible.items() if rows[place].day >= DAYS[2]}
    flowing = asked(lambda reader: flow(reader, ALL, None, ("resource_id", "identity_id"), (50, 50)))
    for column in flowing.columns:
        of_row = partial(column_of, column.by)
        assert units_of({item.value: item.amount for item in column.items}) == summed(rows, visible, of_row)
    assert sum(to_units(link.amount) for link in flowing.links) == sum(visible.values())
    placed = asked(lambda reader: charged_costs(reader, ALL, None))
    assert {(each.environment_id, each.resource_id, each.leaf) for each in placed} == {
        (rows[place].environment_id, rows[place].resource_id, rows[place].identity_id) for place in visible
    }
    assert sum(each.units[0] for each in placed) == sum(visible.values()) * WHOLE
    compared = asked(lambda reader: changes(reader, replace(ALL, window=AFTER), BEFORE, ("identity_id",)))
    assert {item.key[0] for item in compared.items} == {rows[place].identity_id for place in visible}
    assert units_of({item.key[0]: item.before for item in compared.items}) == summed(rows, earlier, payer)
    assert units_of({item.key[0]: item.after for item in compared.items}) == summed(rows, later, payer)
    causes = {day: ["bill_changed"] for day in DAYS}
    restated = asked(lambda reader: restatement(reader, reader, ALL, ("identity_id",), causes, currency="USD", limit=1))
    assert to_units(restated.total_before) == to_units(restated.total_after) == sum(visible.values())


def _check_entities(asked: Asked, world: ScopedWorld, scope: RowScope) -> None:
    visible = world.visible(world.charges, scope)
    rows = [world.charges[place] for place in visible]
    identities = {payer(row) for row in rows}
    found = asked(lambda reader: charged_entities(reader, ALL))
    assert set(found) == {("identity", each) for each in identities} | {("resource", row.resource_id) for row in rows}
    topics = [world.topics[place] for place in world.visible(world.topics, scope)]
    lines = [world.lines[place] for place in world.visible(world.lines, scope)]
    seen = asked(lambda reader: reader.visible_entities())
    assert seen.identities == identities
    resources = {row.resource_id or "" for row in (*rows, *topics, *lines)}
    resources |= {row.environment_id for row in (*rows, *topics, *lines) if row.environment_id}
    resources |= {f"{row.resource_id}:topic:{row.topic_name}" for row in topics}
    assert seen.resources == resources | {CLUSTERS[each] for each in resources & CLUSTERS.keys()}
    known = asked(lambda reader: reader.unscoped().list_rows(CHARGEBACKS, ALL, Page(0, 100))[0])
    ids = {item["metadata"]["portion"]: item["dimension_id"] for item in known}
    mine = {ids[place] for place in visible}
    for place, id_ in list(ids.items())[::4]:
        assert (asked(partial(_dimension, id_)) is not None) is (id_ in mine), place
    lately = asked(lambda reader: entity_costs(reader, ALL.window))
    assert units_of(dict(lately.identities)) == summed(world.charges, visible, payer)
    assert set(lately.identities) == identities
    kept = DayTotals()
    asked(lambda reader: kept.load(reader, CHARGEBACKS, SPAN))
    assert units_of(asked(lambda reader: kept.load(reader.unscoped(), CHARGEBACKS, SPAN))) == summed(
        world.charges, {place: row.units for place, row in enumerate(world.charges)}, lambda row: row.day
    )


def _dimension(id_: int, reader: TenantReader) -> Any:
    return dimension(reader, id_)


def _check_topics(asked: Asked, world: ScopedWorld, scope: RowScope) -> None:
    rows, visible = world.topics, world.visible(world.topics, scope)
    items, count = asked(lambda reader: reader.list_rows(TOPIC_ATTRIBUTIONS, ALL, Page(0, 100)))
    assert count == len(items)
    found = {int(item["metadata"]["line_id"].removeprefix("line-")): item["amount"] for item in items}
    assert {place: to_units(Decimal(amount)) for place, amount in found.items()} == visible
    summary = asked(lambda reader: topic_costs(reader, ALL, None, None, traffic=True))
    assert units_of({(each.cluster_resource_id, each.topic_name): each.amount for each in summary.items}) == summed(
        rows, visible, topic
    )
    assert {(each.cluster_resource_id, each.topic_name) for each in summary.items} == {
        topic(rows[place]) for place in visible
    }
    placed = asked(lambda reader: topic_costs_by_cluster(reader, ALL, None))
    assert {(each.resource_id, each.leaf) for each in placed} == {topic(rows[each]) for each in visible}
    assert sum(each.units[0] for each in placed) == sum(visible.values()) * WHOLE


@pytest.mark.parametrize("bills", [SOME, pytest.param(MANY, marks=[pytest.mark.drill, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize(
    "check", [_check_lists, _check_sums, _check_costs, _check_flows, _check_entities, _check_topics]
)
def test_rows_and_sums_within_random_scopes(
    ask: Ask, written: Written, check: Callable[[Asked, ScopedWorld, RowScope], None], bills: int
) -> None:
    """Every reader returns only rows of the scope; each amount is the visible part of its row, and every total is the
    sum of these."""

    @settings(max_examples=examples(bills))
    @given(worlds(handing_on=False), st.booleans(), MEMORY, st.lists(SCOPES, min_size=AT_ONCE, max_size=AT_ONCE))
    def within(world: ScopedWorld, kept: bool, memory: int | None, scopes: list[RowScope]) -> None:
        facts = written(world, kept)
        for scope in scopes:
            ask(partial(_check, check, world, facts, scope, kept_sums(memory)))

    within()


def _check(
    check: Callable[[Asked, ScopedWorld, RowScope], None],
    world: ScopedWorld,
    facts: FactTables,
    scope: RowScope,
    sums: VisibleSums | None,
    cursor: Cursor,
) -> None:
    reader = world.reader(cursor, facts, scope, sums)
    check(lambda question: question(reader), world, scope)


def _with_filters(selection: Selection, scope: RowScope, dataset: Dataset) -> Selection | None:
    """Return the selection with the scope as filters, or None if the dataset does not have them."""
    columns, tags, categories = list(selection.columns), list(selection.tags), list(selection.categories)
    for name, values in scope.conditions:
        kind, _, key = name.partition(":")
        if kind == "category":
            if key == UNKNOWN:
                return None
            categories.append(CategoryFilter(key, values))
        elif kind == "tag":
            tags.append(TagFilter(key, values))
        elif (column := dataset.filter_column(kind)) is not None:
            columns.append(ColumnFilter(column, values))
        else:
            return None
    return replace(selection, columns=tuple(columns), tags=tuple(tags), categories=tuple(categories))


_REQUESTS: Final = st.builds(
    replace,
    st.just(replace(ALL, window=AFTER)),
    columns=st.sampled_from(
        [
            (),
            (ColumnFilter("product_type", frozenset(["KAFKA_STORAGE"]), excludes=True),),
            (ColumnFilter("identity_id", frozenset(["sa-1", "sa-2", "sa-9"])),),
        ]
    ),
    tags=st.sampled_from([(), (TagFilter("team", frozenset(["payments"]), excludes=True),)]),
    categories=st.sampled_from([(), (CategoryFilter("team", frozenset(VALUES[:3])),)]),
)


@settings(max_examples=examples(25))
@given(worlds(handing_on=True), st.booleans(), MEMORY, SCOPES, _REQUESTS)
def test_a_scope_is_filters(
    ask: Ask,
    written: Written,
    world: ScopedWorld,
    kept: bool,
    memory: int | None,
    scope: RowScope,
    request: Selection,
) -> None:
    """Results of a scoped reader equal those of an unscoped reader with the same filters, also if categories reallocate
    cost."""
    facts = written(world, kept)
    filtered = _with_filters(request, scope, CHARGEBACKS)
    if filtered is None:
        return
    by = ("identity_id", "tag:team", "product_type")

    def _costs(reader: TenantReader, selection: Selection) -> Any:
        return costs(reader, CostQuery(selection, BEFORE, by, "product_type", 3, "day", UTC))

    def _sums(reader: TenantReader, selection: Selection) -> Any:
        return reader.aggregate(CHARGEBACKS, selection, Grouping(by, "day", UTC))

    def _file(reader: TenantReader, selection: Selection) -> Any:
        return b"".join(reader.export(CHARGEBACKS, selection, ("timestamp", "identity_id", "amount")))

    def _flow(reader: TenantReader, selection: Selection) -> Any:
        return flow(reader, selection, BEFORE, ("resource_id", "identity_id"), (2, 2))

    def _changes(reader: TenantReader, selection: Selection) -> Any:
        # Effects are parts of the bills in the scope, or of all bills without one.
        found = changes(reader, selection, BEFORE, ("identity_id",))
        assert all(to_units(sum(each.effects.values(), Decimal(0))) == to_units(each.delta) for each in found.items)
        return [(each.key, each.before, each.after) for each in found.items], found.days

    def _listed(reader: TenantReader, selection: Selection) -> Any:
        items, count = reader.list_rows(CHARGEBACKS, selection, Page(0, 100))
        return [item["metadata"]["portion"] for item in items], count

    sums = kept_sums(memory)
    for question in (_costs, _sums, _file, _flow, _changes, _listed, allocation_issues, charged_entities):
        within = ask(partial(_answer, world, facts, scope, sums, question, request))
        assert within == ask(partial(_answer, world, facts, None, None, question, filtered)), question


def _answer(
    world: ScopedWorld,
    facts: FactTables,
    scope: RowScope | None,
    sums: VisibleSums | None,
    question: Callable[[TenantReader, Selection], Any],
    selection: Selection,
    cursor: Any,
) -> Any:
    return question(world.reader(cursor, facts, scope, sums), selection)


@settings(max_examples=examples(10))
@given(worlds(handing_on=False), SCOPES)
def test_shares_of_tags_are_of_what_is_visible(ask: Ask, written: Written, world: ScopedWorld, scope: RowScope) -> None:
    """Shares of tags refer to the visible cost; days and dates are those of all rows."""
    facts = written(world, False)
    visible = world.visible(world.charges, scope)
    whole = sum(visible.values())
    found = ask(lambda cursor: tag_coverage(world.reader(cursor, facts, scope), ALL.window, ("team",)))["team"]
    if whole <= 0:
        assert found is None
    else:
        tagged = {
            place: each for place, each in visible.items() if world.tag_of(world.charges[place], "team") != "UNTAGGED"
        }
        assert abs(found - Decimal(sum(tagged.values())) / whole) <= Decimal("0.00005")
    days: list[date] = ask(lambda cursor: world.reader(cursor, facts, scope).dates(CHARGEBACKS))
    assert days == sorted({row.day for row in world.charges})
