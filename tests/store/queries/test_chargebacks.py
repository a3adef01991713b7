"""Chargeback rows, dimensions, dates and issues."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.chargebacks import allocation_issues, charged_entities, dimension, rows_of_line
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, equal
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import ECOSYSTEM, TENANT_ID, Share, write_shares
from tests.support.readers import Read

DAY, NEXT_DAY = date(2026, 1, 1), date(2026, 1, 2)
JANUARY = Selection(instants(DAY, date(2026, 1, 31)))
FIRST = Page(0, 100)


def _list(reader: TenantReader) -> Any:
    return reader.list_rows(CHARGEBACKS, JANUARY, FIRST)


def test_a_row_has_its_tags_and_metadata(read: Read, facts: FactTables) -> None:
    """Amounts are exact texts, the identity's tag takes precedence, and unknown values are not in the metadata."""
    write_shares(facts, [Share(DAY, "sa-1", "-0.000000000001", environment=None, usage=None)])
    tags = TagIndex.undated({"sa-1": {"team": "payer"}}, {"lkc-1": {"team": "operator", "env": "prod"}})
    (row,), total = read(_list, tags)
    assert total == 1
    assert row["amount"] == "-0.000000000001"
    assert row["timestamp"] == "2026-01-01T00:00:00Z"
    assert row["tags"] == {"env": "prod", "team": "payer"}
    assert row["metadata"] == {
        "chain_position": 0,
        "line_id": "line-1",
        "policy": "abc123",
        "portion": 0,
        "portion_share": "0.70",
    }


def test_a_dimension_is_found_by_its_id(read: Read, facts: FactTables) -> None:
    """Every row's dimension is found by its id; an unknown id is None."""
    write_shares(facts, [Share(DAY, "sa-1", "1"), Share(DAY, "sa-2", "1")])
    rows, _ = read(_list)
    for row in rows:
        found = read(lambda reader, wanted=row["dimension_id"]: dimension(reader, wanted))
        assert found == {name: row[name] for name in found}
        assert found["ecosystem"] == ECOSYSTEM
        assert found["tenant_id"] == TENANT_ID
    assert read(lambda reader: dimension(reader, 1)) is None


def test_nothing_was_ever_written(read: Read, facts: FactTables) -> None:
    """Empty tables have no dates, rows, dimensions or issues."""
    assert read(lambda reader: reader.dates(CHARGEBACKS)) == []
    assert read(_list) == ([], 0)
    assert read(lambda reader: allocation_issues(reader, JANUARY, FIRST)) == ([], 0)
    assert read(lambda reader: dimension(reader, 1)) is None


def test_dates_are_the_days_with_rows(read: Read, facts: FactTables) -> None:
    """Each day with rows is listed once, ascending."""
    write_shares(facts, [Share(date(2026, 1, day), "sa-1", "1") for day in (3, 1, 1, 2)])
    assert read(lambda reader: reader.dates(CHARGEBACKS)) == [date(2026, 1, day) for day in (1, 2, 3)]


def test_issues_are_summed_over_time(read: Read, facts: FactTables) -> None:
    """Only rows that were not allocated as intended are issues; usage and shared cost add up to the total."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1.5", detail="NO_METRICS_LOCATED", cost_type="shared"),
            Share(DAY, "sa-1", "2", detail="NO_METRICS_LOCATED"),
            Share(date(2026, 1, 2), "sa-1", "0.25", detail="NO_METRICS_LOCATED", cost_type="shared"),
            Share(DAY, "UNALLOCATED", "9", detail="NO_IDENTITIES_LOCATED", cost_type="shared"),
            Share(DAY, "sa-1", "100"),
        ],
    )
    items, total = read(lambda reader: allocation_issues(reader, JANUARY, FIRST))
    assert total == 2
    assert [(i["identity_id"], i["row_count"], i["usage_cost"], i["shared_cost"], i["total_cost"]) for i in items] == [
        ("UNALLOCATED", 1, 0, 9, 9),
        ("sa-1", 3, 2, Decimal("1.75"), Decimal("3.75")),
    ]
    past = read(lambda reader: allocation_issues(reader, JANUARY, Page(100, 100)))
    assert past == ([], 2)


WINDOW = instants(DAY, DAY)


def test_every_entity_once(read: Read, facts: FactTables) -> None:
    """Each resource and identity of the selected rows is returned once, including UNALLOCATED."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1"),
            Share(DAY, "sa-1", "1", resource="lkc-2"),
            Share(DAY, "UNALLOCATED", "1"),
            Share(date(2026, 1, 2), "sa-9", "1"),
        ],
    )
    everyone = read(lambda reader: charged_entities(reader, Selection(WINDOW)))
    assert sorted(everyone) == [
        ("identity", "UNALLOCATED"),
        ("identity", "sa-1"),
        ("resource", "lkc-1"),
        ("resource", "lkc-2"),
    ]
    unallocated = Selection(WINDOW, equal(identity_id="UNALLOCATED"))
    assert ("resource", "lkc-2") not in read(lambda reader: charged_entities(reader, unallocated))
    nobody = Selection(instants(date(2025, 1, 1), DAY), equal(identity_id="nobody"))
    assert read(lambda reader: charged_entities(reader, nobody)) == []


def test_rows_of_one_line(facts: FactTables, read: Read) -> None:
    """Rows of other lines or days are not returned, and none for a day without rows."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1", portion=1),
            Share(DAY, "sa-1", "1", portion=2),
            Share(DAY, "sa-2", "1", line="other"),
            Share(NEXT_DAY, "sa-3", "1"),
        ],
    )
    columns = ("identity_id", "portion")
    assert read(lambda reader: rows_of_line(reader, CHARGEBACKS, DAY, "line-1", columns)) == {("sa-1", 1), ("sa-1", 2)}
    assert read(lambda reader: rows_of_line(reader, CHARGEBACKS, date(2026, 1, 3), "line-1", columns)) == set()
