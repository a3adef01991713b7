"""Laws of queries by cost category, on random documents, tags, names and bills, against a naive implementation."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.access.scope import RowScope
from chargeback.categories.document import CostCategory
from chargeback.categories.handover import WHOLE
from chargeback.categories.parsing import parse_category
from chargeback.errors import SumTooLarge
from chargeback.model.cents import rounded_cents, to_cents
from chargeback.model.days import ONE_DAY, DayRange, InstantRange, start_of_day
from chargeback.model.money import from_units, to_shared_units, to_units
from chargeback.model.money import total as exact_total
from chargeback.reports.categories.answers import preview
from chargeback.reports.changes import changes, policies_used
from chargeback.reports.flow import charged_costs
from chargeback.reports.flow import flow as flow_through
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries import aggregate as aggregates
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.costs import CostQuery, costs
from chargeback.store.queries.daily_totals import daily_totals
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.keys import ByTime, keys_of
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.paging import Page
from chargeback.store.queries.partials import make_partials
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import CategoryFilter, Selection
from chargeback.store.queries.sums import daily_amounts, statement_sums, sums_by
from chargeback.store.queries.tag_index import TagIndex
from tests.categories.naive import Naive, largest_remainder, weights_of_day
from tests.support.categories import DAYS, VALUES, BillRow, SomeNames, SomeTags, bills, documents, names, tags
from tests.support.facts import Share, new_facts, write_shares
from tests.support.laws import examples
from tests.support.readers import Ask

UTC = ZoneInfo("UTC")
SPAN = DayRange(DAYS[0], DAYS[-1] + ONE_DAY)
ALL = Selection.of_days(SPAN)
BEFORE = InstantRange(start_of_day(DAYS[0]), start_of_day(DAYS[2]))
#: (direct, in, out) in units of 10⁻²⁴.
Flow = tuple[int, int, int]


def in_table(row: BillRow) -> BillRow:
    """Return the row as a chargeback, which has an identity and a resource, but no topic."""
    return replace(row, identity_id=row.identity_id or "sa-9", resource_id=row.resource_id or "lkc-9", topic_name=None)


def write_bill(facts: FactTables, bill: Iterable[BillRow]) -> None:
    """Write a bill as chargebacks."""
    write_shares(
        facts,
        [
            Share(
                row.day,
                row.identity_id or "",
                str(from_units(row.units)),
                resource=row.resource_id or "",
                environment=row.environment_id,
                product=row.product_type or "",
                product_category=row.product_category or "",
                portion=number,
            )
            for number, row in enumerate(bill)
        ],
    )


def lookup(categories: Mapping[str, CostCategory], tags: SomeTags, names: SomeNames) -> CategoryLookup:
    """Return the categories of a reader."""
    kept: dict[tuple[str, str], Assignments] = {}

    def _assignments(dataset: Dataset, key: str) -> Assignments:
        place = (dataset.table, key)
        return kept.setdefault(place, Assignments(categories[key], dataset, tags, names))

    stored = {key: StoredCategory(each, 1) for key, each in categories.items()}
    return CategoryLookup(CategoryIndex(stored), _assignments, tags, lambda: names)


def naive_flows(naive: Naive, bill: list[BillRow]) -> list[dict[str, Flow]]:
    """Return the part of each value in each row: the units of a part times the weights of its value."""
    held: dict[date, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    parts = [largest_remainder(row.units, naive.decided(row.subject, row.day)[1]) for row in bill]
    for row, of_row in zip(bill, parts, strict=True):
        for value, units in of_row.items():
            held[row.day][value] += units
    weights = {day: weights_of_day(naive.steps(values, {}, day)) for day, values in held.items()}
    found = []
    for row, of_row in zip(bill, parts, strict=True):
        flows = {value: (units * WHOLE, 0, 0) for value, units in of_row.items()}
        for source, units in of_row.items():
            if (receivers := weights[row.day].get(source)) is None:
                continue
            kept, _ = receivers.get(source, (0, 0))
            flows[source] = added(flows[source], (0, 0, units * (WHOLE - kept)))
            for value, (weight, passed) in receivers.items():
                if value == source:
                    continue
                came, went = units * (weight + passed), units * passed
                flows[value] = added(flows.get(value, (0, 0, 0)), (0, came, went))
        found.append(flows)
    return found


def added(one: Flow, other: Flow) -> Flow:
    """Return the sum of two flows."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def total(flow: Flow) -> int:
    """Return the final cost of a value."""
    return flow[0] + flow[1] - flow[2]


def _any_value(_value: str, _day: date) -> bool:
    return True


@dataclass
class World:
    """A random category, and a bill with the attributes that its rules use."""

    document: dict[str, Any]
    bill: list[BillRow]
    tags: SomeTags
    names: SomeNames

    def __post_init__(self) -> None:
        self.bill = [in_table(row) for row in self.bill]
        self.category = parse_category("team", self.document)
        self.naive = Naive(self.document, self.tags, self.names)

    def reader(self, cursor: Cursor, facts: FactTables) -> TenantReader:
        return TenantReader(
            cursor, facts, TagIndex(), categories=lookup({"team": self.category}, self.tags, self.names)
        )

    def flows(
        self, key: Callable[[BillRow, str], Any], chosen: Callable[[str, date], bool] = _any_value
    ) -> dict[Any, Flow]:
        """Return the assigned, received and given amounts by a key of rows and values, without empty groups."""
        sums: dict[Any, Flow] = defaultdict(lambda: (0, 0, 0))
        for row, of_row in zip(self.bill, naive_flows(self.naive, self.bill), strict=True):
            for value, flow in of_row.items():
                if chosen(value, row.day):
                    sums[key(row, value)] = added(sums[key(row, value)], flow)
        return {key: flow for key, flow in sums.items() if any(flow)}


WORLDS: Final = st.builds(World, documents(), bills(), tags(), names())
#: The number of categories for each bill, and of bills.
CATEGORIES, BILLS = 5, 100


@pytest.fixture
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[World], FactTables]:
    """Return a function that writes the bill of a world."""

    def _write(world: World) -> FactTables:
        facts = new_facts(tmp_path_factory.mktemp("law") / "facts")
        write_bill(facts, world.bill)
        return facts

    return _write


@pytest.mark.extensive
@settings(max_examples=examples(BILLS))
@given(bills(), tags(), names(), st.lists(documents(), min_size=CATEGORIES, max_size=CATEGORIES))
def test_the_sums_of_500_categories_are_exact(
    ask: Ask,
    written: Callable[[World], FactTables],
    bill: list[BillRow],
    tags: SomeTags,
    names: SomeNames,
    documents: list[dict[str, Any]],
) -> None:
    """The sums of each value and day equal those of the rows, before and after reallocation; together they are the sum
    of the day."""
    worlds = [World(document, bill, tags, names) for document in documents]
    facts = written(worlds[0])
    for world in worlds:
        found = _sums(ask, world, facts, ALL, "category:team")
        assert found == world.flows(lambda row, value: (str(row.day), value))
        for day in DAYS:
            whole = sum(row.units for row in world.bill if row.day == day) * WHOLE
            assert sum(total(flow) for key, flow in found.items() if key[0] == str(day)) == whole


@settings(max_examples=examples(40))
@given(WORLDS, st.booleans(), st.frozensets(st.sampled_from([*VALUES, "UNASSIGNED"]), min_size=1), st.booleans())
def test_every_question_gets_the_sums_of_the_rows(
    ask: Ask,
    written: Callable[[World], FactTables],
    world: World,
    kept: bool,
    wanted: frozenset[str],
    excludes: bool,
) -> None:
    """Sums by value and day, also with another column, filters or partial aggregates, equal those of the rows, before
    and after reallocation."""
    facts = written(world)
    if kept:
        ask(lambda cursor: make_partials(cursor, facts.partials, CHARGEBACKS, facts.snapshot(CHARGEBACKS_TABLE).files))

    _found = partial(_sums, ask, world, facts)
    by_product = world.flows(lambda row, value: (str(row.day), row.product_type, value))
    assert _found(ALL, "product_type", "category:team") == by_product
    above = world.flows(lambda row, value: (str(row.day), world.naive.path(value, row.day)[:2][-1]))
    assert _found(ALL, "category:team@1") == above

    def _is_wanted(value: str, day: date) -> bool:
        return wanted.isdisjoint(world.naive.path(value, day)) is excludes

    selection = replace(ALL, categories=(CategoryFilter("team", wanted, excludes),))
    some = world.flows(lambda row, value: (str(row.day), row.identity_id, value), _is_wanted)
    assert _found(selection, "identity_id", "category:team") == some

    def _collected(cursor: Cursor) -> list[tuple[str, Decimal]]:
        reader = world.reader(cursor, facts)
        keys = keys_of(CHARGEBACKS, ("category:team", "cost_type"))
        sums = reader.sums(Sums(CHARGEBACKS, selection, keys, periods=(ALL.window,)))
        return [(row[0], row[1]) for row in sums.rows(f"SELECT d0, {sums.total()} FROM sums GROUP BY ALL")]

    costs = {value: to_shared_units(amount) for value, amount in ask(_collected)}
    everything = {value: total(flow) for value, flow in world.flows(lambda _, value: value, _is_wanted).items()}
    assert {value: units for value, units in costs.items() if units} == {
        value: units for value, units in everything.items() if units
    }


def _sums(ask: Ask, world: World, facts: FactTables, selection: Selection, *by: str) -> dict[Any, Flow]:
    """Return the flows by day and the given columns."""
    grouping = Grouping(by, "day", UTC)
    return _flows(ask(lambda cursor: world.reader(cursor, facts).aggregate(CHARGEBACKS, selection, grouping)))


@settings(max_examples=examples(50))
@given(WORLDS, st.frozensets(st.sampled_from([*VALUES, "UNASSIGNED"]), min_size=1), st.booleans())
def test_a_row_counts_once_for_each_of_its_values(
    ask: Ask, written: Callable[[World], FactTables], world: World, wanted: frozenset[str], excludes: bool
) -> None:
    """A row counts once for a value with several parts of it, and once in the total."""
    facts = written(world)

    def _is_wanted(value: str, day: date) -> bool:
        return wanted.isdisjoint(world.naive.path(value, day)) is excludes

    selection = replace(ALL, categories=(CategoryFilter("team", wanted, excludes),))
    for asked, keeps in ((ALL, _any_value), (selection, _is_wanted)):
        grouping = Grouping(("category:team",), "day", UTC)
        found = ask(lambda cursor: world.reader(cursor, facts).aggregate(CHARGEBACKS, asked, grouping))  # noqa: B023
        of_rows = [
            (str(row.day), [value for value in of_row if keeps(value, row.day)])
            for row, of_row in zip(world.bill, naive_flows(world.naive, world.bill), strict=True)
        ]
        assert {
            (bucket["time_bucket"][:10], bucket["dimensions"]["category:team"]): bucket["row_count"]
            for bucket in found.buckets
        } == Counter((day, value) for day, values in of_rows for value in values)
        assert found.totals["total_rows"] == sum(1 for _, values in of_rows if values)


@settings(max_examples=examples(10))
@given(WORLDS)
def test_past_the_limit_the_totals_cover_everything(
    ask: Ask, written: Callable[[World], FactTables], world: World
) -> None:
    """The totals include all assigned and reallocated amounts."""
    facts, grouping = written(world), Grouping(("category:team", "identity_id"), "day", UTC)

    def _totals(cursor: Cursor) -> dict[str, Any]:
        return world.reader(cursor, facts).aggregate(CHARGEBACKS, ALL, grouping).totals

    whole = ask(_totals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregates, "MAX_BUCKETS", 1)
        assert ask(_totals) == whole


@settings(max_examples=examples(10))
@given(WORLDS)
def test_an_aggregate_sums_the_parts_once(ask: Ask, written: Callable[[World], FactTables], world: World) -> None:
    """All queries of an aggregate by a category read the same sums: it makes no more tables than one query of them."""
    facts, by = written(world), ("category:team", "identity_id")

    def _tables_of(read: Callable[[TenantReader], object]) -> int:
        def _read(cursor: Cursor) -> int:
            read(world.reader(cursor, facts))
            ((tables,),) = cursor.rows("SELECT count(*) FROM duckdb_tables() WHERE temporary")
            return int(tables)

        found: int = ask(_read)
        return found

    keys = (ByTime("day", UTC), *keys_of(CHARGEBACKS, by))
    once = _tables_of(lambda reader: reader.sums(Sums(CHARGEBACKS, ALL, keys)).rows("SELECT count(*) FROM sums"))
    assert _tables_of(lambda reader: reader.aggregate(CHARGEBACKS, ALL, Grouping(by, "day", UTC))) == once


def _flows(answer: Aggregate) -> dict[Any, Flow]:
    """Return the flows of each bucket without zeros, and check that they sum to the totals."""
    found: dict[Any, Flow] = {}
    for bucket in answer.buckets:
        direct, came, went, whole = (
            to_shared_units(Decimal(bucket[name]))
            for name in ("direct_amount", "shared_in", "shared_out", "total_amount")
        )
        assert whole == direct + came - went
        if direct or came or went:
            found[bucket["time_bucket"][:10], *bucket["dimensions"].values()] = (direct, came, went)
    assert to_shared_units(Decimal(answer.totals["total_amount"])) == sum(total(flow) for flow in found.values())
    return found


@settings(max_examples=examples(50))
@given(WORLDS, st.frozensets(st.sampled_from(VALUES), min_size=1))
def test_lists_and_files_show_the_parts_of_each_row(
    ask: Ask, written: Callable[[World], FactTables], world: World, wanted: frozenset[str]
) -> None:
    """A list has whole rows with the share of each value; a file has one row for each part."""
    facts = written(world)
    shares = [world.naive.decided(row.subject, row.day)[1] for row in world.bill]
    parts = [
        [(value, share, largest_remainder(row.units, of_row)[value]) for value, share in sorted(of_row.items())]
        for row, of_row in zip(world.bill, shares, strict=True)
    ]

    def _is_wanted(value: str, day: date) -> bool:
        return not wanted.isdisjoint(world.naive.path(value, day))

    def _listed(selection: Selection) -> dict[int, list[tuple[str, Fraction, int]]]:
        items, count = ask(lambda cursor: world.reader(cursor, facts).list_rows(CHARGEBACKS, selection, Page(0, 100)))
        assert count == len(items)
        return {item["metadata"]["portion"]: _shown(item["categories"]["team"]) for item in items}

    selection = replace(ALL, categories=(CategoryFilter("team", wanted),))
    assert _listed(ALL) == dict(enumerate(parts))
    assert _listed(selection) == {
        number: each
        for number, (row, each) in enumerate(zip(world.bill, parts, strict=True))
        if any(_is_wanted(value, row.day) for value, _, _ in each)
    }
    for asked, keeps in ((ALL, _any_value), (selection, _is_wanted)):
        columns = ("identity_id", "amount", "category:team", "category_share")
        file = ask(partial(_file, world, facts, asked, columns))
        found = sorted((row[0], row[2], Fraction(row[3]), to_units(Decimal(row[1]))) for row in file)
        assert found == sorted(
            (row.identity_id, value, share, units)
            for row, of_row in zip(world.bill, parts, strict=True)
            for value, share, units in of_row
            if keeps(value, row.day)
        )


def _shown(values: list[dict[str, str]]) -> list[tuple[str, Fraction, int]]:
    return [(each["value"], Fraction(each["category_share"]), to_units(Decimal(each["amount"]))) for each in values]


def _file(
    world: World, facts: FactTables, selection: Selection, columns: tuple[str, ...], cursor: Cursor
) -> list[list[str]]:
    content = b"".join(world.reader(cursor, facts).export(CHARGEBACKS, selection, columns))
    return list(csv.reader(io.StringIO(content.decode())))[1:]


ONE_UNIT: Final = Fraction(1, WHOLE**2)
RATE: Final = {date(2026, 3, 1): Decimal("0.92276461")}


@settings(max_examples=examples(8))
@given(WORLDS, st.frozensets(st.sampled_from([*VALUES, "UNASSIGNED"]), min_size=1), st.booleans())
def test_every_report_has_the_same_digits(
    ask: Ask, written: Callable[[World], FactTables], world: World, wanted: frozenset[str], converts: bool
) -> None:
    """Aggregates, costs, series, flows, graphs, changes, statements, previews and daily totals are exactly the sums of
    units times weights, times the rate if there is one."""
    facts, rates = written(world), RATE if converts else None

    def _is_wanted(value: str, day: date) -> bool:
        return not wanted.isdisjoint(world.naive.path(value, day))

    selection = replace(ALL, categories=(CategoryFilter("team", wanted),))
    by_value = {key: flow for key, flow in world.flows(lambda _, value: value, _is_wanted).items() if total(flow)}
    factor = Fraction(RATE[date(2026, 3, 1)] if rates else 1) / WHOLE**2
    by_day = world.flows(lambda row, _: row.day, _is_wanted)
    by_identity = world.flows(lambda row, _: row.identity_id, _is_wanted)
    everything = sum(total(flow) for flow in by_value.values())

    def _same(found: Mapping[Any, Decimal], flows: Mapping[Any, Flow], factor: Fraction = ONE_UNIT) -> None:
        expected = {key: total(flow) * factor for key, flow in flows.items() if total(flow)}
        assert {key: Fraction(amount) for key, amount in found.items() if amount} == expected

    def _ask(question: Callable[[TenantReader], Any]) -> Any:
        return ask(lambda cursor: question(world.reader(cursor, facts)))

    by, day = ("category:team", "identity_id"), Grouping(("identity_id",), "day", UTC, rates)
    sums = _ask(lambda reader: reader.aggregate(CHARGEBACKS, selection, day))
    summed = _by(sums.buckets, lambda bucket: bucket["dimensions"]["identity_id"])
    _same(summed, by_identity, factor)
    assert Fraction(sums.totals["total_amount"]) == everything * factor

    asked = CostQuery(selection, ALL.window, by, "category:team", 2, "day", UTC, rates=rates)
    found = _ask(lambda reader: costs(reader, asked))
    assert Fraction(found.totals.amount) == Fraction(found.totals.previous) == everything * factor
    for breakdown in found.breakdowns:
        other = breakdown.other[1] if breakdown.other else 0
        assert sum(Fraction(item.amount) for item in breakdown.items) + Fraction(other) == everything * factor
        assert [item.amount for item in breakdown.items] == sorted((i.amount for i in breakdown.items), reverse=True)
    _same(found.previous, by_day, factor)
    _same({date.fromisoformat(each): sum_of(amounts) for each, amounts in found.series.items()}, by_day, factor)
    flows = _ask(lambda reader: flow_through(reader, selection, None, by, (2, 2), rates))
    assert sum(Fraction(link.amount) for link in flows.links) == everything * factor

    _same(_ask(lambda reader: daily_amounts(reader, CHARGEBACKS, selection)), by_day)
    by_team = _ask(lambda reader: sums_by(reader, CHARGEBACKS, selection, by[:1]))
    _same({value: amount for (value,), amount in by_team.items()}, by_value)
    placed = _ask(lambda reader: charged_costs(reader, selection, None))
    assert sum(each.units[0] for each in placed) == everything
    changed = _ask(lambda reader: changes(reader, selection, BEFORE, by[1:]))
    _same({item.key[0]: item.after for item in changed.items}, by_identity)
    assert all(sum_of(item.effects.values()) == item.delta for item in changed.items)
    stated = _ask(lambda reader: statement_sums(reader, selection, "category:team"))
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for each in stated:
        amounts[each.value] += [each.direct, each.shared_in, each.shared_out.copy_negate()]
    exact = {value: sum_of(of_value) for value, of_value in amounts.items()}
    _same(exact, by_value)
    assert sum_of(to_cents(list(exact.values()), "USD")) == rounded_cents(sum_of(exact.values()), "USD")
    of_value = _ask(lambda reader: preview(reader, "team", world.category, ALL, "USD", lambda _: {})).values
    _same({each.value: each.after for each in of_value}, world.flows(lambda _, value: value))
    scoped = RowScope.of({"category:team": wanted})
    within = ask(
        lambda cursor: list(
            daily_totals(_within(world.reader(cursor, facts), scoped), CHARGEBACKS, SPAN, ("identity_id",), (1, "rest"))
        )
    )
    daily = {row["date"]: Decimal(0) for batch in within for row in batch.to_pylist()}
    for batch in within:
        for row in batch.to_pylist():
            daily[row["date"]] = sum_of([daily[row["date"]], row["amount"]])
    _same(daily, by_day)


def sum_of(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum."""
    return exact_total(amounts)


def _by(buckets: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], Any]) -> dict[Any, Decimal]:
    amounts: dict[Any, list[Decimal]] = defaultdict(list)
    for bucket in buckets:
        amounts[key(bucket)].append(Decimal(bucket["total_amount"]))
    return {each: sum_of(parts) for each, parts in amounts.items()}


def _within(reader: TenantReader, scope: RowScope) -> TenantReader:
    return TenantReader(reader.cursor, reader._tables, reader.tags, categories=reader.categories, scope=scope)


@settings(max_examples=examples(8))
@given(documents(), WORLDS)
def test_two_categories_at_once(
    ask: Ask, written: Callable[[World], FactTables], document: dict[str, Any], world: World
) -> None:
    """By both categories, sums of the first equal those by it alone exactly, sums of the other nearly; together they
    are the bill, and each row counts once."""
    facts = written(world)
    both = {"area": parse_category("area", document), "team": world.category}

    def _answer(*by: str, categories: tuple[CategoryFilter, ...] = ()) -> Aggregate:
        def _ask(cursor: Cursor) -> Aggregate:
            reader = TenantReader(cursor, facts, TagIndex(), categories=lookup(both, world.tags, world.names))
            return reader.aggregate(CHARGEBACKS, replace(ALL, categories=categories), Grouping(by, "day", UTC))

        answer: Aggregate = ask(_ask)
        return answer

    found = _answer("category:area", "category:team")
    assert to_shared_units(Decimal(found.totals["total_amount"])) == sum(row.units for row in world.bill) * WHOLE
    assert found.totals["total_rows"] == len(world.bill)
    for key, name in (("area", "category:area"), ("team", "category:team")):
        alone = _by(_answer(name).buckets, lambda bucket: (bucket["time_bucket"], bucket["dimensions"][name]))  # noqa: B023
        together = _by(found.buckets, lambda bucket: (bucket["time_bucket"], bucket["dimensions"][name]))  # noqa: B023
        assert alone.keys() == together.keys()
        assert key == "team" or {each: amount for each, amount in alone.items() if amount} == {
            each: amount for each, amount in together.items() if amount
        }
        largest = sum(abs(row.units) for row in world.bill) + len(world.bill) * WHOLE
        for each, amount in alone.items():
            assert abs(to_shared_units(amount) - to_shared_units(together[each])) <= 100 * largest
    wanted = CategoryFilter("area", frozenset(["platform"]))
    parts = [_answer("category:team", categories=(each,)).totals for each in (wanted, replace(wanted, excludes=True))]
    whole = sum_of(Decimal(part["total_amount"]) for part in parts)
    assert whole == Decimal(found.totals["total_amount"])


def test_sums_are_as_large_as_any_other(ask: Ask, written: Callable[[World], FactTables]) -> None:
    """Reallocated amounts have 26 digits before the decimal point and all after it; larger ones raise an error."""
    share = {"share": [{"from": "platform", "by": {"fixed": {"orders": "33.3", "payments": "66.7"}}}]}
    rules = [{"match": {"identity": "*"}, "assign": "platform"}]
    document = {"default": "UNASSIGNED", "rules": rules, **share}
    row = BillRow(DAYS[0], "sa-1", "lkc-1", None, None, "KAFKA_STORAGE", "KAFKA", 10**38 - 1)
    world = World(document, [row], SomeTags({}), SomeNames({}))
    found = _sums(ask, world, written(world), ALL, "category:team")
    assert found[str(DAYS[0]), "payments"] == (0, (10**38 - 1) * 667 * 10**9, 0)
    twice = World(document, [row, row], SomeTags({}), SomeNames({}))
    facts = written(twice)
    for by in ("category:team", "identity_id"):
        with pytest.raises(SumTooLarge, match="26 digits"):
            _sums(ask, twice, facts, ALL, by)


def test_a_scope_shows_the_policies_of_its_rows(ask: Ask, written: Callable[[World], FactTables]) -> None:
    """What another value hands on is part of the costs of a scope, but the policies of those rows are not shown."""
    share = {"share": [{"from": "platform", "by": {"fixed": {"orders": "100"}}}]}
    rules = [{"match": {"identity": "sa-1"}, "assign": "orders"}, {"match": {"identity": "*"}, "assign": "platform"}]
    bill = [
        BillRow(DAYS[0], "sa-1", "lkc-1", None, None, "KAFKA_STORAGE", "KAFKA", 10**12),
        BillRow(DAYS[0], "sa-2", "lkc-1", None, None, "KAFKA_NUM_CKUS", "KAFKA", 10**12),
    ]
    world = World({"default": "UNASSIGNED", "rules": rules, **share}, bill, SomeTags({}), SomeNames({}))
    facts, scope = written(world), RowScope.of({"category:team": ["orders"]})
    within = ask(lambda cursor: policies_used(_within(world.reader(cursor, facts), scope), ALL.window))
    everything = ask(lambda cursor: policies_used(world.reader(cursor, facts), ALL.window))
    assert (set(within), set(everything)) == ({"KAFKA_STORAGE"}, {"KAFKA_STORAGE", "KAFKA_NUM_CKUS"})
