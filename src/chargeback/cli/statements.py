"""``chargeback statements``: write the statements of a month to files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chargeback.cli.options import DEFAULT_CONFIG, FAILED, INSTANT, INSTANT_FORMATS, ConfigOption, failed, one_tenant
from chargeback.model.accounting import PERIOD_ID, AccountingPeriod

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.reports.closing.statements import Basis
    from chargeback.reports.statements.content import Statements, StatementTieOut
    from chargeback.reports.tenant_view import TenantView
    from chargeback.store.queries.posted import PostedReader
    from chargeback.store.queries.reader import TenantReader

#: The end of the name of a file that has all statements.
ZIP: Final = ".zip"
_BY = re.compile(r"identity_id|tag:.+")


BasisOption = Annotated[
    str | None,
    typer.Option(
        metavar="BASIS",
        help="accrual, or posted: what is booked in the month. Default: posted for months of the books.",
    ),
]


def to_month(text: str) -> str:
    """Return the text of a month.

    Raises:
        BadParameter: it is none.
    """
    if not re.fullmatch(PERIOD_ID, text):
        raise typer.BadParameter("should be a month such as 2026-10")
    return text


def to_grouping(text: str | None) -> str | None:
    """Return what ``--by`` names.

    Raises:
        BadParameter: statements cannot be made by it.
    """
    if text is not None and not _BY.fullmatch(text):
        raise typer.BadParameter("should be identity_id or tag:KEY; cost categories are named by --category")
    return text


def _formats(text: str) -> str:
    from chargeback.reports.statements.files import FORMATS

    unknown = [each for each in text.split(",") if each not in FORMATS]
    if unknown:
        raise typer.BadParameter(f"should be some of {','.join(FORMATS)}, not {','.join(unknown)}")
    return text


def _target(to: Path) -> Path:
    if to.is_dir() if to.suffix == ZIP else to.is_file():
        raise typer.BadParameter(f"should be a folder, or a file that ends with {ZIP}")
    return to


def statements(  # noqa: PLR0913, PLR0917 - the options of a command
    tenant: Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")],
    period: Annotated[str, typer.Option(metavar="YYYY-MM", callback=to_month, help="The month, of UTC days.")],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="PATH", callback=_target, help="The folder for the files, or one file that ends with .zip."
        ),
    ],
    category: Annotated[
        str | None, typer.Option(metavar="KEY", help="A statement for each value of this cost category.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION",
            callback=to_grouping,
            help="Or a statement for each identity (identity_id), or value of a tag (tag:KEY).",
        ),
    ] = None,
    formats: Annotated[
        str,
        typer.Option("--format", metavar="LIST", callback=_formats, help="Any of html,pdf,csv,json; pdf is an extra."),
    ] = "html,csv",
    config: ConfigOption = DEFAULT_CONFIG,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            metavar=INSTANT, formats=INSTANT_FORMATS, help="Statements of what was charged at this instant, in UTC."
        ),
    ] = None,
    basis: BasisOption = None,
) -> None:
    """Write the statements of a month, and an index. One for each cost category value, identity or tag value; exit with
    1 if they do not add up to the bill."""
    from chargeback.emitters.files import write_whole
    from chargeback.model.days import render_instant
    from chargeback.reports.statements.files import INDEX, write_statements, zipped_statements

    if (category is None) == (by is None):
        raise typer.BadParameter("name either a cost category or what else to group by", param_hint="--category / --by")
    chosen = one_tenant(config, tenant)
    instant = None if as_of is None else as_of.replace(tzinfo=UTC)
    month = AccountingPeriod.named(period)
    found = compile_from_storage(chosen, month, by or f"category:{category}", instant, to_basis(basis))
    if to.suffix == ZIP:
        write_whole(to, zipped_statements(found, formats.split(",")), lambda: None)
        files = f"see {to}"
    else:
        files = f"{len(write_statements(found, to, formats.split(',')))} files, see {to / INDEX}.html"
    issued = "" if found.heading.issued_at is None else f", as they are since {render_instant(found.heading.issued_at)}"
    typer.echo(f"{len(found.items)} statements of {period}{issued}: {files}")
    print_tie_out(found.tie_out, found.heading.currency)


@contextmanager
def opened(tenant: Tenant, as_of: datetime | None = None) -> Iterator[tuple[TenantView, TenantReader, PostedReader]]:
    """Open the storage of a tenant: its view, a reader, and one of what was posted, as of an instant (None: now); end
    with an error if there is none yet."""
    from chargeback.errors import NothingGathered
    from chargeback.reports.tenant_view import open_tenant

    try:
        with open_tenant(tenant, as_of) as found:
            yield found
    except NothingGathered as error:
        failed(error)


def compile_from_storage(
    tenant: Tenant, period: AccountingPeriod, by: str, as_of: datetime | None, basis: Basis | None
) -> Statements:
    """Return the statements of a month, or end with an error."""
    from chargeback.reports.closing.statements import statements_of

    with opened(tenant, as_of) as (view, reader, posted):
        try:
            return statements_of(view, reader, posted, period, by, basis)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--basis") from None


def to_basis(text: str | None) -> Basis | None:
    """Return what ``--basis`` names.

    Raises:
        BadParameter: it is neither.
    """
    if text is None or text == "accrual":
        return None if text is None else "accrual"
    if text != "posted":
        raise typer.BadParameter("should be accrual or posted")
    return "posted"


def print_tie_out(tie: StatementTieOut | None, currency: str) -> None:
    """Print the statements compared with the bill; end with an error if they differ."""
    from chargeback.cli.display import money_table

    if tie is None:
        return
    amounts = [("all statements", tie.statements.amount), ("billed", tie.billed.amount)]
    between = {
        "being calculated again": tie.outdated,
        "corrections of earlier months": tie.corrections,
        "adjustments": tie.adjustments,
    }
    amounts += [(name, each.amount) for name, each in between.items() if each and each.amount]
    amounts += [("difference", tie.difference)]
    amounts += [("billed, and not calculated yet", tie.pending.amount)] if tie.pending.amount else []
    money_table("Against the provider's bill", "total", amounts, currency)
    if tie.difference:
        raise typer.Exit(FAILED)
