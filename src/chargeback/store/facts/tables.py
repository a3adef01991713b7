"""The Delta tables of a tenant: their names, columns and order, and how a day of one is replaced.

A day is replaced in one Delta commit: a reader sees the old day or the new one, never a mix. Every commit carries
the epoch of the writer's lease as an application transaction, and is made on a snapshot whose recorded epoch is not
newer: a worker that slept through its lease cannot overwrite its successor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.table import FilterConjunctionType
from deltalake.transaction import AddAction

from chargeback.errors import ForgottenDay, HistoryGone, LeaseLost, StorageError
from chargeback.model.billing import BILLING
from chargeback.model.chargeback import CHARGEBACK_ORDER, CHARGEBACKS, DIMENSIONS
from chargeback.model.days import DayRange
from chargeback.model.topics import TOPIC_ATTRIBUTIONS, TOPIC_ORDER
from chargeback.model.usage import MEMBERS, USAGE
from chargeback.store.facts.commits import LEASE, commit_attempts, commit_properties, translate_delta_errors
from chargeback.store.facts.files import DayFile, read_file, write_file
from chargeback.store.facts.parallel import side_by_side
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.facts.places import LogState, Place, as_place

BILLING_TABLE: Final = "billing"
USAGE_TABLE: Final = "usage"
MEMBERS_TABLE: Final = "members"
CHARGEBACKS_TABLE: Final = "chargebacks"
DIMENSIONS_TABLE: Final = "dimensions"
TOPIC_USAGE_TABLE: Final = "topic_usage"
TOPICS_TABLE: Final = "topic_attributions"

_CURRENT: Final[Mapping[str, pa.Schema]] = {
    BILLING_TABLE: BILLING,
    USAGE_TABLE: USAGE,
    MEMBERS_TABLE: MEMBERS,
    CHARGEBACKS_TABLE: CHARGEBACKS,
    DIMENSIONS_TABLE: DIMENSIONS,
    TOPIC_USAGE_TABLE: USAGE,
    TOPICS_TABLE: TOPIC_ATTRIBUTIONS,
}

#: The tables that are partitioned by day.
DAY_TABLES: Final = tuple(name for name, schema in _CURRENT.items() if "date" in schema.names)

#: For each of these, the table that keeps its superseded files, partitioned by day and revision. It exists as soon as
#: there is something to keep.
HISTORY_TABLES: Final = {name: f"{name}_history" for name in DAY_TABLES}

_REVISION: Final = pa.field("revision", pa.int32(), nullable=False)

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    **_CURRENT,
    **{history: _CURRENT[name].append(_REVISION) for name, history in HISTORY_TABLES.items()},
}

#: Rows of a day's file are written in this order, which is also the order of every list.
ORDER: Final[Mapping[str, Sequence[str]]] = {
    BILLING_TABLE: ("timestamp", "resource_id", "product_type", "line_id"),
    USAGE_TABLE: ("measure", "resource_id", "subject"),
    MEMBERS_TABLE: ("relation", "resource_id", "identity_id"),
    CHARGEBACKS_TABLE: CHARGEBACK_ORDER,
    DIMENSIONS_TABLE: ("dimension_id",),
    TOPIC_USAGE_TABLE: ("measure", "resource_id", "subject"),
    TOPICS_TABLE: TOPIC_ORDER,
}

# Opening a table replays every commit since the last checkpoint, and so does each commit: with Delta's default of 100
# the 100th day costs five times as much as the first.
_SETTINGS = {"delta.checkpointInterval": "10"}
_NOT_FOUND: Final = "Invalid table version"


@dataclass(frozen=True)
class Snapshot:
    """The files of one table at one version, ordered by day; ``gone`` are days whose files are no longer kept."""

    version: int
    files: tuple[DayFile, ...] = ()
    gone: tuple[ForgottenDay, ...] = ()

    @property
    def days(self) -> list[date]:
        """The days that have at least one row, ascending."""
        self._require(self.gone)
        return sorted({file.day for file in self.files if file.day is not None and file.rows})

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return sum(file.rows for file in self.files)

    def within(self, days: DayRange) -> tuple[DayFile, ...]:
        """The files that hold rows of ``days``.

        Raises:
            HistoryGone: a file of one of the days is no longer kept.
        """
        self._require([each for each in self.gone if each.day in days])
        return tuple(file for file in self.files if file.rows and file.day is not None and file.day in days)

    @staticmethod
    def _require(gone: Sequence[ForgottenDay]) -> None:
        if gone:
            raise HistoryGone(gone)


EMPTY = Snapshot(version=-1)


@dataclass(frozen=True, slots=True)
class PreparedDay:
    """The new content of a day of a table, written but not committed. ``file`` is None for a day without rows."""

    table: str
    day: date
    file: AddAction | None

    @property
    def file_names(self) -> list[str]:
        """The names of its files: one, or none for a day without rows."""
        return [] if self.file is None else [Path(self.file.path).name]


class FactTables:
    """The Delta tables in one place. Safe for use by several threads; readers need not hold the lease.

    Raises (everywhere): StorageError when the place or a table in it cannot be read or written.
    """

    def __init__(self, place: Place | Path) -> None:
        self.place = as_place(place)
        self.partials = PartialFiles(self.place)
        self._locks = {name: threading.Lock() for name in SCHEMAS}
        self._counting = threading.Lock()
        self._commits = 0
        self._is_alone = False
        self._looked_at: set[str] = set()
        self._open: dict[str, DeltaTable] = {}
        self._logs: dict[str, LogState] = {}
        self._snapshots: dict[str, Snapshot] = {}

    @property
    def root(self) -> Path:
        """The folder of this machine below which queries open the files."""
        return self.place.root

    @property
    def commits(self) -> int:
        """How many commits were tried here, whether they went in or not. Not those of other objects."""
        return self._commits

    def count_commit(self) -> None:
        """Count a commit that the Delta library was asked for."""
        with self._counting:
            self._commits += 1

    def exist(self) -> bool:
        """Whether any of the tables is there."""
        return any(self._has_log(name) for name in SCHEMAS)

    def _has_log(self, name: str) -> bool:
        return self.place.newest_version(name) >= 0

    def create(self) -> None:
        """Create the tables that do not exist yet. Only the holder of the lease may: two creators at once would both
        succeed, and one of the tables would be lost."""
        side_by_side(lambda name: self._create(name, ["date"] if name in DAY_TABLES else None), list(_CURRENT))

    def _create(self, name: str, partition: list[str] | None) -> None:
        with translate_delta_errors(name):
            if self._has_log(name):
                return
            self.place.prepare(name)
            for attempt in commit_attempts():
                with attempt:
                    self._create_log(name, partition)
            self.place.settle(name, after=-1)
            self._looked_at.discard(name)

    def _create_log(self, name: str, partition: list[str] | None) -> None:
        """Create the log of a table. A store may refuse the first entry for the moment, because of somebody's request
        that it had no answer to yet (409): the library takes that for an entry that is there, and does not find it.

        Raises:
            CommitFailedError: that is so.
        """
        try:
            DeltaTable.create(
                self.place.uri(name),
                SCHEMAS[name],
                mode="ignore",
                partition_by=partition,
                name=name,
                configuration=_SETTINGS,
                storage_options=self.place.options,
            )
        except DeltaError as error:
            if _NOT_FOUND not in str(error):
                raise
            if not self._has_log(name):
                raise CommitFailedError(str(error)) from error
        finally:
            self.count_commit()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Look at a table once, and again after each write of this object: while a run holds the lease, no one else
        writes. Commits always look, so one who has lost the lease without knowing is refused."""
        self._looked_at.clear()
        self._is_alone = True
        try:
            yield
        finally:
            self._is_alone = False

    def read_ahead(self) -> None:
        """Open all tables side by side. One that cannot be read is an error of who needs it."""

        def look_at(name: str) -> None:
            with suppress(StorageError):
                self.snapshot(name)

        side_by_side(look_at, list(SCHEMAS))

    def snapshot(self, name: str) -> Snapshot:
        """The table as it is now; a table that was never written is empty."""
        with self._locks[name], translate_delta_errors(name):
            table = self._open.get(name) if self._is_alone and name in self._looked_at else self._refresh(name)
            if table is None:
                return EMPTY
            known = self._snapshots.get(name, EMPTY)
            if table.version() != known.version:
                known = self._snapshots[name] = _files_of(table, self.place, name)
            return known

    def _refresh(self, name: str) -> DeltaTable | None:
        """The open table brought to its latest version; none where there is none yet. The caller holds its lock."""
        table = self._newest(name)
        self._looked_at.add(name)
        return table

    def _newest(self, name: str) -> DeltaTable | None:
        table = self._open.get(name)
        if table is not None:
            # Delta's own look for new entries takes a hundred times as long as asking for the next one.
            log = self.place.log_state(name, table.version())
            if log != self._logs.get(name):
                table.update_incremental()
                self._logs[name] = log._replace(has_next=False)
            return table
        try:
            self._logs[name] = self.place.log_state(name, 0)._replace(has_next=False)
            table = self._open[name] = self.open(name)
        except TableNotFoundError:
            return None
        return table

    def open(self, name: str) -> DeltaTable:
        """Return a table as the Delta library opens it.

        Raises:
            TableNotFoundError: it is not there.
        """
        return DeltaTable(self.place.uri(name), storage_options=self.place.options)

    def newest_versions(self) -> dict[str, int]:
        """The newest version of each table, readable or not; -1 of one that is not there."""
        with translate_delta_errors("log"):
            return dict(zip(SCHEMAS, side_by_side(self.place.newest_version, list(SCHEMAS)), strict=True))

    def newest_epoch(self) -> int:
        """The newest epoch of a lease under which any of the tables was written; 0 where none was. A table that cannot
        be read says nothing: the next run mends it."""

        def recorded(name: str) -> int:
            with suppress(StorageError), translate_delta_errors(name), suppress(TableNotFoundError):
                return self.open(name).transaction_version(LEASE) or 0
            return 0

        return max(side_by_side(recorded, list(SCHEMAS)))

    def replace_day(self, name: str, day: date, rows: pa.Table, *, epoch: int) -> None:
        """Make ``rows`` the whole content of ``day``; an empty table makes the day empty.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
            StorageError: a row lies outside the day, or the table cannot be written.
        """
        self.replace_days(name, {day: rows}, epoch=epoch)

    def replace_days(self, name: str, days: Mapping[date, pa.Table], *, epoch: int) -> None:
        """Make the rows of each day its whole content, in one commit.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
            StorageError: a row lies outside its day, or the table cannot be written.
        """
        self.commit_days([self.prepare_day(name, day, rows) for day, rows in days.items()], epoch=epoch)

    def prepare_day(self, name: str, day: date, rows: pa.Table) -> PreparedDay:
        """Write the file of a day's new content, which no reader sees before :meth:`commit_days`.

        Raises:
            StorageError: a row lies outside the day, or the file cannot be written.
        """
        if rows.num_rows == 0:
            return PreparedDay(name, day, None)
        if pc.min(rows["date"]).as_py() != day or pc.max(rows["date"]).as_py() != day:
            raise StorageError(f"the table {name} cannot be used: rows of other days were given for {day}")
        with translate_delta_errors(name):
            file = write_file(self.place, name, _conform(rows, SCHEMAS[name]), {"date": day.isoformat()})
        return PreparedDay(name, day, file)

    def prepare_tables(self, day: date, tables: Mapping[str, pa.Table]) -> dict[str, PreparedDay]:
        """Write the files of a day's new content of several tables, side by side, like :meth:`prepare_day`.

        Raises:
            StorageError: a row lies outside the day, or a file cannot be written.
        """
        written = side_by_side(lambda name: self.prepare_day(name, day, tables[name]), list(tables))
        return dict(zip(tables, written, strict=True))

    def discard_day(self, prepared: PreparedDay) -> None:
        """Delete the file of a day that is not committed."""
        if prepared.file is not None:
            with suppress(OSError):
                self.place.delete(f"{prepared.table}/{prepared.file.path}")

    def commit_days(self, prepared: Sequence[PreparedDay], *, epoch: int) -> None:
        """Make prepared files the whole content of their days, in one commit. They are different days of one table.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
            StorageError: the table cannot be written.
        """
        if not prepared:
            return
        (name,) = {each.table for each in prepared}
        days = [each.day.isoformat() for each in prepared]
        files = [each.file for each in prepared if each.file is not None]
        if files:
            self._commit_files(name, files, epoch, replaced=[("date", "in", days)])
            return
        predicate = f"date IN ({', '.join(repr(day) for day in days)})"
        self._commit(name, epoch, lambda table, how: table.delete(predicate, commit_properties=how))

    def keep(self, name: str, files: Sequence[AddAction], *, epoch: int) -> None:
        """Add files, which lie in their places already, to the history of a table, in one commit.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
            StorageError: the history cannot be written.
        """
        self._create(name, list(files[0].partition_values))
        self._commit_files(name, files, epoch, mode="append")

    def append(self, name: str, rows: pa.Table, *, epoch: int) -> None:
        """Add rows to a table that is not partitioned by day.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
        """
        self._commit_files(name, [self._written(name, rows)], epoch, mode="append")

    def rewrite(self, name: str, rows: pa.Table, *, epoch: int) -> None:
        """Make ``rows`` the whole content of a table that is not partitioned by day, in one file.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
        """
        self._commit_files(name, [self._written(name, rows)], epoch)

    def _written(self, name: str, rows: pa.Table) -> AddAction:
        with translate_delta_errors(name):
            return write_file(self.place, name, _conform(rows, SCHEMAS[name]), {})

    def _commit_files(
        self,
        name: str,
        files: Sequence[AddAction],
        epoch: int,
        *,
        mode: Literal["overwrite", "append"] = "overwrite",
        replaced: FilterConjunctionType | None = None,
    ) -> None:
        """Make written files part of a table: in the place of all that is ``replaced`` (None: everything), or beside
        it.

        The files are ours to write: the library's own writer takes twice as long, and so does its search for what an
        overwrite replaces. They are never deleted here: a commit that failed may be in the table all the same. What no
        table refers to, upkeep removes.
        """
        self._commit(
            name,
            epoch,
            lambda table, how: table.create_write_transaction(
                list(files), mode, table.schema(), list(files[0].partition_values), replaced, commit_properties=how
            ),
            files[0].path,
        )

    def delete_before(self, name: str, day: date, *, epoch: int) -> None:
        """Remove every row of the days before ``day``, in one commit; none where there is nothing to remove.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
        """
        predicate = f"date < '{day.isoformat()}'"
        self._commit(name, epoch, lambda table, how: table.delete(predicate, commit_properties=how))

    def _commit(
        self,
        name: str,
        epoch: int,
        write: Callable[[DeltaTable, CommitProperties], object],
        path: str | None = None,
    ) -> None:
        """Commit what ``write`` does, on a snapshot of no newer epoch; ``path`` is one of the files that it adds.

        The error of a commit does not say whether it is in the table: its answer may be what failed. So the table is
        read again: a commit went in as a whole if one of its files is there, and is not made twice.
        """
        how = commit_properties(epoch)
        before: int | None = None
        with self._locks[name], translate_delta_errors(name):
            for attempt in commit_attempts():
                with attempt:
                    table = self._existing(name)
                    before = table.version() if before is None else before
                    recorded = table.transaction_version(LEASE)
                    if recorded is not None and recorded > epoch:
                        raise LeaseLost(f"a run with lease epoch {recorded} has taken over from {epoch}")
                    self._looked_at.discard(name)
                    try:
                        write(table, how)
                    except (DeltaError, OSError):
                        del self._open[name]
                        if path is None or not _has_file(self._existing(name), path):
                            raise
                    finally:
                        self.count_commit()
                    self.place.settle(name, before)

    def _existing(self, name: str) -> DeltaTable:
        """The open table brought to its latest version. The caller holds its lock."""
        table = self._refresh(name)
        if table is None:
            raise StorageError(f"the table {name} does not exist in {self.place}")
        return table


def _has_file(table: DeltaTable, path: str) -> bool:
    """Whether a file is part of a table."""
    actions = pa.table(table.get_add_actions(flatten=True))
    return any(unquote(each) == path for each in actions["path"].to_pylist())


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows in a table's schema; dictionary-encoded texts are decoded."""
    given = (rows.schema.field(field.name).type for field in schema)
    fields = [
        field.with_type(kind) if pa.types.is_dictionary(kind) else field
        for field, kind in zip(schema, given, strict=True)
    ]
    return rows.cast(pa.schema(fields))


def _files_of(table: DeltaTable, place: Place, name: str) -> Snapshot:
    root = place.root / name
    actions = pa.table(table.get_add_actions(flatten=True))
    count = actions.num_rows
    days = actions["partition.date"].to_pylist() if "partition.date" in actions.column_names else [None] * count
    columns = (actions[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
    files = [
        DayFile(day, f"{root}/{unquote(path)}", rows, size, place)
        for day, path, rows, size in zip(days, *columns, strict=True)
    ]
    files.sort(key=lambda file: (file.day or date.min, file.path))
    return Snapshot(table.version(), tuple(files))


def read_day(tables: FactTables, name: str, day: date) -> pa.Table:
    """The rows of one UTC day of a table, in its schema.

    Raises:
        DamagedFacts: a file of the day is missing, or not what was written.
        StorageError: the table cannot be read.
    """
    return read_files(name, day, tables.snapshot(name).within(DayRange.of_day(day)))


def read_files(name: str, day: date, files: Iterable[DayFile]) -> pa.Table:
    """The rows of some files of one UTC day of a table, in its schema.

    Raises:
        DamagedFacts: a file is missing, or not what was written.
        StorageError: a file cannot be read.
    """
    schema = SCHEMAS[name]
    parts = [schema.empty_table()]
    for file in files:
        with translate_delta_errors(name):
            stored = read_file(file)
        dates = pa.array([day] * stored.num_rows, pa.date32())
        columns = {field.name: dates if field.name == "date" else stored[field.name] for field in schema}
        parts.append(pa.table(columns).cast(schema))
    return pa.concat_tables(parts)
