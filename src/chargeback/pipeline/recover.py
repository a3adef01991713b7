"""Rebuild the catalogue of a lost control database from the tables that were published for other engines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection

from chargeback.errors import DamagedFacts, StorageError
from chargeback.model.billing import fingerprint
from chargeback.model.days import utc_now
from chargeback.pipeline.evidence import stored_bill
from chargeback.store.control.catalogue import (
    NamedFile,
    NewFile,
    every_file,
    fill,
    present_files,
    save_published_revision,
)
from chargeback.store.control.day_revisions import FIRST, REPAIR, Revision, record_revision
from chargeback.store.control.days import DatasetState, DayDataset, save_dataset, save_day
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import DayFile, read_footer
from chargeback.store.facts.published import LoggedFile, files_in_log
from chargeback.store.facts.tables import BILLING_TABLE, HISTORY_TABLES, SCHEMAS, TOPIC_USAGE_TABLE, USAGE_TABLE
from chargeback.store.queries.as_of import REVISED
from chargeback.store.tenant import TenantStore

_USAGE = {DayDataset.CHARGEBACKS: USAGE_TABLE, DayDataset.TOPICS: TOPIC_USAGE_TABLE}


@dataclass(frozen=True, slots=True)
class Recovered:
    """The number of recovered files and days, and of days whose bill was unreadable, which are gathered again."""

    files: int
    days: int
    unread: int


def catalogue_from_tables(store: TenantStore) -> Recovered:
    """Rebuild the catalogue and the states of the days from the logs of the tables. Tags, cost categories, names and
    tokens are in no table: they are lost with the database.

    Raises:
        StorageError: the database already has a catalogue, or a log cannot be read.
    """
    store.prepare()
    with store.control.read() as connection:
        if every_file(connection):
            raise StorageError("the control database has a catalogue: this command is for a lost one")
    logged = {name: list(files_in_log(store.facts.place, name)) for name in (*SCHEMAS, *HISTORY_TABLES.values())}
    named = [
        file
        for name in SCHEMAS
        for file in _contents(store, name, logged[name], logged.get(HISTORY_TABLES.get(name, ""), []))
    ]
    with store.control.write(durable=True) as connection:
        if not named:
            raise StorageError(f"{store.facts.place} has no published tables")
        fill(connection, named, utc_now())
        save_published_revision(connection, -1)
    store.facts.changed()
    return _record_days(store, len(named))


def _contents(
    store: TenantStore, name: str, present: Iterable[LoggedFile], past: Iterable[LoggedFile]
) -> Iterable[NamedFile]:
    """Yield the files of the catalogue for a table: each content of a day until the next one.

    Raises:
        ForeignStorage: a file belongs to another tenant.
        StorageError: a file has another table or day than its log says, or cannot be read now.
    """
    by_day: dict[date | None, list[LoggedFile]] = defaultdict(list)
    for file in sorted(past, key=lambda each: each.since):
        by_day[file.day].append(file)
    for file in present:
        by_day[file.day].append(file)
    for day, contents in by_day.items():
        for number, file in enumerate(contents):
            is_last = day is None or number == len(contents) - 1
            until = None if is_last else contents[number + 1].since
            version = _schema_version(store, name, file)
            yield NewFile(file.path, file.rows, file.size, version).named(name, day, file.since, until)


def _schema_version(store: TenantStore, name: str, file: LoggedFile) -> int:
    """Return the version of the columns of a file from its footer: 0 if it has none, or if it cannot be read, which the
    next run reports."""
    with translate_file_errors(name):
        try:
            footer = read_footer(DayFile(file.day, file.path, file.rows, file.size, store.facts.place))
        except DamagedFacts:
            return 0
    if footer is None:
        return 0
    store.owner.check(footer.owner, f"the file {file.path}")
    if (footer.table, footer.day) != (name, file.day):
        raise StorageError(f"the log of {name} has the file {file.path} for {file.day}, which is of {footer}")
    return footer.schema_version


def _record_days(store: TenantStore, count: int) -> Recovered:
    """Record the states and revisions of the days that have files."""
    with store.control.read() as connection:
        present = present_files(connection)
        instants: dict[tuple[str, date | None], list[datetime]] = defaultdict(list)
        for each in every_file(connection):
            instants[each.table, each.day].append(each.since)
    rows = {(each.table, each.day): each.rows for each in present}
    days = sorted({each.day for each in present if each.day is not None and each.table == BILLING_TABLE})
    unread = 0
    for day in days:
        try:
            seen: str | None = fingerprint(stored_bill(store.facts, day))
        except DamagedFacts:
            seen, unread = None, unread + 1
        with store.control.write() as connection:
            save_day(
                connection,
                day,
                billing_gathered=seen is not None,
                resources_gathered=True,
                gathered_fingerprint=seen,
                gathered_at=utc_now(),
                billing_lines=rows[BILLING_TABLE, day],
            )
            for dataset in REVISED.values():
                number = _record_revisions(connection, dataset.name, day, instants[dataset.table, day], rows)
                if number:
                    save_dataset(
                        connection,
                        dataset.name,
                        [day],
                        state=DatasetState.CURRENT,
                        is_measured=(_USAGE[dataset.name], day) in rows,
                        fingerprint=seen,
                        rows=rows.get((dataset.table, day), 0),
                        revision=number,
                    )
    return Recovered(count, len(days), unread)


def _record_revisions(
    connection: Connection,
    dataset: DayDataset,
    day: date,
    instants: list[datetime],
    rows: Mapping[tuple[str, date | None], int],
) -> int:
    """Record a revision for each content of a day; return how many there are."""
    for number, at in enumerate(sorted(instants), start=1):
        is_last = number == len(instants)
        count = rows.get((REVISED[dataset].table, day), 0) if is_last else 0
        cause = FIRST if number == 1 else REPAIR
        record_revision(connection, Revision(dataset, day, number, at, cause, rows=count))
    return len(instants)
