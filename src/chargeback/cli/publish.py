"""``chargeback publish``: write the tables for other engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption, TenantOption, chosen_tenants, with_each_store

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.store.tenant import TenantStore


def publish(
    config: ConfigOption = DEFAULT_CONFIG,
    tenant: TenantOption = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Rewrite all logs, not only what changed.")
    ] = False,
) -> None:
    """Publish the tables for other engines. Runs do this at their end: they write the logs of Delta Lake."""
    from chargeback.config import load_configuration
    from chargeback.pipeline.publish import publish_tables
    from chargeback.store.control.lease import LeaseOwner

    def published(_: Tenant, store: TenantStore) -> str:
        lease = store.acquire(LeaseOwner.this_process())
        try:
            with lease.heartbeat():
                changed = publish_tables(store.facts, lease, from_scratch=from_scratch)
        finally:
            lease.release()
        return f"{changed} tables written" if changed else "up to date"

    with_each_store(chosen_tenants(load_configuration(config), tenant), published)
