"""``chargeback export --format focus``: the bill in FOCUS as a folder of files with their metadata."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from chargeback.model.focus import IDENTITIES, TOPICS, UNSPLIT, V1_2, V1_4

if TYPE_CHECKING:
    from chargeback.reports.focus.file import FocusSource


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
    source: FocusSource, to: Path, version: FocusVersion, split: Split, period: tuple[date, date]
) -> Iterator[str]:
    """Write the months of a period into a folder, with their metadata; yield a line about each file.

    Raises:
        EmitterError: a file cannot be read or written.
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read, or the bill changes while it is read.
    """
    from chargeback.cli.export import shown
    from chargeback.emitters.focus_files import FocusFolder
    from chargeback.model.days import ONE_DAY, DayRange
    from chargeback.reports.focus.columns import FocusLayout
    from chargeback.reports.focus.file import focus_file
    from chargeback.reports.focus.metadata import focus_metadata

    folder, layout = FocusFolder(to), FocusLayout(version.value, split.value)
    days = billed_days(source, period)
    metadata = focus_metadata(source, layout, DayRange.spanning(days)).model_dump(mode="json", by_alias=True)
    for _, some in groupby(days, key=lambda day: (day.year, day.month)):
        span = DayRange.spanning(some)
        path = folder.data_file(metadata, span.start)
        folder.write_month(metadata, span.start, shown(focus_file(source, layout, span, "parquet"), path))
        yield f"{path}: {span.start} to {span.end - ONE_DAY}"
    folder.write_metadata(metadata)
    yield f"{to / 'metadata'}: what the files are, and which days are complete"


def billed_days(source: FocusSource, period: tuple[date, date]) -> list[date]:
    """Return the days of a period that have a bill, ascending."""
    from chargeback.store.queries.datasets import BILLING_LINES

    first, last = period
    return [day for day in source.reader.dates(BILLING_LINES) if first <= day <= last]
