"""``chargeback access``: what the configuration gives to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption, TenantOption, chosen_tenants

if TYPE_CHECKING:
    from chargeback.access.caller import TenantAccess

app = typer.Typer(help="Explain who may see what.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _options() -> None:
    """Explain who may see what."""


@app.command()
def explain(
    user: Annotated[str, typer.Option("--user", "-u", metavar="NAME", help="The name of the user.")],
    groups: Annotated[
        list[str] | None,
        typer.Option("--groups", "-g", metavar="NAMES", help="Groups of the user, separated by commas."),
    ] = None,
    tenant: TenantOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Show what a user may do, and which role says so. For each tenant."""
    from chargeback.config import load_configuration

    configuration = load_configuration(config)
    access = configuration.access
    if access.mode == "none":
        typer.echo("access.mode is none: everybody who reaches the service may see and change everything.")
        return
    names = [name for each in groups or () for part in each.split(",") if (name := part.strip())]
    typer.echo(f"{user}, in {', '.join(names) or 'no group'}")
    roles = access.finished_roles()
    for each in chosen_tenants(configuration, tenant):
        _print(each.name, roles.fitting(user, names, each.name))


def _print(tenant: str, fitting: list[TenantAccess]) -> None:
    """Print what the first of the roles that fit allows, and the others."""
    if not fitting:
        typer.echo(f"tenant {tenant}: nothing; no role fits")
        return
    decides, *others = fitting
    typer.echo(f"tenant {tenant}: {', '.join(sorted(decides.rights))}")
    typer.echo(f"  decided by access.{decides.role}, the first role that fits")
    if decides.scope is None:
        typer.echo("  all rows")
    for name, values in decides.scope.as_json().items() if decides.scope else ():
        typer.echo(f"  rows with {name}: {', '.join(values) or 'no value, so none'}")
    if others:
        typer.echo(f"  also fits, without effect: {', '.join(f'access.{each.role}' for each in others)}")
