"""Sums of the visible rows of files, kept in memory.

Partial aggregates sum all rows of a file. Here are the sums of the rows that a scope shows by the same sets of columns,
so that a query within a scope adds up no more than the same query without one; and the sums by one tag or one cost
category, which change with tags and rules while the rows stay the same. They are made by the first query that reads a
file, and stay valid as long as the file exists, because a file never changes.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import pyarrow as pa

from chargeback.store.facts.files import DayFile
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import available_memory


@dataclass(frozen=True)
class VisibleEntities:
    """The ids of identities and of resources; environments, clusters and topics are resources, too."""

    identities: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()

    def __or__(self, other: VisibleEntities) -> VisibleEntities:
        return VisibleEntities(self.identities | other.identities, self.resources | other.resources)


# Of the memory that the process may use; the query engine has a quarter.
_PART_OF_MEMORY: Final = 16
# One set of sums that is larger than this part of all that are kept would only displace the others.
_PART_OF_ALL: Final = 4

# What is kept by one tenant's tags, or by one of its cost categories.
_OF_ONE: Final = 32 * 2**20

#: A set of sums: the table of its dataset and the columns that it is made by.
_Set = tuple[str, tuple[str, ...]]


@dataclass
class VisibleSums:
    """The kept sums of one scope, or of all rows by a tag or a cost category, as one state of tags, inventory and cost
    categories decides them. Safe for use by several threads."""

    revision: object = None
    most_bytes: int = _OF_ONE
    size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _by_file: dict[_Set, dict[str, pa.Table]] = field(default_factory=dict, repr=False)
    _too_large: set[_Set] = field(default_factory=set, repr=False)

    def of(
        self,
        dataset: Dataset,
        columns: tuple[str, ...],
        files: Sequence[DayFile],
        make: Callable[[Sequence[DayFile]], pa.Table],
    ) -> pa.Table | None:
        """Return the sums of some files by a set of columns; ``make`` sums the new ones, and returns them ascending by
        ``date``; it may sum more days.

        None if there is no file, or if the sums are too large to be kept: then it costs less to read the rows.
        """
        place = (dataset.table, columns)
        with self._lock:
            if not files or place in self._too_large:
                return None
            known = dict(self._by_file.get(place, {}))
        new = [file for file in files if file.path not in known]
        if new:
            known |= _by_file(make(new), new)
            self._keep(place, {file.path: known[file.path] for file in files})
        return pa.concat_tables([known[file.path] for file in files])

    def _keep(self, place: _Set, by_file: dict[str, pa.Table]) -> None:
        """Keep sums, in addition to those of other files. If that is too much, in place of these, which may be of
        replaced days, and of the sets that were made longest ago."""
        with self._lock:
            kept = self._by_file.pop(place, {}) | by_file
            if _bytes(kept) > self.most_bytes:
                kept = by_file
            if _bytes(kept) > self.most_bytes:
                self._too_large.add(place)
            else:
                self._by_file[place] = kept
            while (size := sum(map(_bytes, self._by_file.values()))) > self.most_bytes:
                del self._by_file[next(iter(self._by_file))]
            self.size = size


def _bytes(by_file: dict[str, pa.Table]) -> int:
    return sum(each.nbytes for each in by_file.values())


def _by_file(sums: pa.Table, files: Sequence[DayFile]) -> dict[str, pa.Table]:
    """Return the sums of each file apart: those of its day, which lie together."""
    days = sums["date"]
    found = {}
    for file in files:
        day = _ordinal(file.day)
        start = bisect_left(days, day, key=_ordinal_of)
        found[file.path] = sums.slice(start, bisect_right(days, day, lo=start, key=_ordinal_of) - start)
    return found


def _ordinal(day: date | None) -> int:
    return 0 if day is None else day.toordinal()


def _ordinal_of(value: pa.Scalar) -> int:
    return _ordinal(value.as_py())


class VisibleSumsCache:
    """The kept sums of the most recently used scopes. Safe for use by several threads."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """Limit the cache to a number of bytes; without a limit, the memory of the machine decides."""
        self._most_bytes = most_bytes if most_bytes is not None else available_memory() // _PART_OF_MEMORY
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, VisibleSums] = OrderedDict()

    def get(self, place: str, revision: object) -> VisibleSums:
        """Return the sums of a tenant's scope for the exact revision of the data that determine access."""
        with self._lock:
            known = self._kept.get(place)
            if known is None or known.revision != revision:
                known = self._kept[place] = VisibleSums(revision, self._most_bytes // _PART_OF_ALL)
            self._kept.move_to_end(place)
            while len(self._kept) > 1 and sum(each.size for each in self._kept.values()) > self._most_bytes:
                self._kept.popitem(last=False)
            return known
