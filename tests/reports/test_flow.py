"""Flows of costs between the values of columns."""

from __future__ import annotations

from datetime import date
from typing import Any

from chargeback.model.days import instants
from chargeback.reports.flow import Flow, flow
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.selection import Selection
from tests.support.facts import Share, write_shares
from tests.support.readers import Read

DAY, BEFORE = date(2026, 1, 2), date(2026, 1, 1)
NOW = Selection(instants(DAY, DAY))


def test_links_join_the_values_of_neighbouring_columns(read: Read, facts: FactTables) -> None:
    """Listed values have a node each, and the others share the last node of their column; links have both periods."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "5", resource="lkc-1"),
            Share(DAY, "sa-2", "3", resource="lkc-1"),
            Share(DAY, "sa-2", "2", resource="lkc-2", environment=None),
            Share(BEFORE, "sa-3", "4", resource="lkc-3"),
        ],
    )
    by = ("environment_id", "resource_id", "identity_id")
    found: Flow = read(lambda reader: flow(reader, NOW, instants(BEFORE, BEFORE), by, (9, 1, 2)))
    assert [[item.value for item in column.items] for column in found.columns] == [
        ["env-1", None],
        ["lkc-1"],
        ["sa-1", "sa-2"],
    ]
    links: dict[Any, Any] = {(each.source, each.target): (each.amount, each.previous) for each in found.links}
    assert links == {
        (0, 2): (8, 0),
        (0, 3): (0, 4),
        (1, 3): (2, 0),
        (2, 4): (5, 0),
        (2, 5): (3, 0),
        (3, 5): (2, 0),
        (3, 6): (0, 4),
    }


def test_nothing_flows_where_nothing_is(read: Read) -> None:
    """Without rows, there are no values and no links."""
    found: Flow = read(lambda reader: flow(reader, NOW, None, ("resource_id", "tag:team"), (5, 5)))
    assert found.links == ()
    assert [column.items for column in found.columns] == [(), ()]
