"""A disk that loses everything that was not synced: data committed by a run survives a power failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection

from chargeback import disk
from chargeback.model.days import Clock
from chargeback.store.control.lease import Lease
from chargeback.store.facts import places
from chargeback.store.facts.tables import FactTables
from tests.pipeline.test_revise import DAYS, NINE_TO_ONE
from tests.support.facts import catalogue_of
from tests.support.sources import DAY, RECALCULATE, Laboratory, line

_FULL = 2


class Forced:
    """What was synced to the disk: contents of files, and names in folders, at that time."""

    def __init__(self) -> None:
        self._contents: dict[Path, bytes] = {}
        self._names: dict[Path, set[Path]] = {}

    def fsync(self, path: Path) -> None:
        """Sync a file, or a folder's names."""
        disk.fsync(path)
        if path.is_dir():
            self._names[path] = set(path.iterdir())
        else:
            self._contents[path] = path.read_bytes()

    def has(self, path: Path, folder: Path) -> bool:
        """Return whether a file in a folder on the disk would survive a power failure unchanged now."""
        if self._contents.get(path) != path.read_bytes():
            return False
        named = [path, *(each for each in path.parents if each.is_relative_to(folder) and each != folder)]
        return all(each in self._names.get(each.parent, ()) for each in named)


class CheckedTables(FactTables):
    """Tables that check, at the end of each transaction, that the disk has every listed file."""

    forced: Forced
    commits = 0

    @contextmanager
    def commit(self, lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        """Commit and check."""
        with super().commit(lease, now) as (connection, at):
            yield connection, at
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == _FULL
        self.commits += 1
        lost = [
            each.path for each in catalogue_of(self) if not self.forced.has(self.root / each.path, self.root.parent)
        ]
        assert not lost, f"the disk need not have {lost}"


def test_what_is_committed_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, their names and new folders are synced before the transaction that lists them, which is synced as well."""
    forced = Forced()
    monkeypatch.setattr(places, "fsync", forced.fsync)
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory:
        tables = CheckedTables(laboratory.store.facts.root, laboratory.store.control)
        tables.forced = forced
        object.__setattr__(laboratory.store, "facts", tables)
        laboratory.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        laboratory.sources.totals = NINE_TO_ONE
        laboratory.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3}}
        assert laboratory.run().errors == ()
        laboratory.sources.lines[DAY] = [line("110")]
        assert laboratory.run(RECALCULATE).errors == ()
        assert tables.commits >= 6
