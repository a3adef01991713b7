"""``chargeback reconcile``: compare a file of costs, such as an invoice, with what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import (
    CONFIGURATION,
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    FAILED,
    INSTANT,
    INSTANT_FORMATS,
    ConfigOption,
    failed,
    invalid_file,
    one_tenant,
    to_day,
)

if TYPE_CHECKING:
    from datetime import date

    from chargeback.config import Tenant
    from chargeback.reports.external_costs.comparison import ExternalReconciliation
    from chargeback.reports.external_costs.files import CostMapping, ExternalCost

#: How many differences are shown.
SHOWN = 50

_ZERO = Decimal(0)


def reconcile(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The CSV file of costs.")],
    mapping: Annotated[
        Path,
        typer.Option(
            "--mapping", "-m", metavar="FILE", exists=True, dir_okay=False, help="The YAML file that maps its columns."
        ),
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    start: Annotated[
        datetime | None,
        typer.Option(
            "--from", metavar=DAY, formats=DAY_FORMATS, help="First UTC day; default: the first one in the file."
        ),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option(
            "--through",
            "--to",
            metavar=DAY,
            formats=DAY_FORMATS,
            help="Last UTC day; default: the last one in the file.",
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            metavar=INSTANT, formats=INSTANT_FORMATS, help="Compare with what was served at this instant, in UTC."
        ),
    ] = None,
) -> None:
    """Compare an invoice or a cost allocation with the costs. With the bill or the chargebacks; exit with 1 if they
    differ."""
    from chargeback.errors import ConfigurationError
    from chargeback.reports.external_costs.files import CostFileError, parse_mapping, read_costs

    chosen = one_tenant(config, tenant)
    try:
        how = parse_mapping(mapping.read_text(encoding="utf-8"))
        costs = read_costs(file.read_text(encoding="utf-8-sig"), how, chosen.settings.currency)
    except ConfigurationError as error:
        raise invalid_file(mapping, error.problems) from None
    except CostFileError as error:
        raise invalid_file(file, error.mistakes) from None
    except UnicodeDecodeError as error:
        raise invalid_file(file, [f"is not UTF-8: {error.reason} at byte {error.start}"]) from None
    instant = None if as_of is None else as_of.replace(tzinfo=UTC)
    found = _compare(chosen, costs, how, (to_day(start), to_day(end)), instant)
    _print(found)
    if any(item.delta for item in found.items):
        raise typer.Exit(FAILED)


def _compare(
    tenant: Tenant,
    costs: list[ExternalCost],
    mapping: CostMapping,
    period: tuple[date | None, date | None],
    as_of: datetime | None,
) -> ExternalReconciliation:
    """Return the comparison, or end with an error."""
    from contextlib import closing

    from chargeback.reports.external_costs.comparison import compare_costs
    from chargeback.reports.external_costs.files import period_of
    from chargeback.store.queries.engine import CancellationToken, QueryEngine
    from chargeback.store.queries.lookups import LookupCaches
    from chargeback.store.queries.reader import open_reader
    from chargeback.store.tenant import open_store

    days = period_of(costs, *period)
    if days is None or days.start >= days.end:
        why = (
            "the file has no days, so --from and --through are needed"
            if days is None
            else "--from is after the last day"
        )
        typer.echo(f"error: {why}", err=True)
        raise typer.Exit(CONFIGURATION)
    database = tenant.storage.database_file
    if database is not None and not database.exists():
        failed(f"tenant {tenant.name}: no data has been gathered yet")
    with (
        closing(open_store(tenant)) as store,
        QueryEngine() as engine,
        open_reader(engine, store, CancellationToken(), LookupCaches(), as_of=as_of) as reader,
        store.control.read() as connection,
    ):
        return compare_costs(reader, connection, costs, mapping, days, currency=tenant.settings.currency)


def _print(found: ExternalReconciliation) -> None:
    """Print the differences and the sums."""
    from chargeback.cli.display import aligned, print_table

    period = f"{found.start_date} to {found.end_date}"
    differing = [item for item in found.items if item.delta]
    shown = differing[:SHOWN]
    if shown:
        rows = zip(
            [item.entity or "" for item in shown],
            [item.name or "" for item in shown],
            [item.product_type or "" for item in shown],
            _column([item.theirs for item in shown]),
            _column([item.ours for item in shown]),
            aligned([item.delta for item in shown]),
            strict=True,
        )
        columns = ("entity", "name", "product type", "theirs", "ours", f"difference in {found.currency}")
        print_table(f"Differences, {period}", columns, rows, numbers=3)
    if len(differing) > len(shown):
        typer.echo(f"and {len(differing) - len(shown)} smaller differences")
    sums = (found.total.theirs, found.total.ours, found.total.delta)
    rows = zip(("theirs", "ours", "difference"), aligned(sums), strict=True)
    outside = f", {found.outside} on other days left out" if found.outside else ""
    print_table(f"{found.lines} lines, {period}{outside}", ("total", found.currency), rows, numbers=1)
    if not found.items:
        typer.echo("neither side has costs on these days, so there is nothing to compare")
    elif not differing:
        typer.echo("the same to the last digit")
    else:
        typer.echo(f"{len(differing)} of {len(found.items)} entries differ; what one side does not have is empty")


def _column(amounts: Sequence[Decimal | None]) -> list[str]:
    """Return amounts, aligned; what one side does not have is empty."""
    from chargeback.cli.display import aligned

    texts = aligned([amount or _ZERO for amount in amounts])
    return ["" if amount is None else text for amount, text in zip(amounts, texts, strict=True)]
