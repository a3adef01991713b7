"""Topic rows in queries; the API's use of them is tested there."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.selection import Selection, TagFilter
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import days_from
from tests.support.readers import Read
from tests.support.topics import TopicShare, write_topic_shares

DAY = date(2026, 3, 28)
DAYS = days_from(DAY, 3)
UTC = ZoneInfo("UTC")
ALL = Selection(instants(DAYS[0], DAYS[-1]))
TAGS = TagIndex.undated(
    identities={"lkc-1:topic:b": {"team": "not a topic's"}},
    resources={"lkc-1:topic:a": {"team": "x"}, "lkc-1": {"team": "y"}},
)


@pytest.fixture
def filled(facts: FactTables) -> FactTables:
    """Return tables with three days, two topics, and rows at three hours."""
    write_topic_shares(
        facts,
        [TopicShare(day, topic, "0.000000000001", hour=hour) for day in DAYS for topic in "ab" for hour in (0, 3, 23)],
    )
    return facts


def _sums(read: Read, *by: str, selection: Selection = ALL, **more: Any) -> Aggregate:
    grouping = Grouping(by, more.get("unit", "day"), more.get("zone", UTC))
    answer: Aggregate = read(lambda reader: reader.aggregate(TOPIC_ATTRIBUTIONS, selection, grouping), TAGS)
    return answer


def test_nothing_is_an_empty_answer(read: Read, facts: FactTables) -> None:
    """A tenant without topic rows has empty lists and zero sums."""
    assert read(lambda reader: reader.list_rows(TOPIC_ATTRIBUTIONS, ALL, Page(0, 10))) == ([], 0)
    assert _sums(read, "topic_name") == Aggregate([], {"total_amount": "0.00", "total_rows": 0})
    assert read(lambda reader: reader.dates(TOPIC_ATTRIBUTIONS)) == []
    assert len(b"".join(read(lambda reader: list(reader.export(TOPIC_ATTRIBUTIONS, ALL)))).splitlines()) == 1


def test_a_zone_moves_the_days_and_agrees_with_the_file(read: Read, filled: FactTables) -> None:
    """List, sums and file of a range in another zone have the same rows, across a change of the clock."""
    berlin = ZoneInfo("Europe/Berlin")
    selection = Selection(instants(DAYS[1], DAYS[1], berlin))
    _, total = read(lambda reader: reader.list_rows(TOPIC_ATTRIBUTIONS, selection, Page(0, 10)))
    sums = _sums(read, "topic_name", selection=selection, zone=berlin)
    text = read(lambda reader: b"".join(reader.export(TOPIC_ATTRIBUTIONS, selection))).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert total == sums.totals["total_rows"] == len(rows) == 6
    assert {each["time_bucket"] for each in sums.buckets} == {DAYS[1].isoformat()}
    assert sum(Decimal(row["amount"]) for row in rows) == Decimal(sums.totals["total_amount"])


@pytest.mark.parametrize(
    ("tag", "rows"),
    [
        (TagFilter("team"), 9),
        (TagFilter("team", frozenset(["x"])), 9),
        (TagFilter("team", frozenset(["y"])), 0),
        (TagFilter("team", frozenset(["UNTAGGED"])), 9),
        (TagFilter("team", frozenset(["x", "UNTAGGED"])), 18),
        (TagFilter("other", frozenset(["x"])), 0),
        (TagFilter("other", frozenset(["UNTAGGED"])), 18),
        (TagFilter("other"), 0),
    ],
)
def test_tag_filters_look_at_the_topic_alone(read: Read, filled: FactTables, tag: TagFilter, rows: int) -> None:
    """Tags of the cluster, or of an identity with the topic's name, do not count."""
    assert _sums(read, "tag:team", selection=replace(ALL, tags=(tag,))).totals["total_rows"] == rows


def test_two_tags_at_once(read: Read, filled: FactTables) -> None:
    """Groups by two tags have a column for each, and all filters must match."""
    both = (TagFilter("team", frozenset(["x"])), TagFilter("other", frozenset(["UNTAGGED"])))
    sums = _sums(read, "tag:team", "tag:other", unit="month", selection=replace(ALL, tags=both))
    assert [each["dimensions"] for each in sums.buckets] == [{"tag:team": "x", "tag:other": "UNTAGGED"}]
