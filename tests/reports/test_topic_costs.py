"""Topics: their costs in two periods, and their traffic."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from chargeback.model.days import instants
from chargeback.model.usage import USAGE
from chargeback.reports.topic_costs import BYTES_IN, BYTES_OUT, OtherTopics, TopicCosts, topic_costs
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE, FactTables
from chargeback.store.queries.selection import Selection, equal
from tests.support.facts import replace_day
from tests.support.readers import Read
from tests.support.topics import TopicShare, write_topic_shares

DAY, BEFORE = date(2026, 1, 2), date(2026, 1, 1)
NOW = Selection(instants(DAY, DAY))


@pytest.fixture
def topics(facts: FactTables) -> FactTables:
    """Return two days of topics: one measured without traffic, one not measured, one in an unmeasured cluster."""
    write_topic_shares(
        facts,
        [
            TopicShare(DAY, "orders", "5"),
            TopicShare(DAY, "orders", "1", product="KAFKA_STORAGE", line="2"),
            TopicShare(DAY, "silent", "2"),
            TopicShare(DAY, "unknown", "1.5"),
            TopicShare(DAY, "__UNATTRIBUTED__", "1"),
            TopicShare(DAY, "elsewhere", "0.5", cluster="lkc-2"),
            TopicShare(BEFORE, "gone", "4"),
            TopicShare(BEFORE, "orders", "3"),
        ],
    )
    measured = [
        {"date": DAY, "measure": measure, "resource_id": "lkc-1", "subject": subject, "value": Decimal(value)}
        for measure, subject, value in (
            (BYTES_IN, "__UNATTRIBUTED__", "0"),
            (BYTES_IN, "orders", "10"),
            (BYTES_IN, "silent", "0"),
            (BYTES_OUT, "orders", "20"),
            (BYTES_OUT, "silent", "0"),
        )
    ]
    replace_day(facts, TOPIC_USAGE_TABLE, DAY, pa.Table.from_pylist(measured, schema=USAGE))
    return facts


def test_two_periods(read: Read, topics: FactTables) -> None:
    """The largest topics are listed, and the rest is one sum, in both periods."""
    previous = instants(BEFORE, BEFORE)
    found: TopicCosts = read(lambda reader: topic_costs(reader, NOW, previous, 2, traffic=False))
    named = [(item.topic_name, int(item.amount), item.previous) for item in found.items]
    assert named == [("orders", 6, Decimal(3)), ("silent", 2, Decimal(0))]
    assert found.total == Decimal(11)
    assert found.other == OtherTopics(count=4, amount=Decimal(3), previous=Decimal(4))
    assert all(item.bytes_in is None for item in found.items)


def test_traffic_and_zombies(read: Read, topics: FactTables) -> None:
    """A topic with cost but without traffic is a zombie: it was measured at zero, or is missing while its cluster has
    measurements. In a cluster without measurements this is unknown, and the unattributed cost is never a zombie."""
    found: TopicCosts = read(lambda reader: topic_costs(reader, NOW, None, 50, traffic=True))
    assert [(item.topic_name, str(item.bytes_in), str(item.bytes_out), item.zombie) for item in found.items] == [
        ("orders", "10.000000", "20.000000", False),
        ("silent", "0.000000", "0.000000", True),
        ("unknown", "0.000000", "0.000000", True),
        ("__UNATTRIBUTED__", "None", "None", False),
        ("elsewhere", "None", "None", False),
    ]
    assert found.other is None


def test_half_of_the_traffic(read: Read, facts: FactTables) -> None:
    """If a cluster has only one of the two measures, the other one is unknown; a refund is not a zombie."""
    write_topic_shares(facts, [TopicShare(DAY, "a", "5"), TopicShare(DAY, "b", "-1")])
    row = {"date": DAY, "measure": BYTES_OUT, "resource_id": "lkc-1", "subject": "c", "value": Decimal(7)}
    replace_day(facts, TOPIC_USAGE_TABLE, DAY, pa.Table.from_pylist([row], schema=USAGE))
    found: TopicCosts = read(lambda reader: topic_costs(reader, NOW, None, 50, traffic=True))
    assert [(item.topic_name, str(item.bytes_in), str(item.bytes_out), item.zombie) for item in found.items] == [
        ("a", "None", "0.000000", True),
        ("b", "None", "0.000000", False),
    ]


def test_filters(read: Read, topics: FactTables) -> None:
    """Filters apply to both periods, and an empty result is valid."""
    storage = Selection(NOW.window, equal(product_type="KAFKA_STORAGE"))
    found: TopicCosts = read(lambda reader: topic_costs(reader, storage, instants(BEFORE, BEFORE), 5, traffic=True))
    assert [(item.topic_name, int(item.amount), item.previous) for item in found.items] == [("orders", 1, Decimal(0))]
    empty = Selection(instants(date(2020, 1, 1), date(2020, 1, 1)))
    nothing: TopicCosts = read(lambda reader: topic_costs(reader, empty, None, 5, traffic=True))
    assert nothing == TopicCosts(Decimal("0.000000000000"), (), None)
