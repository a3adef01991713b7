"""``chargeback publish``: write the tables for other engines."""

from __future__ import annotations

from typing import Annotated

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption, TenantOption, chosen_tenants
from chargeback.errors import StorageError


def publish(
    config: ConfigOption = DEFAULT_CONFIG,
    tenant: TenantOption = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Write all logs anew, not only what changed.")
    ] = False,
) -> None:
    """Publish the tables for other engines. Runs do this at their end: they write the logs of Delta Lake."""
    from chargeback.config import load_configuration
    from chargeback.pipeline.publish import publish_tables
    from chargeback.store.control.lease import LeaseOwner
    from chargeback.store.tenant import open_store

    right = True
    for each in chosen_tenants(load_configuration(config), tenant):
        file = each.storage.database_file
        if file is not None and not file.exists():
            typer.echo(f"tenant {each.name}: no data has been gathered yet")
            continue
        store = open_store(each)
        try:
            lease = store.acquire(LeaseOwner.this_process())
            try:
                with lease.heartbeat():
                    changed = publish_tables(store.facts, lease, from_scratch=from_scratch)
            finally:
                lease.release()
            typer.echo(
                f"tenant {each.name}: {changed} tables written" if changed else f"tenant {each.name}: up to date"
            )
        except StorageError as error:
            typer.echo(f"error: tenant {each.name}: {error}", err=True)
            right = False
        finally:
            store.close()
    if not right:
        raise typer.Exit(FAILED)
