"""Any page of a list equals that of a full sort."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, TagFilter, equal
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, in_list_order, write_shares
from tests.support.readers import Read

TAGS = TagIndex.undated({"sa-1": {"team": "a"}, "sa-2": {"team": "b"}}, {"lkc-1": {"team": "b"}, "lkc-2": {"env": "x"}})
ANY = instants(date(2026, 3, 1), date(2026, 3, 1))
FILTERS = [
    Selection(ANY),
    Selection(ANY, equal(identity_id="sa-3")),
    Selection(ANY, equal(resource_id="lkc-2", cost_type="shared")),
    Selection(ANY, tags=(TagFilter("team", frozenset(["b"])),)),
    Selection(ANY, tags=(TagFilter("team", frozenset(["UNTAGGED"])),)),
    Selection(ANY, tags=(TagFilter("team"), TagFilter("env"))),
    Selection(ANY, tags=(TagFilter("nothing has it", frozenset(["UNTAGGED"])),)),
    Selection(ANY, equal(identity_id="nobody")),
]


def _shares() -> list[Share]:
    chance = random.Random(7)
    return [
        Share(
            day,
            f"sa-{chance.randrange(9)}",
            f"{chance.randrange(1, 10**6)}.{chance.randrange(10**9)}",
            resource=f"lkc-{chance.randrange(3)}",
            cost_type=chance.choice(["usage", "shared"]),
            hour=chance.choice([0, 0, 5, 23]),
            line=f"line-{number}",
        )
        for day in days_from(date(2026, 3, 25), 9)
        for number in range(chance.choice([0, 3, 40, 200]))
    ]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Denver"])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_every_page_equals_a_full_sort(read: Read, facts: FactTables, zone: str, filters: Selection) -> None:
    """Pages are computed from row counts of files; together they are the whole list, in order, without duplicates."""
    shares = _shares()
    write_shares(facts, shares)
    window = instants(date(2026, 3, 26), date(2026, 4, 1), ZoneInfo(zone))
    expected = [
        row for row in in_list_order(shares) if window.start <= row["timestamp"] < window.end and _matches(row, filters)
    ]
    for size in (7, 100, 1000):
        pages = -(-len(expected) // size) + 1
        found = []
        for number in range(pages):
            items, total = read(partial(_rows, replace(filters, window=window), Page(number * size, size)), TAGS)
            assert total == len(expected)
            found += items
        assert [_key(item) for item in found] == [_key(row) for row in expected]


def _rows(selection: Selection, page: Page, reader: TenantReader) -> Any:
    return reader.list_rows(CHARGEBACKS, selection, page)


def _matches(row: dict[str, Any], filters: Selection) -> bool:
    tags = TAGS.resolve(row["identity_id"], row["resource_id"], row["timestamp"].date())
    return all(row[each.column] in each.values for each in filters.columns) and all(
        tag.key in tags if tag.values is None else tags.get(tag.key, "UNTAGGED") in tag.values for tag in filters.tags
    )


def _key(item: dict[str, Any]) -> tuple[Any, ...]:
    line = item.get("line_id") or item["metadata"]["line_id"]
    return item["identity_id"], item["resource_id"], item["dimension_id"], line


def test_a_page_reads_its_own_days_only(read: Read, facts: FactTables) -> None:
    """A page does not open the file of a day whose rows are all before or after it."""
    days = days_from(date(2026, 1, 1), 3)
    write_shares(facts, [Share(day, "sa-1", "1", line=f"line-{number}") for day in days for number in range(2)])
    selection = Selection(instants(days[0], days[-1]))
    for outside in (days[0], days[2]):
        next((facts.root / CHARGEBACKS_TABLE).glob(f"date={outside}/*.parquet")).unlink()
    items, total = read(lambda reader: reader.list_rows(CHARGEBACKS, selection, Page(2, 2)))
    assert ([item["timestamp"][:10] for item in items], total) == ([str(days[1])] * 2, 6)


def test_a_filtered_page_reads_its_own_days_only(read: Read, facts: FactTables) -> None:
    """The rows of each day that match a filter are counted by the partial aggregates, once these are made."""
    days = days_from(date(2026, 1, 1), 3)
    write_shares(facts, [Share(day, who, "1", line=f"{who}-{n}") for day in days for who in ("a", "b") for n in (1, 2)])
    selection = Selection(instants(days[0], days[-1]), equal(identity_id="b"))
    every, total = read(lambda reader: reader.list_rows(CHARGEBACKS, selection, Page(0, 10)))
    for outside in (days[0], days[2]):
        next((facts.root / CHARGEBACKS_TABLE).glob(f"date={outside}/*.parquet")).unlink()
    assert read(lambda reader: reader.list_rows(CHARGEBACKS, selection, Page(2, 2))) == (every[2:4], total)
    assert total == len(every) == 6


def test_a_page_past_the_end_is_empty(read: Read, facts: FactTables) -> None:
    """The total is returned at any offset past the end."""
    write_shares(facts, [Share(date(2026, 1, 1), "sa-1", "1")])
    selection = Selection(instants(date(2026, 1, 1), date(2026, 1, 1)))
    far = Page(10**30, 100)
    assert read(lambda reader: reader.list_rows(CHARGEBACKS, selection, far)) == ([], 1)
