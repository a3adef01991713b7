"""``chargeback backup`` and ``chargeback restore``: copy a tenant's storage, and restore it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption, TenantOption, chosen_tenants
from chargeback.errors import StorageError

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

    right = True
    for each in chosen_tenants(load_configuration(config), tenant):
        file = each.storage.database_file
        if file is not None and not file.exists():
            typer.echo(f"tenant {each.name}: no data has been gathered yet")
            continue
        try:
            typer.echo(f"tenant {each.name}: {_back_up(each, to.absolute())}")
        except StorageError as error:
            typer.echo(f"error: tenant {each.name}: {error}", err=True)
            right = False
    if not right:
        raise typer.Exit(FAILED)


def _back_up(tenant: Tenant, folder: Path) -> Path:
    """Return the new backup."""
    from chargeback.store.backup import back_up
    from chargeback.store.tenant import open_store

    store = open_store(tenant)
    try:
        return back_up(store, tenant.storage.connection_string.get_secret_value(), folder)
    finally:
        store.close()


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
    from chargeback.config import load_configuration
    from chargeback.store.tenant import open_store

    if (source is None) is not from_tables:
        raise typer.BadParameter("give either --from, or --catalogue-from-tables")
    (each,) = chosen_tenants(load_configuration(config), [tenant])
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
