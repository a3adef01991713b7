"""Sums for the graph, in both periods: by environment, resource, and payer or topic."""

from __future__ import annotations

from datetime import date

from chargeback.model.days import instants
from chargeback.reports.flow import PlacedCost, charged_costs, topic_costs_by_cluster
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.selection import Selection, equal
from tests.support.facts import Share, write_shares
from tests.support.readers import Read
from tests.support.topics import TopicShare, write_topic_shares

DAY, BEFORE = date(2026, 1, 2), date(2026, 1, 1)
NOW, EARLIER = Selection(instants(DAY, DAY)), instants(BEFORE, BEFORE)
ONE = 10**24


def test_charges_of_two_periods(read: Read, facts: FactTables) -> None:
    """An entity that has rows in one period only differs from one whose costs there are zero."""
    shares = [
        Share(DAY, "sa-1", "5"),
        Share(DAY, "sa-1", "-5", line="line-2"),
        Share(BEFORE, "sa-1", "3"),
        Share(DAY, "sa-2", "2", resource="lkc-2", environment=None),
        Share(BEFORE, "sa-3", "4"),
    ]
    write_shares(facts, shares)
    found = read(lambda reader: charged_costs(reader, NOW, EARLIER))
    assert sorted(found, key=lambda each: each.leaf) == [
        PlacedCost("env-1", "lkc-1", "sa-1", (0, 3 * ONE), (True, True)),
        PlacedCost(None, "lkc-2", "sa-2", (2 * ONE, 0), (True, False)),
        PlacedCost("env-1", "lkc-1", "sa-3", (0, 4 * ONE), (False, True)),
    ]
    assert len(read(lambda reader: charged_costs(reader, NOW, None))) == 2


def test_topics_of_two_periods(read: Read, facts: FactTables) -> None:
    """Topic rows are summed in the same way, with their filters."""
    rows = [TopicShare(DAY, "orders", "5"), TopicShare(BEFORE, "orders", "3"), TopicShare(BEFORE, "gone", "1")]
    write_topic_shares(facts, rows)
    found = read(lambda reader: topic_costs_by_cluster(reader, NOW, EARLIER))
    assert sorted(found, key=lambda each: each.leaf) == [
        PlacedCost("env-1", "lkc-1", "gone", (0, ONE), (False, True)),
        PlacedCost("env-1", "lkc-1", "orders", (5 * ONE, 3 * ONE), (True, True)),
    ]
    none = Selection(NOW.window, equal(topic_name="other"))
    assert read(lambda reader: topic_costs_by_cluster(reader, none, None)) == []
