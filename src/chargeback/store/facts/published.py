"""The tables for other engines: logs of Delta Lake next to the files, written after the fact.

The catalogue says what the tables contain; a log repeats it for Spark, Trino, Polars and DuckDB, which read the same
files. A run publishes at its end what the catalogue has and a log lacks, under its lease. Readers of this service never
open a log: one that is lost or damaged is written again from the catalogue.

What a day had earlier is published as well, in a table of its own for each, partitioned by day and revision. Its files
are the same by a second path, because a log names only files below its own folder.
"""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from chargeback.errors import StorageError
from chargeback.store.control.catalogue import NamedFile
from chargeback.store.facts.errors import in_one_line, translate_file_errors
from chargeback.store.facts.places import LOG, Place, side_by_side
from chargeback.store.facts.tables import DAY_TABLES, HISTORY_TABLES, SCHEMAS, published_path

log = logging.getLogger(__name__)

_REVISION: Final = pa.field("revision", pa.int32(), nullable=False)
_OF_DAYS: Final = ("date",)
_OF_HISTORY: Final = ("date", "revision")
# Opening a table replays every commit since the last checkpoint.
_SETTINGS: Final = {"delta.checkpointInterval": "10"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Others may write to a log, such as a vacuum by hand: a commit is tried again.
_ATTEMPTS: Final = 5

#: The instants of the revisions of each table and day, ascending.
RevisionInstants = Mapping[str, Mapping[date, Sequence[datetime]]]


class LoggedFile(NamedTuple):
    """What a log says of a file: its path in the place, its day, rows and bytes, the revision (in a history), and since
    when it was part of its table, to the millisecond."""

    path: str
    day: date | None
    rows: int
    size: int
    revision: int | None
    since: datetime


def publish(place: Place, files: Iterable[NamedFile], revisions: RevisionInstants, *, from_scratch: bool) -> int:
    """Add missing ``files`` of a catalogue to the logs, and remove files that it does not have; return how many tables
    were changed. ``from_scratch`` rewrites all logs.

    Raises:
        StorageError: a log cannot be written.
    """
    wanted: dict[str, dict[str, tuple[NamedFile, AddAction]]] = {name: {} for name in SCHEMAS}
    wanted |= {history: {} for history in HISTORY_TABLES.values()}
    for file in files:
        if file.gone_at is None and file.table in SCHEMAS:
            name, action = _action(file, revisions)
            wanted[name][action.path] = (file, action)
    changed = side_by_side(lambda name: _publish_table(place, name, wanted[name], from_scratch), list(wanted))
    return sum(changed)


def _action(file: NamedFile, revisions: RevisionInstants) -> tuple[str, AddAction]:
    """Return the table that a file is published in, and what its log says of it."""
    partition = {} if file.day is None else {"date": file.day.isoformat()}
    name = file.table
    if file.until is not None and file.day is not None:
        name = HISTORY_TABLES[file.table]
        partition["revision"] = str(bisect_left(revisions.get(file.table, {}).get(file.day, ()), file.until))
    return name, AddAction(
        path=published_path(file).removeprefix(f"{name}/"),
        size=file.size,
        partition_values=partition,
        modification_time=int(file.since.timestamp() * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


def _publish_table(
    place: Place, name: str, wanted: Mapping[str, tuple[NamedFile, AddAction]], from_scratch: bool
) -> bool:
    """Bring one log up to date; return whether there was anything to do."""
    if from_scratch:
        _remove_log(place, name)
    try:
        return _commit_difference(place, name, wanted)
    except StorageError as error:
        log.warning("rewriting what is published of %s: %s", name, error.message)
        _remove_log(place, name)
        return _commit_difference(place, name, wanted)


def _commit_difference(place: Place, name: str, wanted: Mapping[str, tuple[NamedFile, AddAction]]) -> bool:
    """Make the files of a log those that are wanted, in one commit.

    Raises:
        StorageError: the log cannot be read or written.
    """
    with _translated(name):
        for attempt in Retrying(
            retry=retry_if_exception_type(CommitFailedError),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.02, max=1),
            reraise=True,
        ):
            with attempt:
                table = _opened(place, name) or _created(place, name, is_needed=bool(wanted) or name in SCHEMAS)
                return table is not None and _difference_committed(place, name, table, wanted)
    raise AssertionError("unreachable")


def _difference_committed(
    place: Place, name: str, table: DeltaTable, wanted: Mapping[str, tuple[NamedFile, AddAction]]
) -> bool:
    known = {each.name for each in table.schema().fields}
    if new := [each for each in schema_of(name) if each.name not in known]:
        table.alter.add_columns(list(Schema.from_arrow(pa.schema(new)).fields))
    actions = pa.table(table.get_add_actions(flatten=True))
    there = {unquote(path) for path in actions["path"].to_pylist()}
    if there == wanted.keys():
        return False
    for path in wanted.keys() - there:
        file, _ = wanted[path]
        if file.path != f"{name}/{path}":
            place.copy(file.path, f"{name}/{path}")
    is_dated = "date" in schema_of(name).names
    days = sorted({_day_in(path) for path in wanted.keys() ^ there}) if is_dated else []
    adds: list[AddAction | RemoveAction] = [
        action for path, (_, action) in wanted.items() if not is_dated or _day_in(path) in days
    ]
    if adds:
        partition = list(_partition_of(name))
        replaced = [("date", "in", days)] if is_dated else None
        table.create_write_transaction(adds, "overwrite", table.schema(), partition, replaced)
    else:
        table.delete(f"date IN ({', '.join(repr(day) for day in days)})" if is_dated else None)
    return True


def _day_in(path: str) -> str:
    """The day of a file of a log, by its folder."""
    return path.partition("/")[0].removeprefix("date=")


def schema_of(name: str) -> pa.Schema:
    """Return the schema of a published table."""
    return SCHEMAS[name] if name in SCHEMAS else SCHEMAS[name.removesuffix("_history")].append(_REVISION)


def _partition_of(name: str) -> tuple[str, ...]:
    if name not in SCHEMAS:
        return _OF_HISTORY
    return _OF_DAYS if name in DAY_TABLES else ()


def _opened(place: Place, name: str) -> DeltaTable | None:
    try:
        return DeltaTable(place.uri(name), storage_options=place.options)
    except TableNotFoundError:
        return None


def _created(place: Place, name: str, *, is_needed: bool) -> DeltaTable | None:
    if not is_needed:
        return None
    if place.options is None:
        (place.root / name).mkdir(parents=True, exist_ok=True)
    return DeltaTable.create(
        place.uri(name),
        schema_of(name),
        mode="ignore",
        partition_by=list(_partition_of(name)) or None,
        name=name,
        configuration=_SETTINGS,
        storage_options=place.options,
    )


def _remove_log(place: Place, name: str) -> None:
    with translate_file_errors(name):
        for file in list(place.files(f"{name}/{LOG}")):
            place.delete(file.path)


def shorten_logs(place: Place) -> None:
    """Write a checkpoint of each log, and drop what it makes superfluous and the table's limit for logs (Delta's
    default: 30 days) does not keep.

    Raises:
        StorageError: a log cannot be read or written.
    """

    def shorten(name: str) -> None:
        with _translated(name):
            table = _opened(place, name)
            if table is not None and not _has_checkpoint(place, name, table.version()):
                table.create_checkpoint()
                table.cleanup_metadata()

    side_by_side(shorten, [*SCHEMAS, *HISTORY_TABLES.values()])


def _has_checkpoint(place: Place, name: str, version: int) -> bool:
    return any(found.path.endswith(f"{version:020d}.checkpoint.parquet") for found in place.files(f"{name}/{LOG}"))


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Translate errors about the log of a table, and about its files, into ours."""
    with translate_file_errors(name):
        try:
            yield
        except DeltaError as error:
            raise StorageError(f"the log of {name} cannot be used: {in_one_line(error)}") from error


def files_in_log(place: Place, name: str) -> Iterator[LoggedFile]:
    """Yield what a log says of its files.

    Raises:
        StorageError: the log cannot be read.
    """
    with _translated(name):
        table = _opened(place, name)
        if table is None:
            return
        actions = pa.table(table.get_add_actions(flatten=True))
    nothing: list[None] = [None] * actions.num_rows
    days, revisions = (
        actions[column].to_pylist() if column in actions.column_names else nothing
        for column in ("partition.date", "partition.revision")
    )
    columns = (actions[column].to_pylist() for column in ("path", "num_records", "size_bytes", "modification_time"))
    for day, revision, path, rows, size, since in zip(days, revisions, *columns, strict=True):
        yield LoggedFile(f"{name}/{unquote(path)}", day, rows, size, revision, _EPOCH + timedelta(milliseconds=since))
