"""A reader sees one tenant at one moment."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chargeback.errors import QueryTimeout
from chargeback.model.days import instants
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.readers import Read

DAYS = (date(2026, 1, 1), date(2026, 1, 2))
ALL = Selection(instants(*DAYS))


def test_a_write_meanwhile_is_seen_by_the_next_reader(read: Read, facts: FactTables) -> None:
    """All queries of a reader use the same version of a table."""
    write_shares(facts, [Share(DAYS[0], "sa-1", "1")])

    def _before_and_after(reader: TenantReader) -> tuple[int, int, list[date]]:
        _, before = reader.list_rows(CHARGEBACKS, ALL, Page(0, 10))
        write_shares(facts, [Share(DAYS[1], "sa-1", "1")])
        _, after = reader.list_rows(CHARGEBACKS, ALL, Page(0, 10))
        return before, after, reader.dates(CHARGEBACKS)

    assert read(_before_and_after) == (1, 1, [DAYS[0]])
    assert read(lambda reader: reader.dates(CHARGEBACKS)) == list(DAYS)


def test_it_is_opened_with_the_tags_of_now(engine: QueryEngine, tmp_path: Path) -> None:
    """A reader has the tags that were written before it was opened."""
    cache = LookupCaches()
    with tenant_store(tmp_path / "storage") as store:
        with open_reader(engine, store, CancellationToken(), cache) as reader:
            assert reader.tags.is_empty
        with store.control.write() as connection:
            create(connection, store.tenant_id, TagWrite("identity", "sa-1", "team", "x"), "me")
        with open_reader(engine, store, CancellationToken(), cache) as reader:
            assert reader.tags.resolve("sa-1", "lkc-1", date(2026, 1, 5)) == {"team": "x"}


def test_a_cancelled_token_opens_nothing(engine: QueryEngine, tmp_path: Path) -> None:
    """A token that expired in the queue is noticed before anything is read."""
    token = CancellationToken()
    token.cancel()
    with (
        tenant_store(tmp_path / "storage") as store,
        pytest.raises(QueryTimeout),
        open_reader(engine, store, token, LookupCaches()),
    ):
        pytest.fail("it must not open")
