"""Partial aggregates: an aggregate adds up stored sums of the files instead of their rows, if both give the same
result.

For each set of columns that a dataset declares, the sums of its files by these columns and by timestamp are kept.
Because the timestamp is kept, they work for every window, zone and unit of time; because they are exact sums of the
same rows, adding them up gives what adding up the rows gives, to the last digit. A query uses them if it reads no other
column of the table, and if every file that it reads has them; else it reads the rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.errors import StorageError
from chargeback.model.days import DayRange, week_of
from chargeback.store.facts.files import DayFile, dated, read_file
from chargeback.store.facts.partial_files import ONE_WEEK, PartialFile, PartialFiles, by_week, sources_of
from chargeback.store.facts.places import DISK
from chargeback.store.facts.tables import Snapshots
from chargeback.store.queries.datasets import CHARGED_LINES, DATASETS, MEASURED_LINES, REFUNDED_LINES, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.sql_format import FINE

T = TypeVar("T")

#: The number of rows of a group, next to the sums of its dataset.
ROW_COUNT: Final = "row_count"
#: The number of rows, each counted once: where rows are divided, in the group that has the first part.
DISTINCT_ROWS: Final = "rows_once"
#: The sums that cost categories add: what values were assigned, what others reallocated to them, and what they
#: reallocated. The total is the first two without the third.
REALLOCATED: Final = ("direct", "shared_in", "shared_out")
#: The sums that count rows.
COUNTS: Final = ("unowned_rows", ROW_COUNT, DISTINCT_ROWS, MEASURED_LINES, CHARGED_LINES, REFUNDED_LINES)
#: The columns that every set of partial aggregates has.
TIME_COLUMNS: Final = ("date", "timestamp")
#: The column of the values of a tag, where sums by it are kept.
TAG_VALUE: Final = "tag_value"

_PARTIAL_SOURCE: Final = "read_parquet($files, hive_partitioning = false)"
# Runs make partial aggregates. A query makes a lost one only if that hardly slows it down.
ROWS_AT_ONCE: Final = 250_000
#: The days of history that a forecast is made of.
_HISTORY: Final = timedelta(days=260)


@dataclass(frozen=True)
class SumSource:
    """What the sums of a question are added up from: rows, or partial aggregates of them.

    ``relation`` is SQL after FROM, ``condition`` what its rows must match, and ``sums`` are the sums of a group by
    their names, the number of rows among them, as SQL over the relation. ``are_partial`` says which they are; ``rows``
    is how many partial aggregates there are at most. If it ``has_tag``, the only tag of the question is a column,
    :data:`TAG_VALUE`. Where cost is reallocated, sums have more digits: those that are
    ``fine`` have a second sum, by their name and :data:`~chargeback.store.queries.sql_format.FINE`.
    """

    relation: str
    condition: Condition
    sums: Mapping[str, str]
    are_partial: bool = False
    rows: int = 0
    has_tag: bool = False

    @property
    def fine(self) -> frozenset[str]:
        """The names of the sums that have further digits."""
        return frozenset(name for name in self.sums if f"{name}{FINE}" in self.sums)

    @property
    def amounts(self) -> list[str]:
        """The names of the sums that are amounts."""
        return [name for name in self.sums if name not in COUNTS and not name.endswith(FINE)]


def sums_of(names: Iterable[str]) -> dict[str, str]:
    """Return the sums of columns that are sums themselves, as SQL, by the names of the columns."""
    return {name: f"sum({name}){'::BIGINT' if name in COUNTS else ''}" for name in names}


def sum_sources(
    cursor: Cursor, partials: PartialFiles | None, dataset: Dataset, scan: Scan, reads: Collection[str]
) -> list[SumSource]:
    """Return what the sums of a scan can be added up from, the fastest first: its partial aggregates, if these suffice,
    and its rows.

    ``reads`` are the columns that the query reads, in addition to those of the scan's filter and its sums. Without
    ``partials`` only the rows are returned.

    Raises:
        QueryTimeout: the query was cancelled.
    """
    columns = covering(dataset, scan.filter.reads.union(reads))
    found = None
    if partials is not None and columns is not None:
        found = _Partials(cursor, partials, dataset, columns).source(scan)
    rows = SumSource(SOURCE, scan.condition(), {**dataset.sums, ROW_COUNT: "count(*)"})
    return [rows] if found is None else [found, rows]


def with_first(sources: Sequence[SumSource], use: Callable[[SumSource], T]) -> T:
    """Return the result of ``use`` on the first source that can be read: partial files may be deleted at any time.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the last source cannot be read either.
    """
    *others, last = sources
    for source in others:
        with suppress(StorageError):
            return use(source)
    return use(last)


def covering(dataset: Dataset, reads: Collection[str]) -> tuple[str, ...] | None:
    """Return the set of columns whose partial aggregates have all of some columns; None if no set does."""
    return next((each for each in dataset.partials if {*TIME_COLUMNS, *each}.issuperset(reads)), None)


def make_partials(cursor: Cursor, partials: PartialFiles, dataset: Dataset, files: Sequence[DayFile]) -> None:
    """Make and keep the partial aggregates that ``files`` lack; these are all that their weeks have.

    A file that cannot be read, or whose sums are too large, has none: the query that reads its rows says so.

    Raises:
        QueryTimeout: the work was cancelled.
    """
    kinds = [_Partials(cursor, partials, dataset, columns) for columns in dataset.partials]
    for some in _together(files):
        # Files that are summed together with one that cannot be read have no sums either.
        if not _are_made(kinds, some) and len(weeks := by_week(some)) > 1:
            for of_week in weeks.values():
                _are_made(kinds, of_week)


def _together(files: Sequence[DayFile]) -> Iterator[list[DayFile]]:
    """Yield the files of one week, or of several that have few rows, at a time."""
    some: list[DayFile] = []
    for of_week in by_week(files).values():
        if some and sum(file.rows for file in (*some, *of_week)) > ROWS_AT_ONCE:
            yield some
            some = []
        some = [*some, *of_week]
    if some:
        yield some


def _are_made(kinds: Sequence[_Partials], files: Sequence[DayFile]) -> bool:
    """Make the partial aggregates of each kind that weeks lack, of which these are all ``files``; return whether all
    are there."""
    days = [file.day for file in files if file.day is not None]
    weeks = DayRange(week_of(min(days)).start, week_of(max(days)).end)
    with suppress(StorageError, OSError), _at_hand(files) as files_at_hand:
        made = [kind.ensure(files_at_hand, weeks) is not None for kind in kinds]
        return all(made)
    return False


def last_weeks(tables: Snapshots, room: int) -> Iterator[tuple[Dataset, Sequence[DayFile]]]:
    """Yield what questions are expected to read: the files of each week and dataset, the newest first, as far back as a
    forecast looks, as long as they take at most ``room`` bytes together."""
    found = [(week, each, files) for each in DATASETS for week, files in by_week(tables[each.table].files).items()]
    found.sort(key=lambda each: each[0], reverse=True)
    for week, dataset, files in found:
        room -= sum(file.size or 0 for file in files)
        if room < 0 or found[0][0] - week > _HISTORY:
            return
        yield dataset, files


@contextmanager
def _at_hand(files: Sequence[DayFile]) -> Iterator[Sequence[DayFile]]:
    """Yield the files as they are on this machine: those of object storage are fetched side by side, and once."""
    copies = files[0].place.copies if files else None
    if copies is None:
        yield files
        return
    with copies.lent(files) as paths:
        yield [replace(file, path=path, place=DISK) for file, path in zip(files, paths, strict=True)]


def lacks_partials(partials: PartialFiles, dataset: Dataset, files: Sequence[DayFile]) -> bool:
    """Return whether any week of ``files`` lacks partial aggregates; ``files`` has all of each week."""
    weeks = by_week(files)
    for columns in dataset.partials:
        kept = partials.by_week(dataset.table, kind_of(dataset, columns), weeks)
        for week, of_week in weeks.items():
            if _matching(kept.get(week, ()), of_week, DayRange(week, week + ONE_WEEK)) is None:
                return True
    return False


def partial_kinds() -> dict[str, Collection[str]]:
    """Return the names of the partial aggregates of this version, by table."""
    return {each.table: {kind_of(each, columns) for columns in each.partials} for each in DATASETS}


def kind_of(dataset: Dataset, columns: Sequence[str]) -> str:
    """Return the name of the sums by some columns: another definition has another name."""
    return f"{columns[0]}-{hashlib.sha256(_definition(dataset, columns).encode()).hexdigest()[:16]}"


def _definition(dataset: Dataset, columns: Sequence[str]) -> str:
    """SQL of a file's sums without its FROM."""
    sums = ", ".join(f"{sql} AS {name}" for name, sql in {**dataset.sums, ROW_COUNT: "count(*)"}.items())
    return f"SELECT timestamp, {', '.join(columns)}, {sums}"


@dataclass(frozen=True)
class _LackingWeek:
    """A week whose partial file is to be made: the first day, its files that a question reads, of ``days``, with their
    digests, and the partial file that it has."""

    start: date
    files: Sequence[DayFile]
    wanted: Mapping[date, str]
    kept: PartialFile | None
    days: DayRange

    @cached_property
    def reused(self) -> dict[date, str]:
        """The days that stay as they were summed: the same files, and those outside ``days``."""
        known = {} if self.kept is None else self.kept.sources
        return {day: each for day, each in known.items() if day not in self.days or self.wanted.get(day) == each}


class _Partials:
    """The sums of one dataset by one set of columns."""

    def __init__(self, cursor: Cursor, files: PartialFiles, dataset: Dataset, columns: tuple[str, ...]) -> None:
        self._cursor = cursor
        self._files = files
        self._dataset = dataset
        self._columns = columns
        self._name = kind_of(dataset, columns)

    def source(self, scan: Scan) -> SumSource | None:
        """Return the partial aggregates of all files of a scan; None if some are missing and are not made now."""
        days = scan.days()
        if days is None:
            return None
        used = self.ensure(scan.files, days, max_rows=ROWS_AT_ONCE)
        if used is None:
            return None
        condition = scan.condition() & Condition(parameters={"files": [file.path for file in used]})
        if any(day not in days for file in used for day in file.sources):
            within: dict[str, object] = {"first_day": days.start, "end_day": days.end}
            condition &= Condition(("date >= $first_day", "date < $end_day"), within)
        sums = sums_of([*self._dataset.sums, ROW_COUNT])
        return SumSource(_PARTIAL_SOURCE, condition, sums, are_partial=True, rows=sum(file.rows for file in used))

    def ensure(self, files: Sequence[DayFile], days: DayRange, max_rows: float = math.inf) -> list[PartialFile] | None:
        """Return partial files that sum, of ``days``, exactly ``files``; those that are missing are made. None if that
        failed, or if they sum more than ``max_rows``: then only the newest of them are made."""
        weeks = by_week(files)
        kept = self._files.by_week(self._dataset.table, self._name, weeks)
        used: list[PartialFile] = []
        lacking: list[_LackingWeek] = []
        is_all = True
        for week, of_week in reversed(weeks.items()):
            known = kept.get(week, ())
            found = _matching(known, of_week, days)
            if found is not None:
                used.append(found)
                continue
            wanted = sources_of(of_week)
            max_rows -= sum(file.rows for file in of_week)
            is_all = wanted is not None and max_rows >= 0 and self._files.is_writable
            if wanted is None or not is_all:
                break
            lacking.append(_LackingWeek(week, of_week, wanted, known[0] if known else None, days))
        made = self._make(lacking, days)
        return [*used, *made] if is_all and len(made) == len(lacking) else None

    def _make(self, weeks: Sequence[_LackingWeek], days: DayRange) -> list[PartialFile]:
        """Make the partial files of weeks together, and return those that could be made."""
        missing = [file for week in weeks for file in week.files if file.day not in week.reused]
        with suppress(StorageError, OSError):
            with _at_hand(missing) as files:
                # A query costs as much as summing some thousand rows; but the rows of large days fill the memory.
                pieces = Scan(days.window, tuple(files)).pieces(ROWS_AT_ONCE)
                sums = [self._sum(piece.files) for piece in pieces]
            made = [self._write(week, sums) for week in weeks]
            return [file for file in made if file is not None]
        return []

    def _write(self, week: _LackingWeek, sums: Sequence[pa.Table]) -> PartialFile | None:
        """Keep the partial file of a week, whose new ``sums`` are among others."""
        new = pa.array([day for day in week.wanted if day not in week.reused], pa.date32())
        parts = [rows.filter(pc.is_in(rows["date"], value_set=new)) for rows in sums]
        if week.kept is not None and week.reused:
            parts.append(self._kept_rows(week.kept, list(week.reused)))
        rows = pa.concat_tables(parts).sort_by("date")
        return self._files.write(self._dataset.table, self._name, week.start, rows, {**week.reused, **week.wanted})

    def _kept_rows(self, kept: PartialFile, days: Sequence[date]) -> pa.Table:
        sql = f"SELECT * FROM {_PARTIAL_SOURCE} WHERE date IN (SELECT unnest($days::DATE[]))"
        return self._cursor.table(sql, {"files": [kept.path], "days": days})

    def _sum(self, files: Sequence[DayFile]) -> pa.Table:
        """The sums of data files, which are compared with their digests: sums of damaged rows would outlive the
        damage."""
        needed = {"timestamp", *self._columns}.union(*(each.reads for each in self._dataset.measures))
        parts = [dated(read_file(file, sorted(needed)), file.day) for file in files]
        name = self._cursor.register(self._cursor.new_name("rows_of_files"), pa.concat_tables(parts))
        try:
            grouped = f"{_definition(self._dataset, self._columns)}, date FROM {name} GROUP BY ALL"
            return self._cursor.table(f"SELECT date, * EXCLUDE (date) FROM ({grouped}) ORDER BY ALL", {})
        finally:
            self._cursor.unregister(name)


def _matching(kept: Sequence[PartialFile], files: Sequence[DayFile], days: DayRange) -> PartialFile | None:
    """Return the partial file that sums, of ``days``, exactly ``files``."""
    wanted = sources_of(files)
    for each in kept:
        if {day: digest for day, digest in each.sources.items() if day in days} == wanted:
            return each
    return None
