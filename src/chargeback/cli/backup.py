"""``chargeback backup`` and ``chargeback restore``: copy a tenant's storage, and restore it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption, TenantOption, chosen_tenants
from chargeback.errors import LeaseHeld, StorageError

if TYPE_CHECKING:
    from chargeback.config import Tenant

_POLL_SECONDS = 1.0


def backup(
    to: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="The folder in which a folder for each backup is created.")
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    tenant: TenantOption = None,
    wait: Annotated[
        int,
        typer.Option("--wait", metavar="SECONDS", help="How long to wait for a run in progress.", min=0, max=604_800),
    ] = 900,
) -> None:
    """Copy the storage of every tenant, as a consistent snapshot. The service can keep running."""
    from chargeback.config import load_configuration

    right = True
    for each in chosen_tenants(load_configuration(config), tenant):
        file = each.storage.database_file
        if file is not None and not file.exists():
            typer.echo(f"tenant {each.name}: no data has been gathered yet")
            continue
        try:
            typer.echo(f"tenant {each.name}: {_back_up(each, to.absolute(), wait)}")
        except StorageError as error:
            typer.echo(f"error: tenant {each.name}: {error}", err=True)
            right = False
    if not right:
        raise typer.Exit(FAILED)


def _back_up(tenant: Tenant, folder: Path, wait: int) -> Path:
    """Return the new backup; wait for a run in progress."""
    from chargeback.store.backup import back_up
    from chargeback.store.tenant import open_store

    store = open_store(tenant)
    until = time.monotonic() + wait
    try:
        while True:
            try:
                return back_up(store, tenant.storage.connection_string.get_secret_value(), folder)
            except LeaseHeld:
                if time.monotonic() >= until:
                    raise LeaseHeld(f"a run was in progress for {wait} s") from None
                time.sleep(_POLL_SECONDS)
    finally:
        store.close()


def restore(
    source: Annotated[
        Path, typer.Option("--from", metavar="FOLDER", help="The folder of a backup, with a backup.json.")
    ],
    tenant: Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant to restore.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Restore a backup into an empty storage. The service must be stopped."""
    from chargeback.config import load_configuration
    from chargeback.store.backup import restore as restore_backup
    from chargeback.store.tenant import open_store

    (each,) = chosen_tenants(load_configuration(config), [tenant])
    store = open_store(each)
    try:
        label = restore_backup(source.absolute(), store, each.storage.connection_string.get_secret_value())
    finally:
        store.close()
    typer.echo(f"tenant {each.name}: restored as of {label.made_at}; `chargeback verify` checks it")
