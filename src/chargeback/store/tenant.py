"""The whole storage of one tenant."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from chargeback.config import Tenant
from chargeback.errors import SchemaError, StorageError
from chargeback.store.control.database import ConnectRetry, ControlDatabase
from chargeback.store.control.lease import Lease, LeaseOwner, acquire
from chargeback.store.control.server import USUAL_LIMITS, ServerLimits
from chargeback.store.facts.owner import check_owner
from chargeback.store.facts.tables import FactTables
from chargeback.store.ownership import StorageOwner

log = logging.getLogger(__name__)

_MAX_PARALLEL_CHECKS = 16
#: Limits at startup, which must not wait for a server that does not respond.
_START_LIMITS = ServerLimits(connect=3, lock=3, statement=3, silence=3)


@dataclass(frozen=True)
class TenantStore:
    """The control database and the fact tables of one tenant, whose ecosystem and ``tenant_id`` are in every row."""

    tenant_name: str
    tenant_id: str
    ecosystem: str
    control: ControlDatabase
    facts: FactTables

    @classmethod
    def open(
        cls,
        *,
        tenant_name: str,
        tenant_id: str,
        ecosystem: str,
        connection_string: str,
        facts: Path,
        retry: ConnectRetry | None = None,
        limits: ServerLimits = USUAL_LIMITS,
    ) -> Self:
        """Open the storage without accessing it: nothing is created or migrated before the first use."""
        control = ControlDatabase(connection_string, retry, limits, StorageOwner(tenant_id, ecosystem))
        return cls(tenant_name, tenant_id, ecosystem, control, FactTables(facts))

    @property
    def owner(self) -> StorageOwner:
        """The tenant that the storage may belong to."""
        return StorageOwner(self.tenant_id, self.ecosystem)

    def prepare(self) -> None:
        """Migrate the control database to this version's schema, and record its owner.

        Raises:
            ForeignStorage: the database or the folder of facts is another tenant's.
            SchemaError: the schema is ahead of this version, or its history is broken.
            StorageError: the storage cannot be used.
        """
        check_owner(self.facts, self.owner)
        self.control.upgrade()

    def acquire(self, owner: LeaseOwner) -> Lease:
        """Take the tenant's lease, with an epoch above those of the control database and of the fact tables.

        Raises:
            LeaseHeld: a run is in progress.
            StorageError: the control database cannot be used.
        """
        return acquire(self.control, owner, self.facts.newest_epoch())

    def close(self) -> None:
        """Close the connections to the control database."""
        self.control.close()


def check_storage(tenant: Tenant, *, ask_server: bool = True, limits: ServerLimits = USUAL_LIMITS) -> None:
    """Check, without changing anything, that this version may use a storage for this tenant. A storage that is not set
    up yet, or is at an earlier revision, passes. PostgreSQL is only contacted with ``ask_server``.

    Raises:
        ForeignStorage: the database or the folder of facts is another tenant's.
        SchemaError: the schema is ahead of this version, or its history is broken.
        StorageError: the storage cannot be used.
    """
    store = open_store(tenant, limits=limits)
    try:
        check_owner(store.facts, store.owner)
        file = tenant.storage.database_file
        is_there = ask_server if file is None else file.exists()
        if is_there and store.control.revisions().is_current:
            with store.control.read():
                pass
    except StorageError as error:
        error.tenant = tenant.name
        raise
    finally:
        store.close()


def require_usable_storage(tenants: Sequence[Tenant]) -> None:
    """Check the storage of tenants in parallel, before they are served. A storage that cannot be reached is only
    logged: it may be back soon.

    Raises:
        SchemaError: this version may not use a storage, or a storage is another tenant's.
    """
    if not tenants:
        return
    with ThreadPoolExecutor(min(len(tenants), _MAX_PARALLEL_CHECKS), "storage check") as pool:
        for check in [pool.submit(check_storage, tenant, limits=_START_LIMITS) for tenant in tenants]:
            try:
                check.result()
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
    return TenantStore.open(
        tenant_name=tenant.name,
        tenant_id=tenant.settings.tenant_id,
        ecosystem=tenant.settings.ecosystem,
        connection_string=tenant.storage.connection_string.get_secret_value(),
        facts=tenant.storage.facts_path,
        retry=retry,
        limits=limits,
    )
