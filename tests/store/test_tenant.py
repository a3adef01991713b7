"""The whole storage of one tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.model.usage import MEMBERS
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, MEMBERS_TABLE
from chargeback.store.queries.engine import CancellationToken
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.version import read_version
from chargeback.store.tenant import TenantStore
from tests.support.databases import migrated_database
from tests.support.days import set_chargebacks
from tests.support.facts import ECOSYSTEM, TENANT_ID, Share, replace_day, write_shares
from tests.support.objects import PLACES, new_place

DAY = date(2026, 1, 1)


def members(day: date) -> pa.Table:
    """Return members of a day."""
    row = {"date": day, "resource_id": "lkc-1", "identity_id": "sa-1", "relation": "active"}
    return pa.Table.from_pylist([row], schema=MEMBERS)


@pytest.fixture(params=PLACES)
def shared(request: pytest.FixtureRequest, tmp_path: Path, postgresql: str) -> Iterator[tuple[str, Place]]:
    """Yield the database and the facts of a tenant that several processes use, with its tables."""
    with migrated_database("postgresql", tmp_path) as address:
        place = new_place(request.param, tmp_path)
        yield address, place


def opened(address: str, place: Place) -> TenantStore:
    """Open the storage of a tenant as another process does."""
    return TenantStore.open(
        tenant_name="acme", tenant_id=TENANT_ID, ecosystem=ECOSYSTEM, connection_string=address, facts=place
    )


def run_elsewhere(address: str, place: Place) -> None:
    """Do what a run does, in a separate process: commit, record the day, and end."""
    with closing(opened(address, place)) as store:
        lease = store.acquire(LeaseOwner.this_process())
        write_shares(store.facts, [Share(DAY, "sa-1", "1")])
        with lease.write() as connection:
            set_chargebacks(connection, DAY)
        replace_day(store.facts, MEMBERS_TABLE, DAY, members(DAY))
        lease.release()


def test_what_a_run_committed_is_seen_when_it_ends(shared: tuple[str, Place]) -> None:
    """Another process sees the rows at once, in one version with the state of the day."""
    with closing(opened(*shared)) as reader:
        caches = LookupCaches()
        before = read_version(reader, CancellationToken(), caches)
        assert (before.control.last_calculated, before.snapshots[CHARGEBACKS_TABLE].rows) == (None, 0)
        assert reader.facts.snapshot(MEMBERS_TABLE).rows == 0
        run = get_context("spawn").Process(target=run_elsewhere, args=shared)
        run.start()
        while (version := read_version(reader, CancellationToken(), caches)).control.last_calculated is None:
            assert run.exitcode in {None, 0}
        assert version.snapshots[CHARGEBACKS_TABLE].rows == 1  # no later than the state, even while the run continues
        run.join()
        after = read_version(reader, CancellationToken(), caches)
        assert after.snapshots[MEMBERS_TABLE].rows == reader.facts.snapshot(MEMBERS_TABLE).rows == 1
