"""The catalogue: which files have the rows of each table and day, and from when to when they had.

A data file never changes, so that a list of files is a version of a table. The lists are here and nowhere else: files
become part of the tables in the transaction that names them, with all else that the transaction records. Nothing is
seen before it, and everything after it.

Each row of ``files`` is a content of a day, in force from ``since`` until ``until``: the present one has no end. An
earlier instant is another choice of rows. Instants only grow, even if the clock goes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, delete, false, insert, or_, select, update

from chargeback.model.days import DayRange
from chargeback.store.control.schema import files, tenant

_ONE_STEP: Final = timedelta(microseconds=1)

#: Days whose content at an instant is kept beyond their retention: that of a closed month.
Pin = tuple[DayRange, datetime]
#: Tables that are never served: evidence, which may be removed while rows stay.
NOT_PINNED: Final = ("members", "topic_usage")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file as the catalogue names it.

    Attributes:
        table: the table whose rows it has.
        day: the UTC day of all its rows; None in a table that has no days.
        path: where it lies, relative to the place of the facts.
        rows: how many rows it has.
        size: its bytes.
        schema_version: how many columns had been added to its table when it was written.
        since: from when on it has been part of its table.
        until: until when; None of a present file.
        gone_at: when it was given up: it is no longer kept. None of a file that is there.
        id: its number in the catalogue.
    """

    table: str
    day: date | None
    path: str
    rows: int
    size: int
    schema_version: int
    since: datetime
    until: datetime | None = None
    gone_at: datetime | None = None
    id: int = 0

    @property
    def name(self) -> str:
        """The name of the file, without its folders."""
        return self.path.rpartition("/")[2]

    def is_in_force(self, at: datetime) -> bool:
        """Return whether it was part of its table at an instant."""
        return self.since <= at and (self.until is None or self.until > at)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is written and not part of a table yet: its path, rows, bytes and schema version."""

    path: str
    rows: int
    size: int
    schema_version: int = 0

    def named(
        self,
        table: str,
        day: date | None,
        since: datetime,
        until: datetime | None = None,
        gone_at: datetime | None = None,
    ) -> NamedFile:
        """Return the file as a part of a table."""
        return NamedFile(table, day, self.path, self.rows, self.size, self.schema_version, since, until, gone_at)


@dataclass(frozen=True, slots=True)
class NewContent:
    """The new content of a day of a table: one file, or None for a day without rows."""

    table: str
    day: date
    file: NewFile | None


def read_catalogue_state(connection: Connection) -> tuple[int, bool]:
    """Return the number of the last change of the catalogue, and whether it says what the tables contain.

    While the number is the same, every table is. The tables of an earlier version are still to be read into it.
    """
    row = connection.execute(_STATE).first()
    return (0, False) if row is None else (row[0], row[1])


def instant_of_change(connection: Connection, now: datetime) -> datetime:
    """Return the instant of a change that is made in this transaction, of files or of something else that has a past,
    such as tags: ``now`` or, if the clock was set back, just after the last one."""
    last = last_change(connection)
    at = now if last is None or now >= last else last + _ONE_STEP
    connection.execute(update(tenant).values(facts_changed_at=at))
    return at


def last_change(connection: Connection) -> datetime | None:
    """Return the instant of the last change of files, or of something else that has a past; None before the first."""
    at: datetime | None = connection.execute(select(tenant.c.facts_changed_at)).scalar()
    return at


def lock_tenant(connection: Connection) -> None:
    """Block, until the transaction ends, all other transactions that write facts, tags, categories or closings, or take
    this lock. SQLite has one writer anyway."""
    connection.execute(_LOCK)


def replace_days(connection: Connection, contents: Sequence[NewContent], at: datetime) -> None:
    """Make contents those of their days from the instant ``at`` on, which :func:`instant_of_change` has given."""
    if not contents:
        return
    days = [{"of_table": each.table, "of_day": each.day, "at": at} for each in contents]
    connection.execute(_END_DAY, days)
    touch(connection)
    add(connection, [(each.table, each.day, each.file) for each in contents if each.file is not None], at)


def exchange(connection: Connection, table: str, day: date, old: Collection[str], new: NewFile) -> None:
    """Name another file of the same content, in all its time: the ``old`` ones are damaged."""
    damaged = (files.c.table_name == table) & (files.c.tracking_date == day) & files.c.path.in_(list(old))
    connection.execute(
        update(files).where(damaged).values(path=new.path, bytes=new.size, schema_version=new.schema_version)
    )
    touch(connection)


def touch(connection: Connection) -> None:
    """Let readers read the lists of files again."""
    connection.execute(update(tenant).values(facts_revision=tenant.c.facts_revision + 1))


def add(connection: Connection, added: Iterable[tuple[str, date | None, NewFile]], at: datetime) -> None:
    """Add files to tables."""
    named = [file.named(table, day, at) for table, day, file in added]
    if named:
        _insert(connection, named)
        touch(connection)


def end_table(connection: Connection, table: str, at: datetime) -> None:
    """End everything that is present in a table."""
    connection.execute(update(files).where(files.c.table_name == table, files.c.until.is_(None)).values(until=at))
    touch(connection)


def end_days_of(connection: Connection, table: str, days: Collection[date]) -> None:
    """End what is present of some days of a table that has no past: nothing of them is kept."""
    chosen = (files.c.table_name == table) & files.c.tracking_date.in_(list(days))
    connection.execute(delete(files).where(chosen))
    touch(connection)


def end_days(
    connection: Connection, tables: Collection[str], before: date, at: datetime, pins: Sequence[Pin] = ()
) -> None:
    """End what is present of the days before ``before``, and give up all that these days ever had but what is
    pinned."""
    old = files.c.table_name.in_(list(tables)) & (files.c.tracking_date < before)
    connection.execute(update(files).where(old, files.c.until.is_(None)).values(until=at))
    connection.execute(update(files).where(old, files.c.gone_at.is_(None), ~_pinned(pins)).values(gone_at=at))
    touch(connection)


def give_up_history(connection: Connection, before: date, now: datetime, pins: Sequence[Pin] = ()) -> int:
    """Give up what the days before ``before`` had earlier, but what is pinned; return how many files that were."""
    expiring = update(files).where(_expiring(before), ~_pinned(pins))
    count: int = connection.execute(expiring.values(gone_at=now)).rowcount
    if count:
        touch(connection)
    return count


def fill(connection: Connection, named: Sequence[NamedFile], now: datetime) -> None:
    """Make files the catalogue of a storage that has none yet; it gives them their numbers."""
    _insert(connection, named)
    connection.execute(update(tenant).values(has_catalogue=True, facts_changed_at=now))
    touch(connection)


def move(connection: Connection, moved: Mapping[int, str]) -> None:
    """Name files, by their numbers, under the new paths at which they lie as well."""
    if moved:
        connection.execute(_MOVE, [{"of_id": number, "to": path} for number, path in moved.items()])
        touch(connection)


def present_files(connection: Connection) -> list[NamedFile]:
    """Return the present files of all tables, by table, day and path."""
    return _named(connection, _PRESENT)


def files_of_table(connection: Connection, table: str) -> list[NamedFile]:
    """Return the present files of one table, by day and path."""
    return _named(connection, _PRESENT.where(files.c.table_name == table))


def files_as_of(connection: Connection, at: datetime) -> list[NamedFile]:
    """Return the files that the tables had at an instant, also those that are no longer kept."""
    return _named(connection, _AS_OF, {"at": at})


def every_file(connection: Connection, *, kept_only: bool = False) -> list[NamedFile]:
    """Return all files that the catalogue names, present and past, the older ones of a day first."""
    return _named(connection, _EVERY.where(files.c.gone_at.is_(None)) if kept_only else _EVERY)


def files_of_day(connection: Connection, day: date) -> list[NamedFile]:
    """Return all files of a day, present and past, the older ones of a table first."""
    return _named(connection, _EVERY.where(files.c.tracking_date == day))


def has_expiring_history(connection: Connection, before: date, pins: Sequence[Pin] = ()) -> bool:
    """Return whether days before ``before`` have earlier contents that are kept, and not pinned."""
    query = select(files.c.id).where(_expiring(before), ~_pinned(pins)).limit(1)
    return connection.execute(query).first() is not None


def read_published_revision(connection: Connection) -> tuple[int, int]:
    """Return the number of the last change of the catalogue, and of the last one that is published.

    Where both are the same, other engines read what the catalogue says.
    """
    row = connection.execute(select(tenant.c.facts_revision, tenant.c.published_revision)).first()
    return (0, 0) if row is None else (row[0], row[1])


def contracts_revision(connection: Connection) -> int:
    """Return the published revision at which contracts were last examined; 0 before the first time."""
    return connection.execute(select(tenant.c.contracts_revision)).scalar() or 0


def save_contracts_revision(connection: Connection, revision: int) -> None:
    """Record the published revision at which contracts were examined."""
    connection.execute(update(tenant).values(contracts_revision=revision))


def save_published_revision(connection: Connection, revision: int) -> None:
    """Record up to which change the catalogue is published."""
    connection.execute(update(tenant).values(published_revision=revision))


def _expiring(before: date) -> ColumnElement[bool]:
    return and_(files.c.tracking_date < before, files.c.until.is_not(None), files.c.gone_at.is_(None))


def _pinned(pins: Sequence[Pin]) -> ColumnElement[bool]:
    """Return whether a file of a served table was in force at a pinned instant."""
    its = files.c
    at_one = [
        and_(
            *(its.tracking_date >= days.start, its.tracking_date < days.end, its.since <= at),
            or_(its.until.is_(None), its.until > at),
        )
        for days, at in pins
    ]
    return and_(its.table_name.not_in(NOT_PINNED), or_(false(), *at_one))


def _insert(connection: Connection, named: Iterable[NamedFile]) -> None:
    rows = [
        {
            "table_name": each.table,
            "tracking_date": each.day,
            "path": each.path,
            "rows": each.rows,
            "bytes": each.size,
            "schema_version": each.schema_version,
            "since": each.since,
            "until": each.until,
            "gone_at": each.gone_at,
        }
        for each in named
    ]
    if rows:
        connection.execute(insert(files), rows)


def _named(
    connection: Connection, query: Select[Any], parameters: Mapping[str, object] | None = None
) -> list[NamedFile]:
    # The row's own access by name takes most of the time of a long list.
    return [NamedFile(*row) for row in connection.execute(query, parameters or {})]


# Made once: building them takes longer than running them.
_COLUMNS: Final = (
    files.c.table_name,
    files.c.tracking_date,
    files.c.path,
    files.c.rows,
    files.c.bytes,
    files.c.schema_version,
    files.c.since,
    files.c.until,
    files.c.gone_at,
    files.c.id,
)
_LOCK: Final = select(tenant.c.id).with_for_update()
_STATE: Final = select(tenant.c.facts_revision, tenant.c.has_catalogue)
_EVERY: Final = select(*_COLUMNS).order_by(files.c.table_name, files.c.tracking_date, files.c.since, files.c.id)
_IN_ORDER: Final = select(*_COLUMNS).order_by(files.c.table_name, files.c.tracking_date, files.c.path)
_PRESENT: Final = _IN_ORDER.where(files.c.until.is_(None))
_AS_OF: Final = _IN_ORDER.where(
    files.c.since <= bindparam("at"), or_(files.c.until.is_(None), files.c.until > bindparam("at"))
)
_END_DAY: Final = (
    update(files)
    .where(
        files.c.table_name == bindparam("of_table"),
        files.c.tracking_date == bindparam("of_day"),
        files.c.until.is_(None),
    )
    .values(until=bindparam("at"))
)
_MOVE: Final = update(files).where(files.c.id == bindparam("of_id")).values(path=bindparam("to"))
