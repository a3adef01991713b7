"""The whole storage of one tenant."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa

from chargeback.model.usage import MEMBERS
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.tables import MEMBERS_TABLE, SCHEMAS
from tests.support.facts import tenant_store

DAY = date(2026, 1, 1)


def members(day: date) -> pa.Table:
    """Members of a day."""
    row = {"date": day, "resource_id": "lkc-1", "identity_id": "sa-1", "relation": "active"}
    return pa.Table.from_pylist([row], schema=MEMBERS)


def test_a_lease_is_newer_than_everything_that_was_written(tmp_path: Path) -> None:
    """A control database that was brought back from an earlier day gives no epoch that the fact tables know."""
    with tenant_store(tmp_path) as store:
        store.facts.replace_day(MEMBERS_TABLE, DAY, members(DAY), epoch=40)
        lease = store.acquire(LeaseOwner.this_process())
        assert lease.epoch == 41
        store.facts.replace_day(MEMBERS_TABLE, DAY, members(DAY), epoch=lease.epoch)
        lease.release()
        assert store.acquire(LeaseOwner.this_process()).epoch == 42


def test_a_lease_of_tables_that_cannot_be_read(tmp_path: Path) -> None:
    """A damaged log keeps nobody from the run that mends it."""
    with tenant_store(tmp_path) as store:
        for name in SCHEMAS:
            for entry in (store.facts.root / name / "_delta_log").glob("*.json"):
                entry.write_text("{")
        assert store.acquire(LeaseOwner.this_process()).epoch == 1
