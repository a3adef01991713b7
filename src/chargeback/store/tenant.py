"""The whole storage of one tenant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from chargeback.config import Tenant
from chargeback.store.control.database import ControlDatabase, Patience
from chargeback.store.facts.tables import FactTables


@dataclass(frozen=True)
class TenantStore:
    """Control database and fact tables of one tenant, as every row of it is labelled."""

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
        patience: Patience | None = None,
    ) -> Self:
        """Open the storage without touching it: nothing is created or migrated until somebody asks."""
        return cls(tenant_name, tenant_id, ecosystem, ControlDatabase(connection_string, patience), FactTables(facts))

    def close(self) -> None:
        """Close the connections to the control database."""
        self.control.close()


def open_store(tenant: Tenant, patience: Patience | None = None) -> TenantStore:
    """The storage of a configured tenant; with ``patience`` its database server is waited for."""
    return TenantStore.open(
        tenant_name=tenant.name,
        tenant_id=tenant.settings.tenant_id,
        ecosystem=tenant.settings.ecosystem,
        connection_string=tenant.storage.connection_string.get_secret_value(),
        facts=tenant.storage.facts_path,
        patience=patience,
    )
