"""The Delta tables of a tenant: their names, columns and order, and how a day of one is replaced.

A day is replaced in one Delta commit: a reader sees the old day or the new one, never a mix. Every commit carries
the epoch of the writer's lease as an application transaction, and is made on a snapshot whose recorded epoch is not
newer: a worker that slept through its lease cannot overwrite its successor.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from chargeback.disk import explain_denial
from chargeback.errors import LeaseLost, StorageBusy, StorageError
from chargeback.model.billing import BILLING
from chargeback.model.chargeback import CHARGEBACK_ORDER, CHARGEBACKS, DIMENSIONS
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.topics import TOPIC_ATTRIBUTIONS, TOPIC_ORDER
from chargeback.model.usage import MEMBERS, USAGE
from chargeback.store.facts.files import DayFile, read_file, write_file
from chargeback.store.facts.log import LogState, flush_log, has_log, log_state, newest_version
from chargeback.store.facts.partial_files import PartialFiles

BILLING_TABLE: Final = "billing"
USAGE_TABLE: Final = "usage"
MEMBERS_TABLE: Final = "members"
CHARGEBACKS_TABLE: Final = "chargebacks"
DIMENSIONS_TABLE: Final = "dimensions"
TOPIC_USAGE_TABLE: Final = "topic_usage"
TOPICS_TABLE: Final = "topic_attributions"

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    BILLING_TABLE: BILLING,
    USAGE_TABLE: USAGE,
    MEMBERS_TABLE: MEMBERS,
    CHARGEBACKS_TABLE: CHARGEBACKS,
    DIMENSIONS_TABLE: DIMENSIONS,
    TOPIC_USAGE_TABLE: USAGE,
    TOPICS_TABLE: TOPIC_ATTRIBUTIONS,
}

#: The tables that are partitioned by day.
DAY_TABLES: Final = tuple(name for name, schema in SCHEMAS.items() if "date" in schema.names)

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

#: The application transaction under which a commit carries its writer's epoch.
LEASE: Final = "chargeback.lease"

# Opening a table replays every commit since the last checkpoint, and so does each commit: with Delta's default of 100
# the 100th day costs five times as much as the first.
_SETTINGS = {"delta.checkpointInterval": "10"}
_COMMIT_TIMEOUT_SECONDS = 30
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Snapshot:
    """The files of one table at one version, ordered by day."""

    version: int
    files: tuple[DayFile, ...] = ()

    @property
    def days(self) -> list[date]:
        """The days that have at least one row, ascending."""
        return sorted({file.day for file in self.files if file.day is not None and file.rows})

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return sum(file.rows for file in self.files)

    def within(self, days: DayRange) -> tuple[DayFile, ...]:
        """The files that hold rows of ``days``."""
        return tuple(file for file in self.files if file.rows and file.day is not None and file.day in days)


EMPTY = Snapshot(version=-1)


class FactTables:
    """The Delta tables below one folder. Safe for use by several threads; readers need not hold the lease.

    Raises (everywhere): StorageError when the folder or a table in it cannot be read or written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.partials = PartialFiles(root)
        self._lock = threading.Lock()
        self._open: dict[str, DeltaTable] = {}
        self._logs: dict[str, LogState] = {}
        self._snapshots: dict[str, Snapshot] = {}

    def exist(self) -> bool:
        """Whether any of the tables is there."""
        return any(has_log(self.root / name) for name in SCHEMAS)

    def create(self) -> None:
        """Create the tables that do not exist yet. Only the holder of the lease may: two creators at once would both
        succeed, and one of the tables would be lost."""
        for name, schema in SCHEMAS.items():
            path = self.root / name
            partition = ["date"] if name in DAY_TABLES else None
            with translate_delta_errors(name):
                if has_log(path):
                    continue
                path.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    str(path), schema, mode="ignore", partition_by=partition, name=name, configuration=_SETTINGS
                )
                flush_log(path, after=-1)

    def snapshot(self, name: str) -> Snapshot:
        """The table as it is now; a table that was never written is empty."""
        with self._lock, translate_delta_errors(name):
            table = self._refresh(name)
            if table is None:
                return EMPTY
            known = self._snapshots.get(name, EMPTY)
            if table.version() != known.version:
                known = self._snapshots[name] = _files_of(table, self.root / name)
            return known

    def _refresh(self, name: str) -> DeltaTable | None:
        """The open table brought to its latest version; none where there is none yet. The caller holds the lock."""
        table = self._open.get(name)
        if table is not None:
            # Delta's own look for new entries takes a hundred times as long as asking for the next one.
            log = log_state(self.root / name, table.version())
            if log != self._logs.get(name):
                table.update_incremental()
                self._logs[name] = log._replace(has_next=False)
            return table
        try:
            self._logs[name] = log_state(self.root / name, 0)._replace(has_next=False)
            table = self._open[name] = DeltaTable(str(self.root / name))
        except TableNotFoundError:
            return None
        return table

    def newest_versions(self) -> dict[str, int]:
        """The newest version of each table, readable or not; -1 of one that is not there."""
        with translate_delta_errors("log"):
            return {name: newest_version(self.root / name) for name in SCHEMAS}

    def newest_epoch(self) -> int:
        """The newest epoch of a lease under which any of the tables was written; 0 where none was. A table that cannot
        be read says nothing: the next run mends it."""
        recorded = [0]
        for name in SCHEMAS:
            with suppress(StorageError), translate_delta_errors(name), suppress(TableNotFoundError):
                table = DeltaTable(str(self.root / name))
                recorded.append(table.transaction_version(LEASE) or 0)
        return max(recorded)

    def replace_day(self, name: str, day: date, rows: pa.Table, *, epoch: int) -> None:
        """Make ``rows`` the whole content of ``day``; an empty table makes the day empty.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
            StorageError: a row lies outside the day, or the table cannot be written.
        """
        if rows.num_rows == 0:
            predicate = f"date = '{day.isoformat()}'"
            self._commit(name, epoch, lambda table, how: table.delete(predicate, commit_properties=how))
            return
        if pc.min(rows["date"]).as_py() != day or pc.max(rows["date"]).as_py() != day:
            raise StorageError(f"the table {name} cannot be used: rows of other days were given for {day}")
        self._commit_file(name, rows, epoch, day)

    def append(self, name: str, rows: pa.Table, *, epoch: int) -> None:
        """Add rows to a table that is not partitioned by day.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
        """
        self._commit_file(name, rows, epoch, mode="append")

    def rewrite(self, name: str, rows: pa.Table, *, epoch: int) -> None:
        """Make ``rows`` the whole content of a table that is not partitioned by day, in one file.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
        """
        self._commit_file(name, rows, epoch)

    def _commit_file(
        self,
        name: str,
        rows: pa.Table,
        epoch: int,
        day: date | None = None,
        mode: Literal["overwrite", "append"] = "overwrite",
    ) -> None:
        """Write one file, then make it part of the table, with a ``day`` in the place of all that the day had.

        The file is ours to write: the library's own writer takes twice as long, and so does its search for what an
        overwrite replaces. It is never deleted here: a commit that failed may be in the table all the same. What no
        table refers to, upkeep removes.
        """
        partition = {} if day is None else {"date": day.isoformat()}
        with translate_delta_errors(name):
            file = write_file(self.root / name, _conform(rows, SCHEMAS[name]), partition)
        self._commit(
            name,
            epoch,
            lambda table, how: table.create_write_transaction(
                [file],
                mode,
                table.schema(),
                list(partition),
                [("date", "=", value) for value in partition.values()] or None,
                commit_properties=how,
            ),
            file.path,
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
        """Commit what ``write`` does, on a snapshot of no newer epoch; ``path`` is the file that it adds.

        The error of a commit does not say whether it is in the table: its answer may be what failed. So the table is
        read again: a commit whose file is there went in, and is not made twice.
        """
        how = commit_properties(epoch)
        before: int | None = None
        with self._lock, translate_delta_errors(name):
            for attempt in commit_attempts():
                with attempt:
                    table = self._existing(name)
                    before = table.version() if before is None else before
                    recorded = table.transaction_version(LEASE)
                    if recorded is not None and recorded > epoch:
                        raise LeaseLost(f"a run with lease epoch {recorded} has taken over from {epoch}")
                    try:
                        write(table, how)
                    except (DeltaError, OSError):
                        del self._open[name]
                        if path is None or not _has_file(self._existing(name), path):
                            raise
                    flush_log(self.root / name, before)

    def _existing(self, name: str) -> DeltaTable:
        """The open table brought to its latest version. The caller holds the lock."""
        table = self._refresh(name)
        if table is None:
            raise StorageError(f"the table {name} does not exist in {self.root}")
        return table


def commit_properties(epoch: int) -> CommitProperties:
    """Return what every commit carries: the epoch of the lease under which it is made."""
    return CommitProperties(app_transactions=[Transaction(LEASE, epoch)])


def commit_attempts() -> Retrying:
    """Return attempts at a commit: as many as fit into half a minute while other writers are in the way."""
    return Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        stop=stop_after_delay(_COMMIT_TIMEOUT_SECONDS),
        wait=wait_random_exponential(multiplier=0.02, max=1),
        reraise=True,
    )


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


def _files_of(table: DeltaTable, root: Path) -> Snapshot:
    actions = pa.table(table.get_add_actions(flatten=True))
    count = actions.num_rows
    days = actions["partition.date"].to_pylist() if "partition.date" in actions.column_names else [None] * count
    columns = (actions[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
    files = [
        DayFile(day, f"{root}/{unquote(path)}", rows, size)
        for day, path, rows, size in zip(days, *columns, strict=True)
    ]
    files.sort(key=lambda file: (file.day or date.min, file.path))
    return Snapshot(table.version(), tuple(files))


class translate_delta_errors:  # noqa: N801 - reads as a statement: `with naming(table)`
    """Translate errors of the Delta library into ours, with the table's name."""

    def __init__(self, table: str) -> None:
        self._table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, CommitFailedError):
            raise StorageBusy(f"other writers kept the table {self._table} busy: {_plain(error)}") from error
        if isinstance(error, DeltaError | OSError | pa.ArrowException):
            place = error.filename if isinstance(error, PermissionError) else None
            why = explain_denial(Path(place)) if isinstance(place, str) else ""
            raise StorageError(f"the table {self._table} cannot be used: {_plain(error)}{why}") from error


def _plain(error: BaseException) -> str:
    """An error in one line; the Delta library draws its causes, in colours, below one another."""
    return " ".join(_COLOURS.sub("", str(error)).split())


def read_day(tables: FactTables, name: str, day: date) -> pa.Table:
    """The rows of one UTC day of a table, in its schema.

    Raises:
        DamagedFacts: a file of the day is missing, or not what was written.
        StorageError: the table cannot be read.
    """
    schema = SCHEMAS[name]
    parts = [schema.empty_table()]
    for file in tables.snapshot(name).within(DayRange(day, day + ONE_DAY)):
        with translate_delta_errors(name):
            stored = read_file(file)
        dates = pa.array([day] * stored.num_rows, pa.date32())
        columns = {field.name: dates if field.name == "date" else stored[field.name] for field in schema}
        parts.append(pa.table(columns).cast(schema))
    return pa.concat_tables(parts)
