"""Laws of questions by cost category, on random documents, tags, names and bills, against a naive reading of them."""

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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import from_units, to_units
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.category_index import CategoryIndex, StoredCategory
from chargeback.store.queries.category_lookup import CategoryLookup
from chargeback.store.queries.cost_sums import sum_selected
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.paging import Page
from chargeback.store.queries.partials import make_partials
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import CategoryFilter, Selection
from chargeback.store.queries.tag_index import TagIndex
from tests.categories.naive import Naive, largest_remainder, shares_of
from tests.store.queries.conftest import Ask
from tests.support.categories import DAYS, VALUES, BillRow, SomeNames, SomeTags, bills, documents, names, tags
from tests.support.facts import Share, new_facts, write_shares

UTC = ZoneInfo("UTC")
ALL = Selection.of_days(DayRange(DAYS[0], DAYS[-1] + ONE_DAY))
#: (direct, in, out) in units.
Flow = tuple[int, int, int]


def in_table(row: BillRow) -> BillRow:
    """The row as a chargeback, which has an identity and a resource, and no topic."""
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
    """The categories of a reader."""
    kept: dict[tuple[str, str], Assignments] = {}

    def _assignments(dataset: Dataset, key: str) -> Assignments:
        place = (dataset.table, key)
        return kept.setdefault(place, Assignments(categories[key], dataset, tags, names))

    stored = {key: StoredCategory(each, 1) for key, each in categories.items()}
    return CategoryLookup(CategoryIndex(stored), _assignments)


def naive_flows(naive: Naive, bill: list[BillRow]) -> list[dict[str, Flow]]:
    """What each value has of each row, row by row."""
    held: dict[date, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    parts = [largest_remainder(row.units, naive.decided(row.subject, row.day)[1]) for row in bill]
    for row, of_row in zip(bill, parts, strict=True):
        for value, units in of_row.items():
            held[row.day][value] += units
    steps = {day: naive.steps(values, {}, day) for day, values in held.items()}
    found = []
    for row, of_row in zip(bill, parts, strict=True):
        flows = {value: (units, 0, 0) for value, units in of_row.items()}
        for source, to in steps[row.day]:
            if source not in flows:
                continue
            direct, came, went = flows[source]
            flows[source] = (direct, came, went + total(flows[source]))
            for value, units in largest_remainder(direct + came - went, shares_of(to)).items():
                before = flows.get(value, (0, 0, 0))
                flows[value] = (before[0], before[1] + units, before[2])
        found.append(flows)
    return found


def total(flow: Flow) -> int:
    """What remains with a value."""
    return flow[0] + flow[1] - flow[2]


def _any_value(_value: str) -> bool:
    return True


@dataclass
class World:
    """A random category, and a bill that its rules see."""

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

    def flows(self, key: Callable[[BillRow, str], Any], chosen: Callable[[str], bool] = _any_value) -> dict[Any, Flow]:
        """What was assigned, came and went, by something of rows and values; without what is nothing."""
        sums: dict[Any, Flow] = defaultdict(lambda: (0, 0, 0))
        for row, of_row in zip(self.bill, naive_flows(self.naive, self.bill), strict=True):
            for value, flow in of_row.items():
                if chosen(value):
                    before = sums[key(row, value)]
                    sums[key(row, value)] = (before[0] + flow[0], before[1] + flow[1], before[2] + flow[2])
        return {key: flow for key, flow in sums.items() if any(flow)}


WORLDS: Final = st.builds(World, documents(), bills(), tags(), names())
_written_once = [HealthCheck.function_scoped_fixture]
#: Of one bill: so many categories, and so many bills.
CATEGORIES, BILLS = 5, 100


@pytest.fixture
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[World], FactTables]:
    """Writes the bill of a world."""

    def _write(world: World) -> FactTables:
        facts = new_facts(tmp_path_factory.mktemp("law") / "facts")
        write_bill(facts, world.bill)
        return facts

    return _write


@settings(suppress_health_check=_written_once, max_examples=BILLS)
@given(bills(), tags(), names(), st.lists(documents(), min_size=CATEGORIES, max_size=CATEGORIES))
def test_the_sums_of_500_categories_are_exact(
    ask: Ask,
    written: Callable[[World], FactTables],
    bill: list[BillRow],
    tags: SomeTags,
    names: SomeNames,
    documents: list[dict[str, Any]],
) -> None:
    """Of each value on each day, before and after values handed on what they have, as row by row; all together they are
    the sum of the day."""
    worlds = [World(document, bill, tags, names) for document in documents]
    facts = written(worlds[0])
    for world in worlds:
        found = _sums(ask, world, facts, ALL, "category:team")
        assert found == world.flows(lambda row, value: (str(row.day), value))
        for day in DAYS:
            whole = sum(row.units for row in world.bill if row.day == day)
            assert sum(total(flow) for key, flow in found.items() if key[0] == str(day)) == whole


@settings(suppress_health_check=_written_once, max_examples=40)
@given(WORLDS, st.booleans(), st.frozensets(st.sampled_from([*VALUES, "UNASSIGNED"]), min_size=1), st.booleans())
def test_every_question_gets_the_sums_of_the_rows(
    ask: Ask,
    written: Callable[[World], FactTables],
    world: World,
    kept: bool,
    wanted: frozenset[str],
    excludes: bool,
) -> None:
    """By value and day, also beside another column, with filters, from rows and from partial aggregates; before and
    after values handed on what they have."""
    facts, category = written(world), world.category
    if kept:
        ask(lambda cursor: make_partials(cursor, facts.partials, CHARGEBACKS, facts.snapshot(CHARGEBACKS_TABLE).files))

    _found = partial(_sums, ask, world, facts)
    by_product = world.flows(lambda row, value: (str(row.day), row.product_type, value))
    assert _found(ALL, "product_type", "category:team") == by_product
    above = world.flows(lambda row, value: (str(row.day), category.at_level(value, 1)))
    assert _found(ALL, "category:team@1") == above

    def _is_wanted(value: str) -> bool:
        return wanted.isdisjoint(category.path(value)) is excludes

    selection = replace(ALL, categories=(CategoryFilter("team", wanted, excludes),))
    some = world.flows(lambda row, value: (str(row.day), row.identity_id, value), _is_wanted)
    assert _found(selection, "identity_id", "category:team") == some

    def _collected(cursor: Cursor) -> list[tuple[str, Decimal]]:
        reader = world.reader(cursor, facts)
        sum_selected(reader, selection, [ALL.window], ("category:team", "cost_type"))
        return [(row[0], row[1]) for row in reader.cursor.rows("SELECT d0, sum(total) FROM selected GROUP BY ALL")]

    costs = {value: to_units(amount) for value, amount in ask(_collected)}
    everything = {value: total(flow) for value, flow in world.flows(lambda _, value: value, _is_wanted).items()}
    assert {value: units for value, units in costs.items() if units} == {
        value: units for value, units in everything.items() if units
    }


def _sums(ask: Ask, world: World, facts: FactTables, selection: Selection, *by: str) -> dict[Any, Flow]:
    """The flows by day and something else."""
    grouping = Grouping(by, "day", UTC)
    return _flows(ask(lambda cursor: world.reader(cursor, facts).aggregate(CHARGEBACKS, selection, grouping)))


@settings(suppress_health_check=_written_once, max_examples=50)
@given(WORLDS, st.frozensets(st.sampled_from([*VALUES, "UNASSIGNED"]), min_size=1), st.booleans())
def test_a_row_counts_once_for_each_of_its_values(
    ask: Ask, written: Callable[[World], FactTables], world: World, wanted: frozenset[str], excludes: bool
) -> None:
    """However many parts of it a value has, and once in the total."""
    facts = written(world)

    def _is_wanted(value: str) -> bool:
        return wanted.isdisjoint(world.category.path(value)) is excludes

    selection = replace(ALL, categories=(CategoryFilter("team", wanted, excludes),))
    for asked, keeps in ((ALL, _any_value), (selection, _is_wanted)):
        grouping = Grouping(("category:team",), "day", UTC)
        found = ask(lambda cursor: world.reader(cursor, facts).aggregate(CHARGEBACKS, asked, grouping))  # noqa: B023
        of_rows = [
            (str(row.day), [value for value in of_row if keeps(value)])
            for row, of_row in zip(world.bill, naive_flows(world.naive, world.bill), strict=True)
        ]
        assert {
            (bucket["time_bucket"][:10], bucket["dimensions"]["category:team"]): bucket["row_count"]
            for bucket in found.buckets
        } == Counter((day, value) for day, values in of_rows for value in values)
        assert found.totals["total_rows"] == sum(1 for _, values in of_rows if values)


def _flows(answer: Aggregate) -> dict[Any, Flow]:
    """The flows of each bucket, without what is nothing; the totals are those of the buckets."""
    found: dict[Any, Flow] = {}
    for bucket in answer.buckets:
        direct, came, went, whole = (
            to_units(Decimal(bucket[name])) for name in ("direct_amount", "shared_in", "shared_out", "total_amount")
        )
        assert whole == direct + came - went
        if direct or came or went:
            found[bucket["time_bucket"][:10], *bucket["dimensions"].values()] = (direct, came, went)
    assert to_units(Decimal(answer.totals["total_amount"])) == sum(total(flow) for flow in found.values())
    return found


@settings(suppress_health_check=_written_once, max_examples=50)
@given(WORLDS, st.frozensets(st.sampled_from(VALUES), min_size=1))
def test_lists_and_files_show_the_parts_of_each_row(
    ask: Ask, written: Callable[[World], FactTables], world: World, wanted: frozenset[str]
) -> None:
    """A list shows rows whole, with the share of each value; a file has one row for each part."""
    facts = written(world)
    shares = [world.naive.decided(row.subject, row.day)[1] for row in world.bill]
    parts = [
        [(value, share, largest_remainder(row.units, of_row)[value]) for value, share in sorted(of_row.items())]
        for row, of_row in zip(world.bill, shares, strict=True)
    ]

    def _is_wanted(value: str) -> bool:
        return not wanted.isdisjoint(world.category.path(value))

    def _listed(selection: Selection) -> dict[int, list[tuple[str, Fraction, int]]]:
        items, count = ask(lambda cursor: world.reader(cursor, facts).list_rows(CHARGEBACKS, selection, Page(0, 100)))
        assert count == len(items)
        return {item["metadata"]["portion"]: _shown(item["categories"]["team"]) for item in items}

    selection = replace(ALL, categories=(CategoryFilter("team", wanted),))
    assert _listed(ALL) == dict(enumerate(parts))
    assert _listed(selection) == {
        number: each for number, each in enumerate(parts) if any(_is_wanted(value) for value, _, _ in each)
    }
    for asked, keeps in ((ALL, _any_value), (selection, _is_wanted)):
        columns = ("identity_id", "amount", "category:team", "category_share")
        file = ask(partial(_file, world, facts, asked, columns))
        found = sorted((row[0], row[2], Fraction(row[3]), to_units(Decimal(row[1]))) for row in file)
        assert found == sorted(
            (row.identity_id, value, share, units)
            for row, of_row in zip(world.bill, parts, strict=True)
            for value, share, units in of_row
            if keeps(value)
        )


def _shown(values: list[dict[str, str]]) -> list[tuple[str, Fraction, int]]:
    return [(each["value"], Fraction(each["category_share"]), to_units(Decimal(each["amount"]))) for each in values]


def _file(
    world: World, facts: FactTables, selection: Selection, columns: tuple[str, ...], cursor: Cursor
) -> list[list[str]]:
    content = b"".join(world.reader(cursor, facts).export(CHARGEBACKS, selection, columns))
    return list(csv.reader(io.StringIO(content.decode())))[1:]
