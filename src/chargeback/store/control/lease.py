"""The lease: one run per tenant at a time, across all processes and machines.

A row names the owner, when the lease expires and its *epoch*, which grows at each takeover. A heartbeat renews it.
A run writes to the control database only in transactions that first check that the epoch is still its own. That is all
that it writes for others to see: a file is part of a table when such a transaction names it.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, func, select, update

from chargeback.errors import LeaseHeld, LeaseLost, StorageError
from chargeback.model.days import utc_now
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.schema import tenant

HEARTBEAT = timedelta(seconds=5)
EXPIRY = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """The process that holds a lease, identified so that a later process with the same pid differs."""

    host: str
    boot_id: str
    pid: int
    started: str
    token: str

    def __str__(self) -> str:
        return "/".join((self.host, self.boot_id, str(self.pid), self.started, self.token))

    @classmethod
    def this_process(cls) -> LeaseOwner:
        """Return the running process, with a new token for each lease."""
        pid = os.getpid()
        return cls(
            socket.gethostname().replace("/", "-"), _boot_id(), pid, _start_time(pid) or "", uuid.uuid4().hex[:12]
        )

    @classmethod
    def parse(cls, text: str) -> LeaseOwner | None:
        """Return the owner that a stored text names, or None if the text is not valid."""
        parts = text.split("/")
        if len(parts) != 5 or not parts[2].isdigit():
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3], parts[4])

    def is_alive(self) -> bool | None:
        """Return whether the process still runs, or None if that is unknown: on another host, or since before its last
        boot."""
        if not self.boot_id == _boot_id() != "":
            return None
        return _start_time(self.pid) == self.started


def _boot_id() -> str:
    """Return the id of this boot of the host, and of the namespace of process numbers: containers of one host share the
    boot, but each has its own process numbers."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {namespace}"
    except OSError:  # not Linux: a dead owner is only detected by its expired lease
        return ""


def _start_time(pid: int) -> str | None:
    """Return when a process started, in clock ticks since boot; None if there is no such process (or it is a
    zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else fields[19]


class Lease:
    """A held lease. Use :func:`acquire`; safe for use by several threads."""

    def __init__(self, database: ControlDatabase, owner: LeaseOwner, epoch: int) -> None:
        self._database = database
        self.owner = owner
        self.epoch = epoch
        self.lost = threading.Event()

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[Connection]:
        """Open a transaction during which the lease is held until it commits; a ``durable`` one survives a power
        failure once it has.

        Raises:
            LeaseLost: another process has taken over; nothing was written.
        """
        with self._database.write(durable=durable) as connection:
            self._renew(connection)
            yield connection

    def renew(self) -> None:
        """Extend the lease.

        Raises:
            LeaseLost: another process has taken over.
        """
        with self.write():
            pass

    def show(self, stage: str | None, day: date | None, done: int = 0, total: int = 0) -> None:
        """Publish the progress of the run, ``done`` of ``total`` days of a stage, and renew the lease."""
        with self.write() as connection:
            shown = {"stage": stage, "stage_date": day, "stage_done": done, "stage_total": total}
            connection.execute(update(tenant).values(shown))

    def hand_over(self, owner: LeaseOwner) -> Lease:
        """Return the same lease with another owner of the same epoch: one process prepares a run, its child executes
        it."""
        with self.write() as connection:
            connection.execute(update(tenant).values(lease_owner=str(owner)))
        return Lease(self._database, owner, self.epoch)

    def release(self) -> None:
        """Release the lease; do nothing if it was taken over."""
        with self._database.write() as connection:
            connection.execute(
                update(tenant)
                .where(tenant.c.lease_epoch == self.epoch)
                .values(lease_owner=None, lease_expires_at=None, stage=None, stage_date=None)
            )

    def _renew(self, connection: Connection) -> None:
        renewed = connection.execute(
            update(tenant)
            .where(tenant.c.lease_epoch == self.epoch, tenant.c.lease_owner.is_not(None))
            .values(lease_expires_at=_now(connection) + EXPIRY)
        )
        if renewed.rowcount != 1:
            self.lost.set()
            raise LeaseLost(f"the lease of epoch {self.epoch} was taken over or released")

    @contextmanager
    def heartbeat(
        self, is_moving: Callable[[], bool] = lambda: True, also: Callable[[Connection], None] = lambda _: None
    ) -> Iterator[Lease]:
        """Renew the lease in the background for the length of the ``with``, while ``is_moving`` says that the run still
        makes progress; ``lost`` is set if another process took over. Each renewal does ``also`` something else in its
        transaction."""
        ended = threading.Event()
        shared = (ended, is_moving, also)
        beat = threading.Thread(target=self._heartbeat, args=shared, name="lease heartbeat", daemon=True)
        beat.start()
        try:
            yield self
        finally:
            ended.set()
            beat.join()

    def _heartbeat(
        self, ended: threading.Event, is_moving: Callable[[], bool], also: Callable[[Connection], None]
    ) -> None:
        while not ended.wait(HEARTBEAT.total_seconds()):
            if not is_moving():
                continue
            try:
                with self.write() as connection:
                    also(connection)
            except LeaseLost:
                return
            except StorageError:
                continue  # the database may recover before the lease expires; if not, the next write fails


def acquire(database: ControlDatabase, owner: LeaseOwner) -> Lease:
    """Take the lease of a tenant if it is free or expired, or if its owner has certainly died.

    Raises:
        LeaseHeld: a run is in progress.
        StorageError: the database cannot be used.
    """
    with database.write() as connection:
        row = connection.execute(select(tenant).with_for_update()).one()
        now = _now(connection)
        if is_held(row.lease_owner, row.lease_expires_at, now):
            raise LeaseHeld("another run works on this tenant")
        epoch = row.lease_epoch + 1
        connection.execute(
            update(tenant).values(
                lease_owner=str(owner),
                lease_expires_at=now + EXPIRY,
                lease_epoch=epoch,
                stage=None,
                stage_date=None,
                stage_done=0,
                stage_total=0,
            )
        )
    return Lease(database, owner, epoch)


def resume(database: ControlDatabase, owner: LeaseOwner, epoch: int) -> Lease:
    """Continue the lease of ``epoch``, which a parent process took, under ``owner``.

    Raises:
        LeaseLost: it is no longer held.
    """
    return Lease(database, owner, epoch).hand_over(owner)


def clear_holder(connection: Connection) -> None:
    """Remove the lease's holder from a restored database: its process does not use this database."""
    connection.execute(update(tenant).values(lease_owner=None, lease_expires_at=None, stage=None))


def is_held(lease_owner: str | None, lease_expires_at: datetime | None, now: datetime) -> bool:
    """Return whether a run is in progress according to the control database.

    No owner renews its lease for longer than :data:`EXPIRY`. An expiry further in the future was written before the
    clock was set back, and is ignored.
    """
    if lease_owner is None or lease_expires_at is None or lease_expires_at <= now:
        return False
    owner = LeaseOwner.parse(lease_owner)
    is_alive = owner.is_alive() if owner is not None else None
    return lease_expires_at <= now + 2 * EXPIRY if is_alive is None else is_alive


def _now(connection: Connection) -> datetime:
    """Return the time of the clock that all processes share: the server's or, with an embedded database, the host's."""
    if connection.dialect.name == "sqlite":
        return utc_now()
    return connection.execute(select(func.now())).scalar_one()
