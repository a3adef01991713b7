"""``chargeback export --format focus``: the bill in FOCUS as a folder of files with their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from chargeback.model.focus import IDENTITIES, TOPICS, UNSPLIT, V1_2, V1_4

if TYPE_CHECKING:
    from chargeback.model.accounting import AccountingPeriod
    from chargeback.reports.focus.columns import FocusLayout
    from chargeback.reports.focus.file import FocusSource
    from chargeback.reports.tenant_view import TenantView
    from chargeback.store.queries.posted import PostedReader


class FocusVersion(StrEnum):
    """The version of FOCUS."""

    V1_2 = V1_2
    V1_4 = V1_4


class Split(StrEnum):
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
    """Write the months of a period into a folder, with their metadata; yield a line about each file. ``of_month`` tells
    what the file of a month is made of; with what was posted to it, the file has the whole month.

    Raises:
        EmitterError: a file cannot be read or written.
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read, or the bill changes while it is read.
        ValueError: a month is before the books.
    """
    from chargeback.cli.export import shown
    from chargeback.emitters.focus_files import FocusFolder
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
