"""Which files a query reads, and which of their rows are meant.

A query is about a half-open range of instants. Whole UTC days of it are whole files; where the range begins or
ends inside a UTC day, because a zone's midnight lies there, the rows of that day's file are filtered by their time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from chargeback.model.days import ONE_DAY, DayRange, InstantRange, start_of_day
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import Snapshot

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

#: The relation all queries read. ``date`` comes from the folder a file lies in.
SOURCE = "read_parquet($files, hive_partitioning = true, hive_types = {'date': DATE}, file_row_number = true)"


@dataclass(frozen=True)
class Condition:
    """Clauses that must all hold, the values they name, and the columns of the dataset that they read."""

    clauses: tuple[str, ...] = ()
    parameters: dict[str, object] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.clauses + other.clauses, self.parameters | other.parameters, self.reads | other.reads)

    @property
    def sql(self) -> str:
        """A boolean expression."""
        return " AND ".join(self.clauses) or "TRUE"


@dataclass(frozen=True)
class Scan:
    """The files that hold rows of ``window``, ordered by day, and the ``filter`` that a row must match as well.

    Days without rows have no files.
    """

    window: InstantRange
    files: tuple[DayFile, ...]
    filter: Condition = Condition()

    @classmethod
    def of(cls, snapshot: Snapshot, window: InstantRange, filter: Condition = Condition()) -> Scan:  # noqa: A002
        """Return the part of a table that lies in ``window``."""
        if window.start >= window.end:
            return cls(window, (), filter)
        return cls(window, snapshot.within(window.days()), filter)

    @cached_property
    def partial_days(self) -> frozenset[date]:
        """The UTC days that are partly inside the window: none, or those at its ends."""
        ends = {file.day for file in (*self.files[:1], *self.files[-1:]) if file.day is not None}
        return frozenset(
            day
            for day in ends
            if start_of_day(day) < self.window.start or self.window.end < start_of_day(day + ONE_DAY)
        )

    def only(self, days: Collection[date]) -> Scan:
        """The same window, but only the files of ``days``."""
        kept_days = set(days)
        return Scan(self.window, tuple(file for file in self.files if file.day in kept_days), self.filter)

    def spanning(self, files: Sequence[DayFile]) -> Scan:
        """Return the whole days of some of its files and all between them, which partial aggregates fit; without its
        filter."""
        days = DayRange.spanning([file.day for file in files if file.day is not None])
        whole = days.window
        return Scan(whole, tuple(file for file in self.files if file.day is not None and file.day in days))

    def pieces(self, rows: int) -> Iterator[Scan]:
        """Yield this scan in pieces of whole files, in their order: each with as few files as have ``rows`` rows."""
        piece: list[DayFile] = []
        for file in self.files:
            piece.append(file)
            if sum(each.rows for each in piece) >= rows:
                yield Scan(self.window, tuple(piece), self.filter)
                piece = []
        if piece:
            yield Scan(self.window, tuple(piece), self.filter)

    def days(self) -> DayRange | None:
        """The smallest range of UTC days that contains all files; none where there is no file."""
        days = [file.day for file in self.files if file.day is not None]
        return DayRange.spanning(days) if days else None

    def condition(self) -> Condition:
        """Return the condition on a row of :data:`SOURCE`."""
        return Condition(parameters={"files": self.files}) & self.row_condition()

    def row_condition(self) -> Condition:
        """Return the condition on a row of the files: none on its time where every file lies inside the window."""
        if not self.partial_days:
            return self.filter
        window = Condition(
            ("timestamp >= make_timestamptz($window_start)", "timestamp < make_timestamptz($window_end)"),
            {"window_start": microseconds(self.window.start), "window_end": microseconds(self.window.end)},
        )
        return window & self.filter


def microseconds(instant: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (instant - _EPOCH) // _MICROSECOND
