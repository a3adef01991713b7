"""The whole storage of one tenant."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from sqlalchemy import Connection

from chargeback.config import Tenant
from chargeback.config.configuration import state_dir
from chargeback.config.storage import ObjectLocation
from chargeback.ecosystems.contract import ResolveUsage, usage_resolver
from chargeback.errors import SchemaError, StorageError
from chargeback.model.inventory import Inventory
from chargeback.store.clocks import ClockReading
from chargeback.store.control.database import ConnectRetry, ControlDatabase
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.lease import Lease, LeaseOwner, acquire, resume
from chargeback.store.control.server import USUAL_LIMITS, ServerLimits
from chargeback.store.facts.copies import copies_in
from chargeback.store.facts.earlier_tables import make_catalogue
from chargeback.store.facts.owner import check_owner
from chargeback.store.facts.places import Folder, Place
from chargeback.store.facts.tables import FactTables
from chargeback.store.ownership import StorageOwner

log = logging.getLogger(__name__)

MAX_PARALLEL_CHECKS = 16
#: The folder of copies of files that are in object storage, where none is configured.
_COPIES = "copies"
#: Limits at startup, which must not wait for a server that does not respond.
START_LIMITS = ServerLimits(connect=3, lock=3, statement=3, silence=3)


@dataclass(frozen=True)
class TenantStore:
    """The control database and the fact tables of one tenant, whose ecosystem and ``tenant_id`` are in every row.
    ``resolve_usage`` returns the stored usage of a day with identities as subjects; None if it is stored so."""

    tenant_name: str
    tenant_id: str
    ecosystem: str
    control: ControlDatabase
    facts: FactTables
    resolve_usage: ResolveUsage | None = None

    @classmethod
    def open(
        cls,
        *,
        tenant_name: str,
        tenant_id: str,
        ecosystem: str,
        connection_string: str,
        facts: Place | Path,
        retry: ConnectRetry | None = None,
        limits: ServerLimits = USUAL_LIMITS,
    ) -> Self:
        """Open the storage without accessing it: nothing is created or migrated before the first use."""
        control = ControlDatabase(connection_string, retry, limits, StorageOwner(tenant_id, ecosystem))
        return cls(tenant_name, tenant_id, ecosystem, control, FactTables(facts, control))

    @property
    def owner(self) -> StorageOwner:
        """The tenant that the storage may belong to."""
        return StorageOwner(self.tenant_id, self.ecosystem)

    def prepare(self) -> None:
        """Check that the facts are in a place that suits them, migrate the control database to this version's schema,
        record its owner, and read the tables of an earlier version into the catalogue.

        Raises:
            ForeignStorage: the database or the folder of facts is another tenant's.
            SchemaError: the schema is ahead of this version, or its history is broken.
            StorageError: the storage cannot be used.
        """
        check_owner(self.facts.place, self.owner)
        self.try_out()
        self.control.upgrade()
        make_catalogue(self.facts)

    def try_out(self) -> None:
        """Check that the facts are in a place that suits them, with a small file that is deleted again.

        Raises:
            StorageError: they are not, or the place cannot be written.
        """
        try:
            self.facts.place.try_out()
        except OSError as error:
            raise StorageError(f"the facts cannot be stored: {error}") from error

    def inventory(self) -> Inventory:
        """Return the whole inventory, including deleted entities.

        Raises:
            StorageError: the control database cannot be read.
        """
        with self.control.read() as connection:
            return read_inventory(connection)

    def acquire(self, owner: LeaseOwner) -> Lease:
        """Take the tenant's lease.

        Raises:
            LeaseHeld: a run is in progress.
            StorageError: the control database cannot be used.
        """
        return acquire(self.control, owner)

    def resume(self, owner: LeaseOwner, epoch: int) -> Lease:
        """Continue the lease of ``epoch``, which a parent process took, under ``owner``.

        Raises:
            LeaseLost: it is no longer held.
        """
        return resume(self.control, owner, epoch)

    def close(self) -> None:
        """Close the connections to the control database."""
        self.control.close()


def place_of(location: Path | ObjectLocation, seconds: float | None = None) -> Place:
    """Return the place of facts that a configuration names. Nothing is accessed. A request to object storage that fails
    is made again for at most ``seconds``.

    Raises:
        StorageError: there is no folder for copies, or the settings cannot be used.
    """
    if isinstance(location, Path):
        return Folder(location)
    from chargeback.store.facts.buckets import Bucket  # the library takes its time

    folder = location.cache.path or state_dir() / _COPIES
    try:
        return Bucket(location.tried_for(seconds), copies_in(folder, location.cache.max_bytes))
    except OSError as error:
        raise StorageError(str(error)) from error


#: Checks what the control database of a tenant has, if it is one of this version.
ContentCheck = Callable[[Connection, Tenant], None]


def check_storage(
    tenant: Tenant,
    check: ContentCheck | None = None,
    *,
    ask_server: bool = True,
    try_out: bool = False,
    limits: ServerLimits = USUAL_LIMITS,
) -> None:
    """Check, without changing anything, that this version may use a storage for this tenant, and its content by
    ``check``. A storage that is not set up yet, or is at an earlier revision, passes. PostgreSQL and object storage are
    only contacted with ``ask_server``; with ``try_out`` a small object is written and deleted again.

    Raises (besides what ``check`` raises):
        ForeignStorage: the database or the folder of facts is another tenant's.
        SchemaError: the schema is ahead of this version, or its history is broken.
        StorageError: the storage cannot be used.
    """
    store = open_store(tenant, limits=limits)
    try:
        if ask_server or isinstance(tenant.storage.facts_path, Path):
            check_owner(store.facts.place, store.owner)
        if try_out:
            store.try_out()
        file = tenant.storage.database_file
        is_there = ask_server if file is None else file.exists()
        if is_there and store.control.revisions().is_current:
            with store.control.read() as connection:
                if check is not None:
                    check(connection, tenant)
    except StorageError as error:
        error.tenant = tenant.name
        raise
    finally:
        store.close()


def read_clocks(tenant: Tenant) -> dict[str, ClockReading]:
    """Return what the servers of a tenant's storage say the time is, by their names; storage of this machine has no
    clock of its own. A small object is written and deleted again.

    Raises:
        StorageError: a server cannot be reached.
    """
    store = open_store(tenant, limits=START_LIMITS)
    try:
        found = {"the control database": store.control.clock(), str(store.facts.place): store.facts.place.clock()}
    except StorageError as error:
        error.tenant = tenant.name
        raise
    except OSError as error:
        raise StorageError(str(error), tenant=tenant.name) from error
    finally:
        store.close()
    return {name: reading for name, reading in found.items() if reading is not None}


def require_usable_storage(tenants: Sequence[Tenant], check: ContentCheck | None = None) -> None:
    """Check the storage of tenants in parallel, and its content by ``check``, before they are served. A storage that
    cannot be reached is only logged: it may be back soon.

    Raises (besides what ``check`` raises):
        SchemaError: this version may not use a storage, or a storage is another tenant's.
    """
    if not tenants:
        return
    with ThreadPoolExecutor(min(len(tenants), MAX_PARALLEL_CHECKS), "storage check") as pool:
        for each in [pool.submit(check_storage, tenant, check, limits=START_LIMITS) for tenant in tenants]:
            try:
                each.result()
            except SchemaError:
                raise
            except StorageError as error:
                log.error("%s", error)


def open_store(
    tenant: Tenant,
    retry: ConnectRetry | None = None,
    limits: ServerLimits = USUAL_LIMITS,
) -> TenantStore:
    """Return the storage of a configured tenant; with ``retry``, connecting to its database server is retried."""
    store = TenantStore.open(
        tenant_name=tenant.name,
        tenant_id=tenant.settings.tenant_id,
        ecosystem=tenant.settings.ecosystem,
        connection_string=tenant.storage.connection_string.get_secret_value(),
        facts=place_of(tenant.storage.facts_path, limits.statement),
        retry=retry,
        limits=limits,
    )
    return replace(store, resolve_usage=usage_resolver(tenant.ecosystem))
