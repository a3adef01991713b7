"""Upkeep of the fact tables: what no reader can need any more is taken off the disk.

A file goes when the catalogue has not named it for a week, because readers hold lists of files: what was given up, and
what a killed writer has left. The caller holds the tenant's lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.errors import DamagedFacts
from chargeback.model.chargeback import CHARGEBACKS, DIMENSIONS
from chargeback.model.days import has_passed
from chargeback.store.control.catalogue import NewFile, every_file
from chargeback.store.facts.dimensions import stored_dimensions, write_register
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import read_file
from chargeback.store.facts.places import LOG, Place, StoredFile
from chargeback.store.facts.tables import (
    CHARGEBACKS_TABLE,
    DAY_TABLES,
    DIMENSIONS_TABLE,
    FactTables,
    published_path,
)

#: Nothing younger is ever deleted.
LEFTOVER_AGE: Final = timedelta(hours=168)
UPKEEP_EVERY: Final = timedelta(hours=24)
#: The register of dimensions is read whole by every run: more files than this are made one.
MAX_DIMENSION_FILES: Final = 32
#: The file, next to the tables, that says when upkeep was last done.
STAMP: Final = ".upkeep"


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """What was deleted: files, and empty folders of days."""

    files: int = 0
    folders: int = 0

    def __bool__(self) -> bool:
        return self != CleanupStats()


def upkeep_is_due(place: Place, now: datetime) -> bool:
    """Return whether the last upkeep of the tables of a place is long ago at ``now``, or never happened."""
    try:
        last = datetime.fromisoformat(place.read(STAMP).decode().strip())
    except (OSError, ValueError):
        return True
    return has_passed(UPKEEP_EVERY, last, now)


def record_upkeep(place: Place, now: datetime) -> None:
    """Record that upkeep was done at ``now``.

    Raises:
        StorageError: the place cannot be written.
    """
    with translate_file_errors("upkeep"):
        place.put(STAMP, f"{now.isoformat()}\n".encode())


def listed_files(facts: FactTables) -> list[StoredFile]:
    """Return the files of the tables, and what else lies in their place.

    Raises:
        StorageError: the files cannot be listed.
    """
    with translate_file_errors("upkeep"):
        return list(facts.place.files())


def remove_unnamed(
    facts: FactTables, now: datetime, age: timedelta = LEFTOVER_AGE, there: Sequence[StoredFile] | None = None
) -> CleanupStats:
    """Delete the files that the catalogue has not named for ``age`` at ``now``, and the empty folders of days;
    ``there`` are the files, if they were listed already.

    Raises:
        StorageError: the catalogue cannot be read, or the files cannot be listed.
    """
    with facts.control.read() as connection:
        named = every_file(connection)
    named = [each for each in named if each.gone_at is None or now < each.gone_at + age]
    kept = {path for each in named for path in (each.path, published_path(each))}
    removed = 0
    there = listed_files(facts) if there is None else there
    with translate_file_errors("upkeep"):
        for found in there:
            if found.path not in kept and is_fact_file(found.path) and found.written_at + age < now:
                with suppress(FileNotFoundError):
                    facts.place.delete(found.path)
                    removed += 1
    folders = sum(
        facts.place.remove_empty_days(name, {each.day for each in named if each.table == name}, age)
        for name in DAY_TABLES
    )
    return CleanupStats(removed, folders)


def settled_history(
    facts: FactTables, now: datetime, age: timedelta = LEFTOVER_AGE, there: Sequence[StoredFile] | None = None
) -> dict[int, str]:
    """Return which files the catalogue can name where their history is published, instead of where they were written:
    those that have been superseded for ``age``. The others of the two are then named by nothing. ``there`` is as for
    :func:`remove_unnamed`.

    Raises:
        StorageError: the catalogue cannot be read, or the files cannot be listed.
    """
    with facts.control.read() as connection:
        named = every_file(connection, kept_only=True)
    old = {
        each.id: published_path(each)
        for each in named
        if each.until is not None and each.until + age < now and each.path != published_path(each)
    }
    if not old:
        return {}
    paths = {found.path for found in (listed_files(facts) if there is None else there)}
    return {number: path for number, path in old.items() if path in paths}


def is_fact_file(path: str) -> bool:
    """Return whether a file belongs to a table's data: not to its published log, nor to the folders next to the
    tables."""
    return not path.startswith(".") and f"/{LOG}/" not in path


def compacted_dimensions(facts: FactTables, most_files: int = MAX_DIMENSION_FILES) -> NewFile | None:
    """Write the register of dimensions as one file if it has many, without those that no kept day has any more.

    Raises:
        StorageError: a file is missing or damaged, or the register cannot be written.
    """
    if len(facts.snapshot(DIMENSIONS_TABLE).files) <= most_files:
        return None
    known = stored_dimensions(facts)
    charged = pc.unique(_of_kept_days(facts, ["dimension_id"])["dimension_id"])
    kept = known.filter(pc.is_in(known["dimension_id"], value_set=charged))
    return write_register(facts, kept.sort_by("dimension_id"))


def rebuilt_dimensions(facts: FactTables) -> NewFile:
    """Write the register of dimensions again from the kept days: its own files are lost. A day that cannot be read is
    left out; it is calculated again, and registers what it has.

    Raises:
        StorageError: the register cannot be written.
    """
    charged = _of_kept_days(facts, DIMENSIONS.names, but_damaged=True).group_by(DIMENSIONS.names).aggregate([])
    return write_register(facts, charged.select(DIMENSIONS.names).sort_by("dimension_id"))


def _of_kept_days(facts: FactTables, columns: Sequence[str], *, but_damaged: bool = False) -> pa.Table:
    """Some columns of all chargeback rows, superseded ones too, each combination of a file once."""
    schema = pa.schema([CHARGEBACKS.field(name) for name in columns])
    of_days = [schema.empty_table()]
    with facts.control.read() as connection:
        named = [each for each in every_file(connection, kept_only=True) if each.table == CHARGEBACKS_TABLE]
    for each in named:
        with translate_file_errors(CHARGEBACKS_TABLE), suppress(*([DamagedFacts] if but_damaged else [])):
            rows = read_file(facts.day_file(each), columns)
            of_days.append(rows.cast(schema).group_by(columns).aggregate([]).select(columns))
    return pa.concat_tables(of_days)
