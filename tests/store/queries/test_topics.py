"""Topic rows as questions see them; what the API makes of them is tested there."""

from __future__ import annotations

import csv
import io
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Aggregate, Grouping, aggregate
from chargeback.store.queries.filters import TagFilter
from chargeback.store.queries.paging import Page
from chargeback.store.queries.tags import TagBook
from chargeback.store.queries.topics import TOPICS, TopicFilters, topic_csv, topic_dates, topic_rows
from tests.store.queries.conftest import Ask
from tests.support.facts import days_from
from tests.support.topics import TopicShare, write_topic_shares

DAY = date(2026, 3, 28)
DAYS = days_from(DAY, 3)
UTC = ZoneInfo("UTC")
WINDOW = instants(DAYS[0], DAYS[-1])
BOOK = TagBook(
    identities={"lkc-1:topic:b": {"team": "not a topic's"}},
    resources={"lkc-1:topic:a": {"team": "x"}, "lkc-1": {"team": "y"}},
)


@pytest.fixture
def filled(facts: FactTables) -> FactTables:
    """Three days, two topics, every third hour."""
    write_topic_shares(
        facts,
        [TopicShare(day, topic, "0.000000000001", hour=hour) for day in DAYS for topic in "ab" for hour in (0, 3, 23)],
    )
    return facts


def _sums(ask: Ask, facts: FactTables, *by: str, **more: Any) -> Aggregate:
    grouping = Grouping(by, more.get("unit", "day"), more.get("zone", UTC))
    window, filters = more.get("window", WINDOW), more.get("filters", TopicFilters())
    answer: Aggregate = ask(
        lambda cursor: aggregate(cursor, facts, TOPICS, window, grouping, filters.condition(BOOK), BOOK)
    )
    return answer


def test_nothing_is_an_empty_answer(ask: Ask, facts: FactTables) -> None:
    """A tenant without topic rows has empty lists and sums of nothing."""
    assert ask(lambda cursor: topic_rows(cursor, facts, WINDOW, TopicFilters(), Page(0, 10))) == ([], 0)
    assert _sums(ask, facts, "topic_name") == Aggregate([], {"total_amount": "0.00", "total_rows": 0})
    assert topic_dates(facts) == []
    assert len(b"".join(ask(lambda cursor: list(topic_csv(cursor, facts, WINDOW)))).splitlines()) == 1


def test_a_zone_moves_the_days_and_agrees_with_the_file(ask: Ask, filled: FactTables) -> None:
    """List, sums and file of a range in another zone hold the same rows, over a change of the clock."""
    berlin = ZoneInfo("Europe/Berlin")
    window = instants(DAYS[1], DAYS[1], berlin)
    _, total = ask(lambda cursor: topic_rows(cursor, filled, window, TopicFilters(), Page(0, 10)))
    sums = _sums(ask, filled, "topic_name", window=window, zone=berlin)
    text = b"".join(ask(lambda cursor: [bytes(piece) for piece in topic_csv(cursor, filled, window)])).decode()
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
def test_tag_filters_look_at_the_topic_alone(ask: Ask, filled: FactTables, tag: TagFilter, rows: int) -> None:
    """Neither the cluster's tags nor those of an identity of that name count."""
    assert _sums(ask, filled, "tag:team", filters=TopicFilters(tags=(tag,))).totals["total_rows"] == rows


def test_two_tags_at_once(ask: Ask, filled: FactTables) -> None:
    """Groups by two tags stand side by side, and filters must all hold."""
    both = (TagFilter("team", frozenset(["x"])), TagFilter("other", frozenset(["UNTAGGED"])))
    sums = _sums(ask, filled, "tag:team", "tag:other", unit="month", filters=TopicFilters(tags=both))
    assert [each["dimensions"] for each in sums.buckets] == [{"tag:team": "x", "tag:other": "UNTAGGED"}]
