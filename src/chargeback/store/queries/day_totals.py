"""Sums of whole days that are remembered: a file of facts never changes, so its sum is read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import date
from decimal import Decimal
from typing import Final

from chargeback.model.days import DayRange
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_amounts

#: The sums of so many days are remembered: some megabytes.
ROOM: Final = 20_000

_Files = tuple[str, ...]


class DayTotals:
    """The sums of the days that were asked for last, by the paths of their files: of whole days, whatever the scope of
    a reader. Safe for use by several threads."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._sums: OrderedDict[_Files, Decimal] = OrderedDict()

    def load(self, reader: TenantReader, dataset: Dataset, days: DayRange) -> dict[date, Decimal]:
        """Return the sum of each UTC day of a range that has rows; only what is not remembered is read.

        Raises:
            HistoryGone: the rows of an earlier instant are no longer kept.
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        reader = reader.unscoped()
        files = _files_by_day(reader, dataset, days)
        known = self._known(files)
        missing = files.keys() - known.keys()
        if missing:
            amounts = daily_amounts(reader, dataset, Selection.of_days(DayRange.spanning(missing)))
            read = {day: amounts[day] for day in missing}
            self._keep({files[day]: amount for day, amount in read.items()})
            known |= read
        return known

    def _known(self, files: dict[date, _Files]) -> dict[date, Decimal]:
        with self._lock:
            found = {day: self._sums[paths] for day, paths in files.items() if paths in self._sums}
            for day in found:
                self._sums.move_to_end(files[day])
        return found

    def _keep(self, sums: dict[_Files, Decimal]) -> None:
        with self._lock:
            self._sums.update(sums)
            while len(self._sums) > self._room:
                self._sums.popitem(last=False)


def _files_by_day(reader: TenantReader, dataset: Dataset, days: DayRange) -> dict[date, _Files]:
    found: dict[date, list[str]] = {}
    for file in reader.snapshot(dataset.table).within(days):
        if file.day is not None and file.rows:
            found.setdefault(file.day, []).append(file.path)
    return {day: tuple(sorted(paths)) for day, paths in found.items()}
