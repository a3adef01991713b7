"""A row has the tags of its UTC day, in every query."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from chargeback.model.dated import DatedValue, Period
from chargeback.model.days import InstantRange, instants
from chargeback.model.inventory import UNTAGGED
from chargeback.reports.search import EntityCosts, entity_costs
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.chargebacks import allocation_issues
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.paging import Order, Page
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, TagFilter
from chargeback.store.queries.sums import daily_sums_by, tag_coverage
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, in_list_order, new_facts, write_shares
from tests.support.laws import examples
from tests.support.readers import Read
from tests.support.topics import TopicShare, write_topic_shares

FIRST = date(2026, 1, 25)
DAYS = days_from(FIRST, 14)
ALL = Selection(instants(DAYS[0], DAYS[-1]))
UTC, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
IDENTITIES, RESOURCES, KEYS = ("sa-1", "sa-2", "UNALLOCATED"), ("lkc-1", "lkc-2"), ("env", "team")
TOPICS = ("orders", "returns")

#: The values of a key of an entity: (value, first day, day after the last).
Spell = tuple[str, date | None, date | None]
#: Values by entity, then by key.
Spells = Mapping[str, Mapping[str, Sequence[Spell]]]


@dataclass(frozen=True)
class RandomTags:
    """Tags of some identities and resources."""

    identities: Spells
    resources: Spells

    def of(self, identity: str, resource: str, day: date) -> dict[str, str]:
        """Return the tags of a row, by checking each of them."""
        found: dict[str, str] = {}
        for spells in (self.resources.get(resource, {}), self.identities.get(identity, {})):
            for key, values in spells.items():
                for value, first, end in values:
                    if (first is None or day >= first) and (end is None or day < end):
                        found[key] = value
        return dict(sorted(found.items()))

    def index(self) -> TagIndex:
        """Return the tags as queries use them."""
        return TagIndex(_indexed(self.identities), _indexed(self.resources))


def _indexed(spells: Spells) -> dict[str, dict[str, tuple[DatedValue, ...]]]:
    return {
        entity: {
            key: tuple(DatedValue(value, Period(first, end)) for value, first, end in values)
            for key, values in of_entity.items()
            if values
        }
        for entity, of_entity in spells.items()
    }


@st.composite
def spells(draw: st.DrawFn) -> list[Spell]:
    """Draw values on days that do not overlap, with or without gaps, or one without dates."""
    ends = sorted(draw(st.sets(st.sampled_from(DAYS), max_size=3)))
    values = [draw(st.sampled_from(["a", "b", "c=;", None])) for _ in range(len(ends) + 1)]
    return [
        (value, first, end)
        for value, first, end in zip(values, [None, *ends], [*ends, None], strict=True)
        if value is not None
    ]


def _tags_of(entities: Sequence[str]) -> st.SearchStrategy[Spells]:
    by_key = st.dictionaries(st.sampled_from(KEYS), spells(), max_size=2)
    return st.dictionaries(st.sampled_from(entities), by_key, max_size=3)


random_tags = st.builds(
    RandomTags, _tags_of(IDENTITIES), _tags_of((*RESOURCES, *(f"lkc-1:topic:{name}" for name in TOPICS)))
)
shares = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(DAYS),
        identity=st.sampled_from(IDENTITIES),
        amount=st.decimals("0", "99999999", places=12).map(str),
        resource=st.sampled_from(RESOURCES),
        cost_type=st.sampled_from(["usage", "shared"]),
        hour=st.sampled_from([0, 23]),
        detail=st.sampled_from(["USAGE_RATIO_ALLOCATION", "NO_OWNER_LOCATED"]),
    ),
    min_size=1,
    max_size=25,
)
filters = st.builds(
    TagFilter,
    key=st.sampled_from(KEYS),
    values=st.none() | st.sets(st.sampled_from(["a", "b", "c=;", UNTAGGED]), min_size=1).map(frozenset),
    excludes=st.booleans(),
)
PROPERTY = settings(max_examples=examples(40), deadline=None, database=None)


def _matches(tag: TagFilter, found: Mapping[str, str]) -> bool:
    value = found.get(tag.key, UNTAGGED)
    return (value != UNTAGGED if tag.values is None else value in tag.values) != tag.excludes


def _sums(rows: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> dict[Any, Decimal]:
    sums: dict[Any, Decimal] = defaultdict(Decimal)
    for row in rows:
        sums[key(row)] += row["amount"]
    return sums


def _field(tags: Mapping[str, str]) -> str:
    marked = {key: value.replace("=", "\\=").replace(";", "\\;") for key, value in tags.items()}
    return ";".join(f"{key}={value}" for key, value in marked.items())


@given(made=shares, tags=random_tags, tag=filters, zone=st.sampled_from([UTC, BERLIN]))
@seed(8)
@PROPERTY
def test_a_row_has_the_same_tags_everywhere(
    read: Read,
    tmp_path_factory: pytest.TempPathFactory,
    made: list[Share],
    tags: RandomTags,
    tag: TagFilter,
    zone: ZoneInfo,
) -> None:
    """In lists, files, sums and filters, from rows or partials, a row has the tags that a naive check finds."""
    facts = new_facts(tmp_path_factory.mktemp("facts"))
    made = [replace(share, portion=number) for number, share in enumerate(made)]
    write_shares(facts, made)
    rows = in_list_order(made)
    for row in rows:
        row["tags"] = tags.of(row["identity_id"], row["resource_id"], row["date"])
    index = tags.index()

    def _of(job: Callable[[TenantReader], Any]) -> Any:
        return read(job, index, facts)

    _check_lists(_of, rows, tag)
    _check_files(_of, rows, tag)
    _check_sums(_of, rows, tag, zone)
    _check_dimensions(_of, rows, tag)
    _check_coverage(_of, rows)


def _check_lists(ask: Callable[..., Any], rows: list[dict[str, Any]], tag: TagFilter) -> None:
    selected = replace(ALL, tags=(tag,))
    expected = [(row["portion"], row["tags"]) for row in rows if _matches(tag, row["tags"])]
    for selection, wanted in ((ALL, [(row["portion"], row["tags"]) for row in rows]), (selected, expected)):
        for order in (None, Order("amount", descending=True)):
            found, total = ask(lambda reader, s=selection, o=order: reader.list_rows(CHARGEBACKS, s, Page(0, 100), o))
            listed = [(item["metadata"]["portion"], item["tags"]) for item in found]
            assert total == len(wanted)
            if order is None:
                assert listed == wanted
            assert sorted(listed, key=lambda each: each[0]) == sorted(wanted, key=lambda each: each[0])
    issues, _ = ask(lambda reader: allocation_issues(reader, selected))
    unlike = [row for row in rows if _matches(tag, row["tags"]) and row["allocation_detail"] == "NO_OWNER_LOCATED"]
    assert sum(issue["total_cost"] for issue in issues) == sum(row["amount"] for row in unlike)


def _check_files(ask: Callable[..., Any], rows: list[dict[str, Any]], tag: TagFilter) -> None:
    selection = replace(ALL, tags=(tag,))
    wanted = [row for row in rows if _matches(tag, row["tags"])]
    text = ask(lambda reader: b"".join(reader.export(CHARGEBACKS, selection, ["tags", "amount"]))).decode()
    found = [(row["tags"], Decimal(row["amount"])) for row in csv.DictReader(io.StringIO(text, newline=""))]
    assert found == [(_field(row["tags"]), row["amount"]) for row in wanted]
    monthly = ask(lambda reader: b"".join(reader.export(CHARGEBACKS, selection, per="month"))).decode()
    summed = [
        ((row["timestamp"][:7], row["resource_id"], row["identity_id"], row["cost_type"], row["tags"]), row["amount"])
        for row in csv.DictReader(io.StringIO(monthly, newline=""))
    ]
    expected = _sums(
        wanted,
        lambda row: (
            str(row["date"])[:7],
            row["resource_id"],
            row["identity_id"],
            row["cost_type"],
            _field(row["tags"]),
        ),
    )
    assert {key: Decimal(amount) for key, amount in summed} == expected
    assert len(summed) == len(expected)


def _check_sums(ask: Callable[..., Any], rows: list[dict[str, Any]], tag: TagFilter, zone: ZoneInfo) -> None:
    window = instants(DAYS[1], DAYS[-2], zone)
    selection = Selection(window, tags=(tag,))
    inside = [row for row in rows if window.start <= row["timestamp"] < window.end and _matches(tag, row["tags"])]
    # With a tag there are partial sums by resource, but none by type of cost.
    for by in ("resource_id", "cost_type"):
        names = (by, "tag:team", "tag:env")
        grouping = Grouping(names, "month", zone)
        found = ask(lambda reader, g=grouping: reader.aggregate(CHARGEBACKS, selection, g))
        sums = {tuple(each["dimensions"].values()): Decimal(each["total_amount"]) for each in _one_month(found.buckets)}
        expected: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
        for row in inside:
            expected[row[by], *_teams(row)] += row["amount"]
        assert sums == expected
    by_day = ask(lambda reader: daily_sums_by(reader, CHARGEBACKS, replace(ALL, tags=(tag,)), ("tag:team",), DAYS))
    everywhere = [row for row in rows if _matches(tag, row["tags"])]
    assert by_day == _sums(everywhere, lambda row: (row["date"], (row["tags"].get("team", UNTAGGED),)))


def _one_month(buckets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the buckets of two months added up."""
    sums: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    names = tuple(buckets[0]["dimensions"]) if buckets else ()
    for each in buckets:
        sums[tuple(each["dimensions"].values())] += Decimal(each["total_amount"])
    return [{"dimensions": dict(zip(names, key, strict=True)), "total_amount": amount} for key, amount in sums.items()]


def _teams(row: dict[str, Any]) -> tuple[str, str]:
    return row["tags"].get("team", UNTAGGED), row["tags"].get("env", UNTAGGED)


def _check_dimensions(ask: Callable[..., Any], rows: list[dict[str, Any]], tag: TagFilter) -> None:
    """Check sums of two periods by a column that no partial sums have together with the columns of a tag."""
    windows = [instants(DAYS[0], DAYS[6]), instants(DAYS[7], DAYS[-1])]

    def _selected(reader: TenantReader, *by: str) -> list[Any]:
        keys = keys_of(CHARGEBACKS, by)
        sums = reader.sums(Sums(CHARGEBACKS, Selection(windows[0], tags=(tag,)), keys, periods=tuple(windows)))
        names = ", ".join(f"d{number}" for number in range(len(by)))
        return sums.rows(f"SELECT period, {names}, sum(total) FROM sums GROUP BY ALL")

    for column in ("cost_type", "identity_id"):
        found = ask(lambda reader, column=column: _selected(reader, column, "tag:team"))
        expected: dict[tuple[int, str, str], Decimal] = defaultdict(Decimal)
        for row in rows:
            if _matches(tag, row["tags"]):
                expected[_period(row, windows), row[column], row["tags"].get("team", UNTAGGED)] += row["amount"]
        assert {tuple(row[:-1]): row[-1] for row in found} == expected


def _period(row: dict[str, Any], windows: Sequence[InstantRange]) -> int:
    return next(n for n, window in enumerate(windows) if window.start <= row["timestamp"] < window.end)


def _check_coverage(ask: Callable[..., Any], rows: list[dict[str, Any]]) -> None:
    whole = sum((row["amount"] for row in rows), Decimal(0))
    shares = ask(lambda reader: tag_coverage(reader, ALL.window, KEYS))
    for key in KEYS:
        part = sum((row["amount"] for row in rows if key in row["tags"]), Decimal(0))
        expected = None if whole <= 0 else Decimal(round(Fraction(part) / Fraction(whole) * 10_000)) / 10_000
        assert shares[key] == expected
    costs: EntityCosts = ask(lambda reader: entity_costs(reader, ALL.window))
    expected_costs: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in rows:
        for pair in row["tags"].items():
            expected_costs[pair] += row["amount"]
    assert costs.tags == expected_costs
    assert costs.identities == _sums(rows, lambda row: row["identity_id"])


@given(tags=random_tags, tag=filters)
@seed(9)
@PROPERTY
def test_topics_have_the_tags_of_their_days(
    read: Read, tmp_path_factory: pytest.TempPathFactory, tags: RandomTags, tag: TagFilter
) -> None:
    """A topic is a resource and has no identity."""
    facts = new_facts(tmp_path_factory.mktemp("facts"))
    made = [TopicShare(day, name, f"{number}.5") for number, day in enumerate(DAYS) for name in TOPICS]
    write_topic_shares(facts, made)
    expected: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for share in made:
        found = tags.of("", f"lkc-1:topic:{share.topic}", share.day)
        if _matches(tag, found):
            expected[(share.topic, found.get("team", UNTAGGED))] += Decimal(share.amount)
    grouping = Grouping(("topic_name", "tag:team"), "month", UTC)
    answer = read(
        lambda reader: reader.aggregate(TOPIC_ATTRIBUTIONS, replace(ALL, tags=(tag,)), grouping), tags.index(), facts
    )
    buckets = _one_month(answer.buckets)
    assert {tuple(each["dimensions"].values()): each["total_amount"] for each in buckets} == expected


def test_tags_without_dates_are_looked_up_without_days() -> None:
    """Without dates the SQL uses no day, so that sums by dimension can be used; a single dated value changes that."""
    undated = TagIndex.undated({"sa-1": {"team": "a"}}, {"lkc-1": {"team": "b"}})
    condition = Selection(ALL.window, tags=(TagFilter("team"),)).condition(CHARGEBACKS, undated)
    assert "date" not in condition.sql
    dated = TagIndex({"sa-1": {"team": (DatedValue("a", Period(FIRST)),)}}, undated.resources)
    condition = Selection(ALL.window, tags=(TagFilter("team"),)).condition(CHARGEBACKS, dated)
    assert "holds_from <= date AND date < holds_to" in condition.sql


def test_an_entity_that_changes_hands(read: Read, facts: FactTables) -> None:
    """Costs until the day before the change belong to the former team, and later ones to the new team."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    moved = DAYS[4]
    tags = RandomTags({"sa-1": {"team": [("old", None, moved), ("new", moved, None)]}}, {})
    grouping = Grouping(("tag:team",), "month", UTC)
    found = read(lambda reader: reader.aggregate(CHARGEBACKS, ALL, grouping), tags.index()).buckets
    sums = [(each["time_bucket"], each["dimensions"]["tag:team"], each["total_amount"]) for each in found]
    assert sums == [
        ("2026-01-01", "new", "3.00"),
        ("2026-01-01", "old", "4.00"),
        ("2026-02-01", "new", "7.00"),
    ]
