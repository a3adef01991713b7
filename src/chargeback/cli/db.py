"""``chargeback db``: show or migrate the schema of the tenants' control databases.

The service migrates the schema when it starts. Use these commands to do this separately: in a deployment with several
replicas, or if the service's database account may not change tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from chargeback.cli.options import DEFAULT_CONFIG, FAILED, ConfigOption, TenantOption, chosen_tenants
from chargeback.errors import StorageError

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.store.control.database import ControlDatabase, Revisions

app = typer.Typer(
    help="Show or migrate the schema of the control databases.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def upgrade(config: ConfigOption = DEFAULT_CONFIG, tenant: TenantOption = None) -> None:
    """Migrate every tenant's control database to this version's schema."""
    from chargeback.store.tenant import open_store

    def _upgrade(each: Tenant) -> bool:
        before = _revisions(each)
        store = open_store(each)
        try:
            store.prepare()
            after = store.control.revisions()
        finally:
            store.close()
        if before.is_current:
            _say(each, f"is already at revision {after.newest}")
        else:
            _say(each, f"upgraded from {_named(before)} to revision {after.newest}")
        return True

    _for_each(config, tenant, _upgrade)


@app.command()
def current(config: ConfigOption = DEFAULT_CONFIG, tenant: TenantOption = None) -> None:
    """Show the revision of every tenant's control database. Nothing is changed."""

    def _show(each: Tenant) -> bool:
        found = _revisions(each)
        state = "current" if found.is_current else f"this version needs revision {found.newest}"
        _say(each, f"{_named(found)} ({state})")
        return True

    _for_each(config, tenant, _show)


@app.command()
def check(config: ConfigOption = DEFAULT_CONFIG, tenant: TenantOption = None) -> None:
    """Exit with 1 if a control database has another schema. Nothing is changed."""

    def _check(each: Tenant) -> bool:
        found = _revisions(each)
        if found.is_current:
            _say(each, f"{_named(found)} (current)")
            return True
        advice = "`chargeback db upgrade`, or the start of the service, migrates it"
        _complain(each, f"{_named(found)}, this version needs revision {found.newest}; {advice}")
        return False

    _for_each(config, tenant, _check)


def _for_each(config: ConfigOption, names: TenantOption, work: Callable[[Tenant], bool]) -> None:
    """Call the function for every selected tenant, even if others fail; exit with 1 unless all succeeded."""
    from chargeback.config import load_configuration

    right = True
    for each in chosen_tenants(load_configuration(config), names):
        try:
            right = work(each) and right
        except StorageError as error:
            _complain(each, str(error))
            right = False
    if not right:
        raise typer.Exit(FAILED)


def _revisions(tenant: Tenant) -> Revisions:
    """Return the revision of the database, without creating a missing SQLite file."""
    from chargeback.store.control.database import Revisions, newest_revision

    file = tenant.storage.database_file
    if file is not None and not file.exists():
        return Revisions(None, newest_revision())
    with _database(tenant) as database:
        return database.revisions()


def _database(tenant: Tenant) -> ControlDatabase:
    from chargeback.store.control.database import ControlDatabase

    return ControlDatabase(tenant.storage.connection_string.get_secret_value())


def _named(found: Revisions) -> str:
    return "not set up" if found.stamped is None else f"revision {found.stamped}"


def _say(tenant: Tenant, message: str) -> None:
    typer.echo(f"tenant {tenant.name}: {message}")


def _complain(tenant: Tenant, message: str) -> None:
    typer.echo(f"error: tenant {tenant.name}: {message}", err=True)
