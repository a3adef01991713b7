"""Opening the storage of the tenants that a command names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.options import one_tenant
from chargeback.errors import StorageError

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.store.tenant import TenantStore

TenantName = Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")]


@contextmanager
def opened_storage(tenant: str, config: Path) -> Iterator[TenantStore]:
    """Open the storage of a tenant; end with an error if it is not set up."""
    from chargeback.store.tenant import open_store

    chosen = one_tenant(config, tenant)
    file = chosen.storage.database_file
    if file is not None and not file.exists():
        typer.echo(
            f"error: tenant {chosen.name}: its storage is not set up yet; `chargeback db upgrade` does it", err=True
        )
        raise typer.Exit(FAILED)
    with closing(open_store(chosen)) as store:
        yield store


def with_each_store(tenants: Iterable[Tenant], act: Callable[[Tenant, TenantStore], str]) -> None:
    """Do something with the storage of each tenant that has data, and print what ``act`` says of it. A storage with an
    error does not keep the others from their turn; the command then ends with an error."""
    from chargeback.store.tenant import open_store

    right = True
    for each in tenants:
        file = each.storage.database_file
        if file is not None and not file.exists():
            typer.echo(f"tenant {each.name}: no data has been gathered yet")
            continue
        try:
            with closing(open_store(each)) as store:
                typer.echo(f"tenant {each.name}: {act(each, store)}")
        except StorageError as error:
            typer.echo(f"error: tenant {each.name}: {error}", err=True)
            right = False
    if not right:
        raise typer.Exit(FAILED)
