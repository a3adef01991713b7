"""``chargeback export``: write a tenant's rows as files."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.export_focus import FocusVersion, Split, billed_days, write_focus, write_own_statements
from chargeback.cli.options import (
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    INSTANT,
    INSTANT_FORMATS,
    ConfigOption,
    one_tenant,
    to_day,
)
from chargeback.cli.statements import opened, to_basis
from chargeback.cli.storage import TenantName

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.model.accounting import AccountingPeriod
    from chargeback.model.days import DayRange
    from chargeback.reports.closing.statements import Basis
    from chargeback.reports.focus.columns import FocusLayout
    from chargeback.reports.focus.file import FocusSource
    from chargeback.store.queries.datasets import Dataset
    from chargeback.store.queries.export import ExportFormat
    from chargeback.store.queries.reader import TenantReader

MONTH_FORMATS = ["%Y-%m"]


class FileFormat(StrEnum):
    """The format of the files, which is also the suffix of their names; ``focus`` is a folder of Parquet files."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    FOCUS = "focus"


class Rows(StrEnum):
    """What the rows of a file are."""

    CHARGEBACKS = "chargebacks"
    TOPICS = "topics"


def export(  # noqa: PLR0913, PLR0917 - the options of a command
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="PATH",
            help="The file; or an existing folder, in which each UTC month is a file of its own. "
            "With `--format focus` a folder.",
        ),
    ],
    tenant: TenantName,
    config: ConfigOption = DEFAULT_CONFIG,
    form: Annotated[
        FileFormat, typer.Option("--format", metavar="FORMAT", help="csv, parquet, jsonl, or focus.")
    ] = FileFormat.CSV,
    rows: Annotated[
        Rows, typer.Option("--rows", metavar="ROWS", help="Which rows: chargebacks or topics.")
    ] = Rows.CHARGEBACKS,
    month: Annotated[
        datetime | None,
        typer.Option("--month", metavar="YYYY-MM", formats=MONTH_FORMATS, help="Only the days of this UTC month."),
    ] = None,
    start: Annotated[
        datetime | None,
        typer.Option("--from", metavar=DAY, formats=DAY_FORMATS, help="First UTC day; default: the first one."),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option("--through", metavar=DAY, formats=DAY_FORMATS, help="Last UTC day; default: the last one."),
    ] = None,
    version: Annotated[
        FocusVersion | None,
        typer.Option("--version", metavar="VERSION", help="With `--format focus`: 1.2 or 1.4; default: 1.2."),
    ] = None,
    split: Annotated[
        Split | None,
        typer.Option(
            "--split",
            metavar="SPLIT",
            help="With `--format focus`: divide lines over identities, topics or none; default: identities.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="The columns of the file, in this order: names, or category:KEY; not FOCUS."),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            metavar=INSTANT, formats=INSTANT_FORMATS, help="The rows as they were at this instant, in UTC; not FOCUS."
        ),
    ] = None,
    basis: Annotated[
        str | None,
        typer.Option(
            "--basis",
            metavar="BASIS",
            help="With `--format focus`: accrual or posted; default: posted for months of the books, else accrual.",
        ),
    ] = None,
) -> None:
    """Write rows, or the bill in FOCUS, as files. As CSV, Parquet or JSON lines, all days or some; a file is replaced
    as a whole."""

    period = period_of(month, start, end)
    _check_options(form, rows, version or split or basis)
    if form is FileFormat.FOCUS and (columns is not None or as_of is not None):
        raise typer.BadParameter("are not for --format focus", param_hint="--columns / --as-of")
    named = _columns_of(rows, columns)
    instant = None if as_of is None else as_of.replace(tzinfo=UTC)
    chosen = one_tenant(config, tenant)
    if form is FileFormat.FOCUS:
        from chargeback.reports.focus.columns import FocusLayout

        layout = FocusLayout((version or FocusVersion.V1_2).value, (split or Split.IDENTITIES).value)
        lines = _focus(chosen, to, layout, period, to_basis(basis))
    else:
        lines = _written(chosen, _Wanted(to, form, rows, period, named, instant))
    for line in lines:
        typer.echo(line)


def _check_options(form: FileFormat, rows: Rows, of_focus: str | None) -> None:
    if form is not FileFormat.FOCUS and of_focus is not None:
        raise typer.BadParameter("are for --format focus only", param_hint="--version / --split / --basis")
    if form is FileFormat.FOCUS and rows is not Rows.CHARGEBACKS:
        raise typer.BadParameter("is not for --format focus; use --split topics", param_hint="--rows")


def period_of(month: datetime | None, start: datetime | None, end: datetime | None) -> tuple[date, date]:
    """Return the first and the last day that the options name; without them all days there can be.

    Raises:
        BadParameter: a month and days are given together, or the days are in the wrong order.
    """
    if month is not None:
        if start is not None or end is not None:
            raise typer.BadParameter("name either a month or days", param_hint="--month / --from / --through")
        _, last_day = monthrange(month.year, month.month)
        return date(month.year, month.month, 1), date(month.year, month.month, last_day)
    first, last = to_day(start) or date.min, to_day(end) or date.max
    if last < first:
        raise typer.BadParameter(f"should not be before the first day, {first}", param_hint="--through")
    return first, last


@dataclass(frozen=True)
class _Wanted:
    """What is written where: the present rows, or those ``as_of`` an instant. Without ``columns``, the default ones."""

    to: Path
    form: FileFormat
    rows: Rows
    period: tuple[date, date]
    columns: Sequence[str]
    as_of: datetime | None


def _columns_of(rows: Rows, written: str | None) -> list[str]:
    """Return the columns that an option names, in their order; none without it."""
    from chargeback.store.queries.category_lookup import CATEGORY_PREFIX
    from chargeback.store.queries.category_parts import SHARE
    from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS

    if written is None:
        return []
    known = (*(CHARGEBACKS if rows is Rows.CHARGEBACKS else TOPIC_ATTRIBUTIONS).export_columns, SHARE)
    named = [each.strip() for each in written.split(",")]
    categories = [each for each in named if each.startswith(CATEGORY_PREFIX)]
    wrong = [each for each in named if each not in known and each not in categories]
    if wrong:
        raise typer.BadParameter(
            f"should be some of {', '.join(known)}, or category:KEY, not {', '.join(wrong)}", param_hint="--columns"
        )
    if len(set(named)) < len(named):
        raise typer.BadParameter("should not name a column twice", param_hint="--columns")
    if SHARE in named and len(categories) != 1:
        raise typer.BadParameter(f"{SHARE} needs exactly one category:KEY beside it", param_hint="--columns")
    return named


def _written(tenant: Tenant, wanted: _Wanted) -> Iterator[str]:
    """Write the files; yield a line about each of them."""
    from chargeback.emitters.files import write_whole
    from chargeback.model.days import DayRange
    from chargeback.store.queries.category_lookup import CATEGORY_PREFIX
    from chargeback.store.queries.selection import Selection

    dataset = _dataset(tenant, wanted.rows)
    with opened(tenant, wanted.as_of) as (_, reader, _):
        first, last = wanted.period
        days = [day for day in reader.dates(dataset) if first <= day <= last]
        if not days:
            raise _failed(f"tenant {tenant.name}: there are no {wanted.rows} on these days")
        # With a cost category, what is split is a row for each of its parts: how many is known when they are written.
        is_split = any(each.startswith(CATEGORY_PREFIX) for each in wanted.columns)
        for path, some in _files(wanted.to, f"{tenant.name}_{wanted.rows}", wanted.form, days):
            span = DayRange.spanning(some)
            form = cast("ExportFormat", wanted.form.value)
            pieces = reader.export(dataset, Selection.of_days(span), wanted.columns, form=form)
            write_whole(path, shown(pieces, path), lambda: None)
            count = "" if is_split else f"{_count(reader, dataset, span):,} rows, "
            yield f"{path}: {count}{some[0]} to {some[-1]}"


def _focus(
    tenant: Tenant, to: Path, layout: FocusLayout, period: tuple[date, date], basis: Basis | None
) -> Iterator[str]:
    """Write the bill in FOCUS; yield a line about each file."""
    from chargeback.reports.focus.file import FocusSource, in_the_books

    if to.exists() and not to.is_dir():
        raise typer.BadParameter("should be a folder", param_hint="--to")
    with opened(tenant) as (view, reader, posted):
        source = FocusSource.of(view, reader)
        if not billed_days(source, period):
            raise _failed(f"tenant {tenant.name}: there is no bill of these days")

        def _of_month(month: AccountingPeriod) -> FocusSource:
            if basis == "posted":
                posted.books.regular(month)
                return source.seen_by(posted)
            return source if basis == "accrual" else in_the_books(source, posted, month)

        try:
            yield from write_focus(source, to, layout, period, _of_month)
            if layout.version == FocusVersion.V1_4 and posted.books.start is not None:
                yield from write_own_statements(view, posted, to)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--basis") from None


def _dataset(tenant: Tenant, rows: Rows) -> Dataset:
    from chargeback.recompute.rules import topic_plan
    from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS

    if rows is Rows.CHARGEBACKS:
        return CHARGEBACKS
    if topic_plan(tenant) is None:
        raise _failed(f"tenant {tenant.name}: topic attribution is not enabled")
    return TOPIC_ATTRIBUTIONS


def _files(to: Path, name: str, form: FileFormat, days: Sequence[date]) -> Iterator[tuple[Path, Sequence[date]]]:
    """Yield each file with its days: ``to`` with all of them or, if it is a folder, one file for each month in it."""
    from itertools import groupby

    from chargeback.emitters.files import file_name

    if not to.is_dir():
        yield to, days
        return
    for month, some in groupby(days, key=lambda day: f"{day:%Y-%m}"):
        yield to / file_name("{name}_{month}.{form}", {"name": name, "month": month, "form": form}), list(some)


def _count(reader: TenantReader, dataset: Dataset, span: DayRange) -> int:
    return sum(file.rows for file in reader.snapshot(dataset.table).within(span))


def shown(pieces: Iterable[memoryview], path: Path) -> Iterator[memoryview]:
    """Yield the pieces of a file; a terminal shows how many bytes there are so far."""
    import sys

    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=sys.stderr, highlight=False)
    columns = (TextColumn("{task.description}"), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(path.name, total=None)
        for piece in pieces:
            yield piece
            bars.advance(task, len(piece))


def _failed(why: str) -> typer.Exit:
    typer.echo(f"error: {why}", err=True)
    return typer.Exit(FAILED)
