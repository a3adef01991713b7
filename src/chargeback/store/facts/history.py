"""The history of the fact tables: the superseded files of days, kept unchanged.

A file that leaves its table is added to the table's history under the day and the revision that it belonged to. It is
the same file, by a hard link where the file system has them: a Delta table keeps partition values outside its files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable
from datetime import date
from pathlib import Path

from deltalake.transaction import AddAction

from chargeback.errors import DamagedFacts
from chargeback.model.days import DayRange
from chargeback.store.facts.commits import translate_delta_errors
from chargeback.store.facts.files import DayFile, check_file, digest_in_name
from chargeback.store.facts.parallel import side_by_side
from chargeback.store.facts.seen import ReadableTables
from chargeback.store.facts.tables import HISTORY_TABLES, FactTables, PreparedDay, Snapshot


def content_key(path: str) -> str:
    """Return what names the content of a file: its digest, or its name where it was written elsewhere."""
    return digest_in_name(path) or Path(path).name


def files_of_day(snapshot: Snapshot, day: date) -> tuple[DayFile, ...]:
    """Return the files that have rows of a day."""
    return snapshot.within(DayRange.of_day(day))


def file_names_of_day(snapshot: Snapshot, day: date) -> list[str]:
    """Return the names of the files that have rows of a day."""
    return [Path(file.path).name for file in files_of_day(snapshot, day)]


def same_content(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two lists of file names name the same contents."""
    return [content_key(name) for name in some] == [content_key(name) for name in others]


def has_content(facts: FactTables, prepared: PreparedDay) -> bool:
    """Return whether a table already has, undamaged, exactly the rows that were prepared for a day."""
    stored = files_of_day(facts.snapshot(prepared.table), prepared.day)
    if not same_content((file.path for file in stored), prepared.file_names):
        return False
    try:
        with translate_delta_errors(prepared.table):
            for file in stored:
                check_file(file, thorough=True)
    except DamagedFacts:
        return False
    return True


class HistoryWriter:
    """Adds superseded files of several days to the histories, in one commit for each table."""

    def __init__(self, facts: FactTables, *, epoch: int) -> None:
        self._facts = facts
        self._epoch = epoch
        self._linked: dict[str, dict[tuple[date, str], AddAction]] = {}

    def add(self, name: str, day: date, revision: int, wanted: Collection[str]) -> list[str]:
        """Put those files of a day that ``wanted`` names beside the history of a table, to be part of it after
        :meth:`commit`; return the damage of those that cannot be kept.

        Raises:
            StorageError: a file cannot be read or written.
        """
        keys = {content_key(each) for each in wanted}
        files = [file for file in files_of_day(self._facts.snapshot(name), day) if content_key(file.path) in keys]
        if not files:
            return []
        history = HISTORY_TABLES[name]
        kept = {content_key(file.path) for file in files_of_day(self._facts.snapshot(history), day)}
        linked = self._linked.setdefault(history, {})
        damage = []
        for file in files:
            key = content_key(file.path)
            if key in kept or (day, key) in linked:
                continue
            try:
                with translate_delta_errors(name):
                    check_file(file, thorough=True)
                    linked[day, key] = _link(file, self._facts, history, day, revision)
            except DamagedFacts as error:
                damage.append(error.message)
        return damage

    def commit(self) -> None:
        """Make the added files part of the histories. Those of a commit that fails are not tried again.

        Raises:
            LeaseLost: a commit of a newer epoch is already there.
            StorageError: a history cannot be written.
        """
        linked, self._linked = self._linked, {}
        side_by_side(
            lambda each: self._facts.keep(each[0], list(each[1].values()), epoch=self._epoch),
            [(history, files) for history, files in linked.items() if files],
        )


def _link(file: DayFile, facts: FactTables, history: str, day: date, revision: int) -> AddAction:
    """Put a file into the folder of a history."""
    # The folder does not name the revision: a query reads present and past files together, and DuckDB accepts such a
    # list only if the folders of all files name the same columns.
    target = f"date={day.isoformat()}/{Path(file.path).name}"
    return AddAction(
        path=target,
        size=facts.place.copy(file.path, f"{history}/{target}"),
        partition_values={"date": day.isoformat(), "revision": str(revision)},
        modification_time=time.time_ns() // 10**6,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


class PastFiles:
    """Finds the files of a table, present and superseded, by their names."""

    def __init__(self, present: Snapshot, history: Snapshot) -> None:
        self._found: dict[tuple[date | None, str], DayFile] = {}
        for file in (*history.files, *present.files):
            self._found[file.day, content_key(file.path)] = file

    def find(self, day: date, names: Iterable[str]) -> tuple[DayFile, ...] | None:
        """Return the files of a day, or None if one of them is gone."""
        found = [self._found.get((day, content_key(name))) for name in names]
        files = tuple(file for file in found if file is not None)
        return files if len(files) == len(found) else None


def past_files(facts: ReadableTables, name: str, present: Snapshot) -> PastFiles:
    """Return the files of a table. Those of ``present`` were read before: a file is added to the history before it
    leaves its table."""
    return PastFiles(present, facts.snapshot(HISTORY_TABLES[name]))
