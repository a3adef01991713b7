"""The fact tables of a tenant: their names, columns and order, what the catalogue says of them, and their files.

A table is a list of Parquet files, one for each day with rows. Which ones is said by the catalogue, in the control
database (:mod:`~chargeback.store.control.catalogue`): a reader has all lists of one transaction, or none of it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from chargeback.errors import DamagedFacts, ForgottenDay, HistoryGone, StorageError
from chargeback.model.billing import BILLING
from chargeback.model.chargeback import CHARGEBACK_ORDER, CHARGEBACKS, DIMENSIONS, encoded
from chargeback.model.days import Clock, DayRange
from chargeback.model.topics import TOPIC_ATTRIBUTIONS, TOPIC_ORDER
from chargeback.model.usage import MEMBERS, USAGE
from chargeback.store.control.catalogue import (
    NamedFile,
    NewContent,
    exchange,
    instant_of_change,
    present_files,
    read_catalogue_state,
    replace_days,
)
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.lease import Lease
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import DayFile, dated, read_file, read_footer, same_content, write_file
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.facts.places import Place, as_place, side_by_side
from chargeback.store.ownership import StorageOwner

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


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that files of earlier versions do not have: it is null in them, or has a constant ``value``."""

    table: str
    name: str
    value: object = None

    @property
    def type(self) -> pa.DataType:
        """Its type."""
        return SCHEMAS[self.table].field(self.name).type


#: The columns that were added to tables, the first one first. A new one is a field of its schema, and a line here.
ADDED: list[AddedColumn] = []

#: The tables that have a file for each day.
DAY_TABLES: Final = tuple(name for name, schema in SCHEMAS.items() if "date" in schema.names)

#: For each of these, the one that is published with what its days had earlier.
HISTORY_TABLES: Final = {name: f"{name}_history" for name in DAY_TABLES}

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
        start = bisect_left(self.files, days.start, key=_day_of)
        return tuple(file for file in self.files[start : bisect_left(self.files, days.end, key=_day_of)] if file.rows)

    def of_day(self, day: date) -> tuple[DayFile, ...]:
        """The files that hold rows of a day, as :meth:`within`."""
        return self.within(DayRange.of_day(day))

    @staticmethod
    def _require(gone: Sequence[ForgottenDay]) -> None:
        if gone:
            raise HistoryGone(gone)


def _day_of(file: DayFile) -> date:
    """The day of a file; files without one come first."""
    return file.day or date.min


Snapshots = Mapping[str, Snapshot]
_UNREAD: Final = -1


class FactTables:
    """The fact tables of one tenant: their files in a place, and the catalogue of these in its control database. Safe
    for use by several threads; readers need not hold the lease.

    Raises (everywhere): StorageError when the catalogue or a file cannot be read or written.
    """

    def __init__(self, place: Place | Path, control: ControlDatabase) -> None:
        self.place = as_place(place)
        self.control = control
        self.partials = PartialFiles(self.place)
        self._lock = threading.Lock()
        self._known: tuple[int, Snapshots] = (_UNREAD, {})
        self._is_alone = False

    @property
    def root(self) -> Path:
        """The folder of this machine below which queries open the files."""
        return self.place.root

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Read the catalogue once, and again after each :meth:`changed`: while a run holds the lease, no one else
        changes it."""
        self.changed()
        self._is_alone = True
        try:
            yield
        finally:
            self._is_alone = False

    def changed(self) -> None:
        """Read the catalogue again when it is next needed: this process has changed it."""
        with self._lock:
            self._known = (_UNREAD, {})

    @contextmanager
    def commit(self, lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        """Open the transaction of a change of the catalogue, under the lease; yield its connection, and the instant of
        the change. It is on the disk once it is committed.

        Raises:
            LeaseLost: another process has taken over; nothing was written.
        """
        try:
            with lease.write(durable=True) as connection:
                yield connection, instant_of_change(connection, now())
        finally:
            self.changed()

    def snapshot(self, name: str) -> Snapshot:
        """Return a table as it is now; a table that was never written is empty."""
        revision, known = self._known
        if self._is_alone and revision != _UNREAD:
            return known[name]
        with self.control.read() as connection:
            return self.load(connection)[name]

    def load(self, connection: Connection) -> Snapshots:
        """Return all tables by their names, as they are in the transaction of a connection."""
        while True:
            revision = _revision(connection)
            with self._lock:
                if self._known[0] == revision:
                    return self._known[1]
            found = self._snapshots(present_files(connection), revision)
            # A server shows each statement what was committed before it.
            if _revision(connection) == revision:
                break
        with self._lock:
            self._known = (revision, found)
        return found

    def snapshots_of(self, connection: Connection, named: Iterable[NamedFile]) -> Snapshots:
        """Return all tables with some other files of the catalogue, if these are kept."""
        return self._snapshots([each for each in named if each.gone_at is None], _revision(connection))

    def day_file(self, named: NamedFile) -> DayFile:
        """Return a file of the catalogue as it is read."""
        path = f"{self.place.root}/{named.path}"
        return DayFile(named.day, path, named.rows, named.size, self.place, named.schema_version)

    def _snapshots(self, named: Iterable[NamedFile], revision: int) -> dict[str, Snapshot]:
        by_table: dict[str, list[DayFile]] = {name: [] for name in SCHEMAS}
        for each in named:
            if each.table in by_table:
                by_table[each.table].append(self.day_file(each))
        return {name: Snapshot(revision, tuple(files)) for name, files in by_table.items()}

    def replace(self, connection: Connection, contents: Sequence[NewContent], at: datetime) -> None:
        """Make contents those of their days from the instant ``at`` on. One that a day has already, in a file that is
        damaged, takes the place of that file in all its time."""
        new = []
        for each in contents:
            before = [file.path for file in self.snapshot(each.table).of_day(each.day)]
            if each.file is not None and before and same_content(before, [each.file.path]):
                paths = [path.removeprefix(f"{self.root}/") for path in before]
                exchange(connection, each.table, each.day, paths, each.file)
            else:
                new.append(each)
        replace_days(connection, new, at)

    def has_rows_of(self, content: NewContent) -> bool:
        """Return whether a day of a table has the rows of a new content, by their digests. A file of an earlier
        version has no footer, so that it has another digest: then the rows are compared, if they can be read."""
        present = self.snapshot(content.table).of_day(content.day)
        new = content.file
        if same_content((file.path for file in present), [] if new is None else [new.path]):
            return True
        if new is None or [file.rows for file in present] != [new.rows]:
            return False
        written = DayFile(content.day, new.path, new.rows, new.size, self.place, new.schema_version)
        with translate_file_errors(content.table):
            try:
                if read_footer(present[0]) is not None:
                    return False
                before, after = (read_files(content.table, content.day, [file]) for file in (present[0], written))
            except DamagedFacts:
                return False
        return bool(before.equals(after))

    def prepare_day(self, name: str, day: date, rows: pa.Table) -> NewContent:
        """Write the file of a day's new content, as :func:`prepare_day`."""
        return prepare_day(self.place, name, day, rows, self.control.owner)

    def prepare_tables(self, day: date, tables: Mapping[str, pa.Table]) -> dict[str, NewContent]:
        """Write the files of a day's new content of several tables, side by side.

        Raises:
            StorageError: a row lies outside the day, or a file cannot be written.
        """
        written = side_by_side(lambda name: self.prepare_day(name, day, tables[name]), list(tables))
        return dict(zip(tables, written, strict=True))


def published_path(file: NamedFile) -> str:
    """Return where other engines find a file: a present one where it lies, an earlier one in the folder of the
    history."""
    if file.until is None or file.day is None or file.table not in HISTORY_TABLES:
        return file.path
    return f"{HISTORY_TABLES[file.table]}/date={file.day.isoformat()}/{file.name}"


def discard(place: Place, content: NewContent) -> None:
    """Delete the file of a content that is not needed. One that stays for some reason, upkeep removes."""
    if content.file is not None:
        with suppress(OSError):
            place.delete(content.file.path)


def prepare_day(
    place: Place, name: str, day: date, rows: pa.Table, owner: StorageOwner | None = None, *, into: str | None = None
) -> NewContent:
    """Write the file of a day's new content of a table of ``owner``, which no reader sees before the catalogue names
    it; ``into`` another table, if these rows are not those of the table itself.

    Raises:
        StorageError: a row lies outside the day, or the file cannot be written.
    """
    if rows.num_rows == 0:
        return NewContent(into or name, day, None)
    if pc.min(rows["date"]).as_py() != day or pc.max(rows["date"]).as_py() != day:
        raise StorageError(f"the table {name} cannot be used: rows of other days were given for {day}")
    with translate_file_errors(name):
        file = write_file(place, name, conform(rows, SCHEMAS[name]), day, schema_version(name), owner, into=into)
        return NewContent(into or name, day, file)


def _revision(connection: Connection) -> int:
    """The number of the catalogue's last change.

    Raises:
        StorageError: the storage has no catalogue yet.
    """
    revision, has_catalogue = read_catalogue_state(connection)
    if not has_catalogue:
        raise StorageError(
            "the storage is of an earlier version: the start of a worker, or `chargeback db upgrade`, makes its "
            "catalogue"
        )
    return revision


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows in a table's schema; dictionary-encoded texts are decoded."""
    given = (rows.schema.field(field.name).type for field in schema)
    fields = [
        field.with_type(kind) if pa.types.is_dictionary(kind) else field
        for field, kind in zip(schema, given, strict=True)
    ]
    return rows.cast(pa.schema(fields))


def schema_version(name: str) -> int:
    """Return how many columns have been added to a table."""
    return sum(added.table == name for added in ADDED)


def completed(name: str, rows: pa.Table, schema: pa.Schema | None = None) -> pa.Table:
    """Return rows of a table in its schema, or with the types of another one: with the columns that were added since
    they were written."""
    missing = [added for added in ADDED if added.table == name and added.name not in rows.column_names]
    for added in missing:
        values = pa.array([added.value] * rows.num_rows, added.type)
        rows = rows.append_column(pa.field(added.name, added.type), values)
    return rows.select(SCHEMAS[name].names).cast(schema or SCHEMAS[name])


def read_day(tables: FactTables, name: str, day: date) -> pa.Table:
    """The rows of one UTC day of a table, in its schema.

    Raises:
        DamagedFacts: a file of the day is missing, or not what was written.
        StorageError: the table cannot be read.
    """
    return read_files(name, day, tables.snapshot(name).within(DayRange.of_day(day)))


def read_files(name: str, day: date, files: Iterable[DayFile], *, is_encoded: bool = False) -> pa.Table:
    """The rows of some files of one UTC day of a table, in its schema. If ``is_encoded``, texts are dictionaries: large
    days are read in half the time.

    Raises:
        DamagedFacts: a file is missing, or not what was written.
        StorageError: a file cannot be read.
    """
    schema = encoded(SCHEMAS[name]) if is_encoded else SCHEMAS[name]
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    parts = [schema.empty_table()]
    for file in files:
        with translate_file_errors(name):
            stored = read_file(file, encoded=texts)
        parts.append(completed(name, dated(stored, day), schema))
    return pa.concat_tables(parts).unify_dictionaries()
