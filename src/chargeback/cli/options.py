"""Options shared by several commands, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.exit_codes import CONFIGURATION
from chargeback.errors import ConfigProblem, ConfigurationError

if TYPE_CHECKING:
    from chargeback.config import Configuration, Tenant
    from chargeback.model.days import DayRange

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
