"""What the next questions are expected to read.

A page that asks about some days goes on to ask about their topics, the days before them, and a forecast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from chargeback.store.facts.copies import Copies
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.partial_files import by_week
from chargeback.store.facts.tables import Snapshots
from chargeback.store.queries.datasets import DATASETS, Dataset

#: How far back questions look that name no days: that is the history of a forecast.
_PAST: Final = timedelta(days=260)
#: How much of the room for copies may be used before anyone has asked for them.
_PART_OF_ROOM: Final = 4


def last_weeks(tables: Snapshots, copies: Copies) -> Iterator[tuple[Dataset, Sequence[DayFile]]]:
    """Yield the files of each week and dataset, the newest first, that take at most a part of the room for copies."""
    room = copies.max_bytes // _PART_OF_ROOM
    found = [
        (week, dataset, files) for dataset in DATASETS for week, files in by_week(tables[dataset.table].files).items()
    ]
    found.sort(key=lambda each: each[0], reverse=True)
    for week, dataset, files in found:
        room -= sum(file.size or 0 for file in files)
        if room < 0 or found[0][0] - week > _PAST:
            return
        yield dataset, files
