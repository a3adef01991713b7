"""What commands share: options and their values, exit codes, and opening the storage of the tenants that are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from chargeback.errors import ConfigProblem, ConfigurationError, StorageError

if TYPE_CHECKING:
    from chargeback.config import Configuration, Tenant
    from chargeback.model.days import DayRange
    from chargeback.store.tenant import TenantStore

#: The exit codes of the commands.
OK: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 2
#: Of closing a month: something is in the way, or it would book something else than was looked at.
BLOCKED: Final = 2
STALE: Final = 3
#: Of a simulation: more moves than the limits allow, or something does.
BEYOND: Final = 3
MOVES: Final = 4
INTERRUPTED: Final = 130

#: The file that ``chargeback init`` writes.
DEFAULT_CONFIG = Path("chargeback.yaml")

ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="CHARGEBACK_CONFIG",
        readable=False,
        help="The configuration file.",
    ),
]
TenantOption = Annotated[
    list[str] | None,
    typer.Option("--tenant", "-t", metavar="NAME", help="Only this tenant; can be given several times."),
]

DAY_FORMATS = ["%Y-%m-%d"]
#: What helps show for a day and for an instant.
DAY = "YYYY-MM-DD"
INSTANT = "YYYY-MM-DD[THH:MM:SS]"
INSTANT_FORMATS = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]

FirstDay = Annotated[
    datetime, typer.Option("--from", metavar=DAY, formats=DAY_FORMATS, help="The first UTC day that is gone through.")
]
LastDay = Annotated[datetime, typer.Option(metavar=DAY, formats=DAY_FORMATS, help="The last one.")]

TenantName = Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")]


def days_gone_through(first: datetime, last: datetime) -> DayRange:
    """Return the days from :data:`FirstDay` to :data:`LastDay`; end the command if they are the wrong way round."""
    from chargeback.model.days import ONE_DAY, DayRange

    if first > last:
        raise typer.BadParameter("--from is after --through")
    return DayRange(first.date(), last.date() + ONE_DAY)


def to_day(moment: datetime | None) -> date | None:
    """Return the day given in an option."""
    return moment.date() if moment else None


def chosen_tenants(configuration: Configuration, names: Sequence[str] | None) -> list[Tenant]:
    """Return the tenants with these names, or all; each once, in the order of the file.

    Raises:
        ConfigurationError: a name that the configuration does not have.
    """
    known = configuration.tenants
    unknown = [name for name in names or () if name not in known]
    if unknown:
        there = ", ".join(known)
        raise ConfigurationError(
            [ConfigProblem("", f"there is no tenant {name}; there are {there}") for name in unknown]
        )
    return [tenant for name, tenant in known.items() if not names or name in names]


def failed(why: object) -> NoReturn:
    """Print why a command fails, and end it; that an error was behind it is not shown."""
    typer.echo(f"error: {why}", err=True)
    raise typer.Exit(FAILED) from None


def invalid_file(file: Path, mistakes: Iterable[object]) -> typer.Exit:
    """Print the mistakes in a file; return the end of the command."""
    for mistake in mistakes:
        typer.echo(f"error: {file}: {mistake}", err=True)
    return typer.Exit(CONFIGURATION)


def one_tenant(config: Path, name: str) -> Tenant:
    """Return the tenant of a configuration file with this name.

    Raises:
        ConfigurationError: the file is not right, or has no such tenant.
    """
    from chargeback.config import load_configuration  # commands that need no configuration start without it

    (chosen,) = chosen_tenants(load_configuration(config), [name])
    return chosen


@contextmanager
def opened_storage(tenant: str, config: Path) -> Iterator[TenantStore]:
    """Open the storage of a tenant; end with an error if it is not set up."""
    from chargeback.store.tenant import open_store

    chosen = one_tenant(config, tenant)
    file = chosen.storage.database_file
    if file is not None and not file.exists():
        failed(f"tenant {chosen.name}: its storage is not set up yet; `chargeback db upgrade` does it")
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
