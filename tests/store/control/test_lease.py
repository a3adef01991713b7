"""One run per tenant at a time; a process that has lost the lease writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from chargeback.errors import LeaseHeld, LeaseLost
from chargeback.model.days import utc_now
from chargeback.store.control import schema
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import read_days, save_day
from chargeback.store.control.lease import EXPIRY, Lease, LeaseOwner, acquire, clear_holder, is_held, resume
from tests.support.clock import FAKED
from tests.support.databases import migrated_database

#: Tries to take the lease of a database; prints by how many seconds the clock is ahead of the server's, and the result.
_TAKE = """
import sys
from chargeback.errors import LeaseHeld
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.lease import LeaseOwner, acquire
database = ControlDatabase(sys.argv[1])
print(round(-database.clock().ahead.total_seconds(), -1).__trunc__())
try:
    acquire(database, LeaseOwner.this_process())
    print("taken")
except LeaseHeld:
    print("held")
"""


def expire(database: ControlDatabase) -> None:
    """Let the present lease expire."""
    with database.write() as connection:
        connection.execute(update(schema.tenant).values(lease_expires_at=utc_now() - timedelta(seconds=1)))


def test_a_held_lease_cannot_be_taken(database: ControlDatabase, lease: Lease) -> None:
    """While a run holds the lease no other begins; after its release, the next run has the next epoch."""
    with pytest.raises(LeaseHeld):
        acquire(database, LeaseOwner.this_process())
    lease.release()
    assert acquire(database, LeaseOwner.this_process()).epoch == lease.epoch + 1


def test_one_of_many_contenders_gets_it(database: ControlDatabase) -> None:
    """Of any number of simultaneous contenders, one gets the lease."""

    def attempt(_: int) -> int | None:
        try:
            return acquire(database, LeaseOwner.this_process()).epoch
        except LeaseHeld:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(attempt, range(8)), key=str) == [1, *[None] * 7]


def test_an_expired_lease_is_taken_over_and_its_owner_writes_nothing(database: ControlDatabase, lease: Lease) -> None:
    """A worker whose lease has expired and was taken over is refused in every transaction."""
    expire(database)
    successor = acquire(database, LeaseOwner.this_process())
    with pytest.raises(LeaseLost), lease.write() as connection:
        save_day(connection, date(2026, 1, 1), billing_gathered=True)
    assert lease.lost.is_set()
    with pytest.raises(LeaseLost):
        lease.renew()
    lease.release()
    successor.renew()
    with database.read() as connection:
        assert read_days(connection) == []


def test_an_expired_lease_that_nobody_took_is_still_ones_own(database: ControlDatabase, lease: Lease) -> None:
    """An expired lease can be renewed if no other process has taken it."""
    expire(database)
    lease.renew()
    with pytest.raises(LeaseHeld):
        acquire(database, LeaseOwner.this_process())


@pytest.mark.usefixtures("process")
def test_a_dead_owner_of_this_host_is_taken_over_at_once(database: ControlDatabase) -> None:
    """The lease of a process that is known to be dead is free at once."""
    program = "from chargeback.store.control.lease import LeaseOwner; print(LeaseOwner.this_process())"
    dead = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    owner = LeaseOwner.parse(dead)
    assert owner is not None
    assert owner.is_alive() is False
    acquire(database, owner)
    assert acquire(database, LeaseOwner.this_process()).epoch == 2


def test_an_owner_of_another_host_is_not_judged(database: ControlDatabase) -> None:
    """Nothing is known of a process on another host except its lease."""
    elsewhere = replace(LeaseOwner.this_process(), boot_id="another", pid=2**22)
    assert elsewhere.is_alive() is None
    acquire(database, elsewhere)
    with pytest.raises(LeaseHeld):
        acquire(database, LeaseOwner.this_process())


def test_an_owner_in_another_container_is_not_judged() -> None:
    """Containers of one host share its boot id, and may have the same process ids."""
    own = LeaseOwner.this_process()
    boot, _, namespace = own.boot_id.partition(" ")
    assert namespace.startswith("pid:[")
    assert replace(own, pid=2**22).is_alive() is False
    assert replace(own, boot_id=f"{boot} pid:[1]", pid=2**22).is_alive() is None


def test_a_lease_passes_from_parent_to_child(database: ControlDatabase, lease: Lease) -> None:
    """The child continues the epoch under its own name; a lost lease cannot be continued."""
    child = replace(LeaseOwner.this_process(), token="child")
    continued = resume(database, child, lease.epoch)
    with database.read() as connection:
        assert connection.execute(select(schema.tenant.c.lease_owner)).scalar() == str(child)
    continued.release()
    with pytest.raises(LeaseLost):
        resume(database, child, lease.epoch)


def test_readers_see_where_the_run_is(database: ControlDatabase, lease: Lease) -> None:
    """Stage and date are shown while the lease is held, and gone afterwards."""
    lease.show("calculating", date(2026, 1, 1))
    shown = select(schema.tenant.c.stage, schema.tenant.c.stage_date)
    with database.read() as connection:
        assert tuple(connection.execute(shown).one()) == ("calculating", date(2026, 1, 1))
    lease.release()
    with database.read() as connection:
        assert tuple(connection.execute(shown).one()) == (None, None)


@pytest.mark.usefixtures("process")
def test_another_clock_breaks_no_lease(tmp_path: Path) -> None:
    """If a clock is far ahead, the lease of another host is still held: the server's clock decides."""
    with migrated_database("postgresql", tmp_path) as address:
        with closing(ControlDatabase(address)) as database:
            acquire(database, LeaseOwner("elsewhere", "another boot", 1, "1", "token"))
        words = ["faketime", "-f", "+10m", sys.executable, "-c", _TAKE, address]
        ran = subprocess.run(words, env=os.environ | FAKED, capture_output=True, text=True, timeout=60, check=False)
        assert ran.stdout.split() == ["600", "held"], ran.stderr


def test_an_unreadable_owner_holds_until_it_expires() -> None:
    """An owner in an unknown format holds the lease until it expires."""
    now = utc_now()
    assert is_held("somebody", now + EXPIRY, now)
    assert not is_held("somebody", now, now)
    assert not is_held(None, now + EXPIRY, now)


def test_a_lease_from_a_clock_that_was_put_back_holds_nobody_up() -> None:
    """A lease that ends too far in the future is free, unless its owner is known to be alive."""
    now = utc_now()
    elsewhere = replace(LeaseOwner.this_process(), boot_id="another boot")
    assert not is_held(str(elsewhere), now + timedelta(days=1), now)
    assert is_held(str(LeaseOwner.this_process()), now + timedelta(days=1), now)


def test_a_restored_database_has_no_holder(database: ControlDatabase, lease: Lease) -> None:
    """The holder at the time of the backup blocks no run, and epochs continue."""
    with database.write() as connection:
        clear_holder(connection)
    assert acquire(database, LeaseOwner.this_process()).epoch == lease.epoch + 1
