"""Upkeep of the fact tables: what no reader can need any more is taken off the disk.

Delta never deletes a file by itself: what a commit replaces is only marked as removed, and a killed writer leaves files
that nothing refers to. A file goes when it has been out of the table for longer than the table's own limit (Delta's
default: 168 hours), because readers hold lists of files. The caller holds the tenant's lease.
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
from chargeback.store.facts.commits import commit_attempts, commit_properties, translate_delta_errors
from chargeback.store.facts.dimensions import stored_dimensions
from chargeback.store.facts.files import read_file
from chargeback.store.facts.places import LAST_CHECKPOINT, LOG, Place, hinted_version
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, DIMENSIONS_TABLE, HISTORY_TABLES, SCHEMAS, FactTables

#: Delta's default for files that were removed; nothing younger is ever touched.
LEFTOVER_AGE: Final = timedelta(hours=168)
UPKEEP_EVERY: Final = timedelta(hours=24)
#: The register of dimensions is read whole by every run: more files than this are made one.
MAX_DIMENSION_FILES: Final = 32
#: The file, beside the tables, that says when upkeep was last done.
STAMP: Final = ".upkeep"


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """What was deleted: data files, leftovers of killed writers, empty folders of days."""

    files: int = 0
    leftovers: int = 0
    folders: int = 0

    def __add__(self, other: CleanupStats) -> CleanupStats:
        return CleanupStats(self.files + other.files, self.leftovers + other.leftovers, self.folders + other.folders)

    def __bool__(self) -> bool:
        return self != CleanupStats()


def upkeep_is_due(place: Place, now: datetime) -> bool:
    """Whether the tables of a place have not been seen to for long at ``now``, or never."""
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
    with translate_delta_errors("upkeep"):
        place.put(STAMP, f"{now.isoformat()}\n".encode())


def clean_table(facts: FactTables, name: str, *, epoch: int, leftover_age: timedelta = LEFTOVER_AGE) -> CleanupStats:
    """Vacuum one table, shorten its log, and delete files that Delta does not know.

    Raises:
        StorageBusy: other writers were in the way all the time.
        StorageError: the table cannot be read or written.
    """
    with translate_delta_errors(name):
        if facts.place.newest_version(name) < 0:
            return CleanupStats()
        files = _vacuum(facts, name, epoch)
        _shorten_log(facts, name)
        leftovers = facts.place.remove_leftovers(name, leftover_age)
        return CleanupStats(files, leftovers, _remove_empty_days(facts, name, leftover_age))


def _vacuum(facts: FactTables, name: str, epoch: int) -> int:
    """Delete the files that were removed, or never added, longer ago than the table keeps them; how many there were.

    The whole folder is compared with the table (a *full* vacuum): what was removed so long ago that the log has
    forgotten it would otherwise stay for ever.
    """
    there: list[str] = []
    for attempt in commit_attempts():
        with attempt:
            table = facts.open(name)
            there = _present(facts.place, name, table.vacuum(dry_run=True, full=True))
            # A vacuum is two commits, also where every file that it names is gone already.
            if there:
                try:
                    table.vacuum(dry_run=False, full=True, commit_properties=commit_properties(epoch))
                finally:
                    facts.count_commit()
    return len(there)


def _present(place: Place, name: str, paths: Sequence[str]) -> list[str]:
    """Those files of a table that are there."""
    if not paths:
        return []
    size_of, found = place.sizes(name), []
    for path in paths:
        with suppress(FileNotFoundError):
            size_of(f"{name}/{path}")
            found.append(path)
    return found


def _shorten_log(facts: FactTables, name: str) -> None:
    """Write a checkpoint where there is anything new, and drop what it makes superfluous and the table's limit for
    logs (Delta's default: 30 days) does not keep."""
    table = facts.open(name)
    if table.version() > _last_checkpoint(facts.place, name):
        table.create_checkpoint()
        table.cleanup_metadata()


def _last_checkpoint(place: Place, name: str) -> int:
    try:
        return hinted_version(place.read(f"{name}/{LOG}/{LAST_CHECKPOINT}"))
    except (OSError, ValueError):
        return -1


def _remove_empty_days(facts: FactTables, name: str, age: timedelta) -> int:
    """Remove the empty folders of days that are not in the table and have not changed for long."""
    if "date" not in SCHEMAS[name].names:
        return 0
    return facts.place.remove_empty_days(name, {file.day for file in facts.snapshot(name).files}, age)


def rewrite_dimensions(facts: FactTables, *, epoch: int, most_files: int = MAX_DIMENSION_FILES) -> bool:
    """Make the register of dimensions one file when it has many, without those that no stored day has any more;
    whether that was done.

    Raises:
        StorageError: a file is missing or damaged, or the register cannot be written.
    """
    if len(facts.snapshot(DIMENSIONS_TABLE).files) <= most_files:
        return False
    known = stored_dimensions(facts)
    charged = pc.unique(_of_stored_days(facts, ["dimension_id"])["dimension_id"])
    kept = known.filter(pc.is_in(known["dimension_id"], value_set=charged))
    facts.rewrite(DIMENSIONS_TABLE, kept.sort_by("dimension_id"), epoch=epoch)
    return True


def rebuild_dimensions(facts: FactTables, *, epoch: int) -> None:
    """Make the register of dimensions again from the stored days: its own files are lost. A day that cannot be read is
    left out; it is calculated again, and registers what it has.

    Raises:
        StorageError: the days cannot be read, or the register cannot be written.
    """
    charged = _of_stored_days(facts, DIMENSIONS.names, but_damaged=True).group_by(DIMENSIONS.names).aggregate([])
    facts.rewrite(DIMENSIONS_TABLE, charged.select(DIMENSIONS.names).sort_by("dimension_id"), epoch=epoch)


def _of_stored_days(facts: FactTables, columns: Sequence[str], *, but_damaged: bool = False) -> pa.Table:
    """Some columns of all chargeback rows, superseded ones too, each combination of a file once."""
    schema = pa.schema([CHARGEBACKS.field(name) for name in columns])
    of_days = [schema.empty_table()]
    for name in (CHARGEBACKS_TABLE, HISTORY_TABLES[CHARGEBACKS_TABLE]):
        for file in facts.snapshot(name).files:
            with translate_delta_errors(name), suppress(*([DamagedFacts] if but_damaged else [])):
                of_days.append(read_file(file, columns).cast(schema).group_by(columns).aggregate([]).select(columns))
    return pa.concat_tables(of_days)
