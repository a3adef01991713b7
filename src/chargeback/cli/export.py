"""``chargeback export``: write a tenant's rows as files, or the bill in FOCUS as a folder with its metadata."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chargeback.cli.options import (
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    INSTANT,
    INSTANT_FORMATS,
    ConfigOption,
    TenantName,
    failed,
    one_tenant,
    to_day,
)
from chargeback.cli.statements import opened, to_basis
from chargeback.model.focus import IDENTITIES, TOPICS, UNSPLIT, V1_2, V1_4

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.model.accounting import AccountingPeriod
    from chargeback.model.days import DayRange
    from chargeback.reports.closing.statements import Basis
    from chargeback.reports.focus.columns import FocusLayout
    from chargeback.reports.focus.file import FocusSource
    from chargeback.reports.tenant_view import TenantView
    from chargeback.store.queries.datasets import Dataset
    from chargeback.store.queries.export import ExportFormat
    from chargeback.store.queries.posted import PostedReader
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
        SplitAmong | None,
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

        layout = FocusLayout((version or FocusVersion.V1_2).value, (split or SplitAmong.IDENTITIES).value)
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
    from chargeback.store.queries.category_parts import SHARE
    from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
    from chargeback.store.queries.lookups import CATEGORY_PREFIX

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
        raise typer.BadParameter(f"{SHARE} needs exactly one category:KEY in addition", param_hint="--columns")
    return named


def _written(tenant: Tenant, wanted: _Wanted) -> Iterator[str]:
    """Write the files; yield a line about each of them."""
    from chargeback.emitters.files import write_whole
    from chargeback.model.days import DayRange
    from chargeback.store.queries.lookups import CATEGORY_PREFIX
    from chargeback.store.queries.selection import Selection

    dataset = _dataset(tenant, wanted.rows)
    with opened(tenant, wanted.as_of) as (_, reader, _):
        first, last = wanted.period
        days = [day for day in reader.dates(dataset) if first <= day <= last]
        if not days:
            failed(f"tenant {tenant.name}: there are no {wanted.rows} on these days")
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
            failed(f"tenant {tenant.name}: there is no bill of these days")

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
        failed(f"tenant {tenant.name}: topic attribution is not enabled")
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


class FocusVersion(StrEnum):
    """The version of FOCUS."""

    V1_2 = V1_2
    V1_4 = V1_4


class SplitAmong(StrEnum):
    """Among whom the billing lines are divided."""

    IDENTITIES = IDENTITIES
    TOPICS = TOPICS
    NONE = UNSPLIT


def write_focus(
    source: FocusSource,
    to: Path,
    layout: FocusLayout,
    period: tuple[date, date],
    of_month: Callable[[AccountingPeriod], FocusSource],
) -> Iterator[str]:
    """Write the months of a period into a folder, with their metadata; yield a line about each file. ``of_month`` says
    what the file of a month is made of; with what was posted to it, the file has the whole month.

    Raises:
        EmitterError: a file cannot be read or written.
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read, or the bill changes while it is read.
        ValueError: a month is before the books.
    """
    from chargeback.emitters.focus import FocusFolder
    from chargeback.model.accounting import AccountingPeriod
    from chargeback.model.days import ONE_DAY, DayRange
    from chargeback.reports.focus.file import focus_file
    from chargeback.reports.focus.metadata import focus_metadata

    folder = FocusFolder(to)
    for month, some in groupby(billed_days(source, period), key=AccountingPeriod.of):
        made_of = of_month(month)
        span = DayRange.spanning(some) if made_of is source else month.days
        metadata = focus_metadata(made_of, layout, span).model_dump(mode="json", by_alias=True)
        path = folder.data_file(metadata, month.start)
        folder.write_month(metadata, month.start, shown(focus_file(made_of, layout, span, "parquet"), path))
        folder.write_metadata(metadata)
        yield f"{path}: {span.start} to {span.end - ONE_DAY}"
    yield f"{to / 'metadata'}: what the files are, and which days are complete"


def write_own_statements(tenant: TenantView, posted: PostedReader, to: Path) -> Iterator[str]:
    """Write our own months and statements, the datasets *Billing Period* and *Invoice Detail*, as CSV files; yield a
    line about each.

    Raises:
        EmitterError: a file cannot be written.
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read.
    """
    from chargeback.emitters.files import write_whole
    from chargeback.reports.closing.focus_invoices import (
        FocusBillingPeriod,
        FocusInvoiceDetail,
        billing_periods,
        focus_csv_text,
        invoice_details,
    )
    from chargeback.reports.closing.preview import groupings

    by = groupings(tenant, posted)[0]
    months, lines = billing_periods(tenant, posted), invoice_details(tenant, posted, by)
    texts = {
        "billing-periods.csv": focus_csv_text(months, FocusBillingPeriod),
        "invoice-details.csv": focus_csv_text(lines, FocusInvoiceDetail),
    }
    for name, text in texts.items():
        write_whole(to / name, [text.encode()], lambda: None)
        yield f"{to / name}: our own {'months' if name.startswith('billing') else f'statements, by {by}'}"


def billed_days(source: FocusSource, period: tuple[date, date]) -> list[date]:
    """Return the days of a period that have a bill, ascending."""
    from chargeback.store.queries.datasets import BILLING_LINES

    first, last = period
    return [day for day in source.reader.dates(BILLING_LINES) if first <= day <= last]
