"""Reads the tables of an earlier version into the catalogue, once.

Until then the logs of the tables said which files count, and the revisions named the files of what days had before.
Both are read in one transaction, so that a storage has its whole catalogue or none. The files stay where they are, and
the logs are what is published from then on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from chargeback.errors import DamagedFacts, StorageError
from chargeback.model.days import utc_now
from chargeback.model.money import total
from chargeback.store.control.catalogue import NamedFile, NewFile, files_of_day, fill, lock_tenant, read_catalogue_state
from chargeback.store.control.days import DayDataset
from chargeback.store.control.earlier import (
    EarlierRevision,
    confirmed_revisions,
    delete_revision,
    earlier_revisions,
    forget_file_names,
    gathered_at,
    save_total,
    without_total,
)
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import content_key
from chargeback.store.facts.places import LOG, Place
from chargeback.store.facts.tables import (
    CHARGEBACKS_TABLE,
    DAY_TABLES,
    DIMENSIONS_TABLE,
    HISTORY_TABLES,
    SCHEMAS,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    FactTables,
    read_files,
)

log = logging.getLogger(__name__)

#: The tables whose files the revisions of topics named; those of charges named the others.
_OF_TOPICS: Final = (TOPIC_USAGE_TABLE, TOPICS_TABLE)
_ROWS_OF: Final = {DayDataset.CHARGEBACKS: CHARGEBACKS_TABLE, DayDataset.TOPICS: TOPICS_TABLE}
_ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_STEP: Final = timedelta(microseconds=1)
_HINT: Final = "_last_checkpoint"
_ASIDE: Final = "#1"


@dataclass(frozen=True)
class _EarlierTable:
    """The files of a table: the present ones of each day in order, and all of its time by their contents."""

    present: Mapping[date | None, Sequence[NewFile]]
    known: Mapping[tuple[date | None, str], NewFile] = field(default_factory=dict)

    def keys(self, day: date) -> list[str]:
        """Return what names the present content of a day."""
        return [content_key(file.path) for file in self.present.get(day, ())]


def make_catalogue(facts: FactTables) -> None:
    """Make the catalogue of a storage that has none; do nothing if it is there.

    Raises:
        StorageError: a log cannot be read.
    """
    with facts.control.read() as connection:
        if read_catalogue_state(connection)[1]:
            return
    with facts.control.write(durable=True) as connection:
        lock_tenant(connection)
        if read_catalogue_state(connection)[1]:
            return
        now = utc_now()
        named = list(_catalogue(facts.place, connection, now))
        fill(connection, named, now)
        if named:
            _complete_totals(connection, facts)
            log.info("the catalogue of %s was made of its tables: %d files", facts.place, len(named))
        forget_file_names(connection)
    facts.changed()


def _catalogue(place: Place, connection: Connection, now: datetime) -> Iterator[NamedFile]:
    """Yield the files of the catalogue."""
    tables = {name: _read_table(place, name) for name in SCHEMAS}
    gathered = gathered_at(connection)
    for dataset in DayDataset:
        recorded = _effective(connection, dataset, tables[_ROWS_OF[dataset]])
        for name in DAY_TABLES:
            if (name in _OF_TOPICS) == (dataset is DayDataset.TOPICS):
                table = tables[name]
                every = {day for day in (*table.present, *recorded) if day is not None}
                for day in sorted(every):
                    yield from _contents(name, day, table, recorded.get(day, ()), gathered.get(day) or now, now)
    for file in tables[DIMENSIONS_TABLE].present.get(None, ()):
        yield file.named(DIMENSIONS_TABLE, None, _ALWAYS)


def _read_table(place: Place, name: str) -> _EarlierTable:
    """Read what the log of a table, and that of its history, say."""
    from chargeback.store.facts.published import files_in_log  # the library takes its time

    if next(place.files(f"{name}/{LOG}"), None) is None:
        return _EarlierTable({})

    def logged(table: str) -> list[tuple[date | None, NewFile]]:
        try:
            found = list(files_in_log(place, table))
        except StorageError:
            if not _mended(place, table):
                raise
            found = list(files_in_log(place, table))
        return [(each.day, NewFile(each.path, each.rows, each.size)) for each in found]

    present: dict[date | None, list[NewFile]] = {}
    now = sorted(logged(name), key=lambda each: each[1].path)
    for day, file in now:
        present.setdefault(day, []).append(file)
    past = logged(HISTORY_TABLES[name]) if name in HISTORY_TABLES else []
    return _EarlierTable(present, {(day, content_key(file.path)): file for day, file in (*past, *now)})


def _effective(connection: Connection, dataset: DayDataset, rows: _EarlierTable) -> dict[date, list[EarlierRevision]]:
    """Return the revisions of each day that took effect. One that was recorded, and whose files were never committed,
    is deleted."""
    by_day, confirmed = earlier_revisions(connection, dataset), confirmed_revisions(connection, dataset)
    for day, known in by_day.items():
        last = known[-1]
        if day not in confirmed or last.number <= confirmed[day]:
            continue  # a day past its retention has no state any more: all of its revisions took effect
        names = None if last.files is None else last.files.get(_ROWS_OF[dataset], ())
        if names is not None and [content_key(name) for name in names] != rows.keys(day):
            known.pop()
            delete_revision(connection, dataset, day, last.number)
    return by_day


def _contents(
    name: str,
    day: date,
    table: _EarlierTable,
    recorded: Sequence[EarlierRevision],
    gathered: datetime,
    now: datetime,
) -> Iterator[NamedFile]:
    """Yield what a day of a table has had, each content once for all revisions in a row that have it."""
    present = table.keys(day)
    contents: list[tuple[datetime, list[str], int]] = []
    for revision in recorded:
        names = None if revision.files is None else revision.files.get(name, ())
        keys = present if names is None else [content_key(each) for each in names]
        if not contents or contents[-1][1] != keys:
            contents.append((revision.at, keys, revision.rows if name in _ROWS_OF.values() else 0))
    if not contents or contents[-1][1] != present:
        since = gathered if not contents else max(gathered, contents[-1][0] + _ONE_STEP)
        contents.append((min(since, now), present, 0))
    ends = [since for since, _, _ in contents[1:]]
    for (since, keys, rows), until in zip(contents, [*ends, None], strict=True):
        for key in keys:
            file = table.known.get((day, key))
            if file is None:
                lost = NewFile(f"{name}/date={day.isoformat()}/{key}", rows, 0)
                yield lost.named(name, day, since, until, gone_at=until or now)
            else:
                yield file.named(name, day, since, until)


def _complete_totals(connection: Connection, facts: FactTables) -> None:
    """Record the sums of revisions from before sums were recorded."""
    for dataset, day, number, at in without_total(connection):
        name = _ROWS_OF[dataset]
        named = [each for each in files_of_day(connection, day) if each.table == name and each.is_in_force(at)]
        with suppress(DamagedFacts):
            stored = read_files(name, day, [facts.day_file(each) for each in named if each.gone_at is None])
            save_total(connection, dataset, day, number, total(stored["amount"].to_pylist()))


def _mended(place: Place, name: str) -> bool:
    """Set aside what a power failure has cut off at the end of a log; return whether there was anything."""
    folder = place.root / name / LOG
    if place.options is not None or not folder.is_dir():
        return False  # an object appears whole
    aside = []
    entries = sorted(path for path in folder.glob("*.json") if path.stem.isdigit())
    with translate_file_errors(name):
        if entries and not _is_whole(entries[-1].read_text(encoding="utf-8")):
            aside.append(entries[-1])
        hint = folder / _HINT
        if hint.exists() and not _names_a_checkpoint(place, name, hint.read_bytes()):
            aside.append(hint)
        for path in aside:
            log.warning("%s: %s/%s was cut off by a power failure; it is set aside", name, LOG, path.name)
            path.rename(path.with_name(path.name + _ASIDE))
    return bool(aside)


def _is_whole(entry: str) -> bool:
    try:
        return all(isinstance(json.loads(line), dict) for line in entry.splitlines())
    except ValueError:
        return False


def _names_a_checkpoint(place: Place, name: str, hint: bytes) -> bool:
    with suppress(ValueError, KeyError, TypeError, OSError, pa.ArrowException):
        version = int(json.loads(hint)["version"])
        return pq.read_metadata(place.root / name / LOG / f"{version:020d}.checkpoint.parquet") is not None
    return False
