"""``chargeback backup`` and ``chargeback restore``: copy a tenant's storage, and restore it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import (
    DEFAULT_CONFIG,
    ConfigOption,
    TenantOption,
    chosen_tenants,
    one_tenant,
    with_each_store,
)

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.store.tenant import TenantStore


def backup(
    to: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="The folder in which a folder for each backup is created.")
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    tenant: TenantOption = None,
    _wait: Annotated[int, typer.Option("--wait", hidden=True, help="Nothing is waited for any more.")] = 0,
) -> None:
    """Copy the storage of every tenant, as of one point in time. The service can keep running, and so can runs."""
    from chargeback.config import load_configuration
    from chargeback.store.backup import back_up

    def copied(each: Tenant, store: TenantStore) -> str:
        return str(back_up(store, each.storage.connection_string.get_secret_value(), to.absolute()))

    with_each_store(chosen_tenants(load_configuration(config), tenant), copied)


def restore(
    tenant: Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant to restore.")],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FOLDER", help="The folder of a backup, with a backup.json.")
    ] = None,
    from_tables: Annotated[
        bool,
        typer.Option("--catalogue-from-tables", help="Make a lost control database again, from the published tables."),
    ] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Restore a backup, or a lost control database. Stop the service before. A backup needs an empty storage."""
    from chargeback.store.tenant import open_store

    if (source is None) is not from_tables:
        raise typer.BadParameter("give either --from, or --catalogue-from-tables")
    each = one_tenant(config, tenant)
    store = open_store(each)
    try:
        said = _recover(store) if source is None else _restore(store, each, source)
    finally:
        store.close()
    typer.echo(f"tenant {each.name}: {said}; `chargeback verify` checks it")


def _restore(store: TenantStore, tenant: Tenant, source: Path) -> str:
    from chargeback.store.backup import restore as restore_backup

    label = restore_backup(source.absolute(), store, tenant.storage.connection_string.get_secret_value())
    return f"restored as of {label.made_at}"


def _recover(store: TenantStore) -> str:
    from chargeback.pipeline.recover import catalogue_from_tables

    found = catalogue_from_tables(store)
    unread = f", {found.unread} bills that cannot be read are gathered again" if found.unread else ""
    return (
        f"{found.files} files of {found.days} days are in the catalogue again{unread}; tags, cost categories, names "
        "and tokens were in the database only, and names come back with the next run"
    )
