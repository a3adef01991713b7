"""Opening the storage of the tenant that a command names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.options import chosen_tenants

if TYPE_CHECKING:
    from chargeback.store.tenant import TenantStore

TenantName = Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")]


@contextmanager
def opened_storage(tenant: str, config: Path) -> Iterator[TenantStore]:
    """Open the storage of a tenant; end with an error if it is not set up."""
    from chargeback.config import load_configuration
    from chargeback.store.tenant import open_store

    (chosen,) = chosen_tenants(load_configuration(config), [tenant])
    file = chosen.storage.database_file
    if file is not None and not file.exists():
        typer.echo(
            f"error: tenant {chosen.name}: its storage is not set up yet; `chargeback db upgrade` does it", err=True
        )
        raise typer.Exit(FAILED)
    with closing(open_store(chosen)) as store:
        yield store
