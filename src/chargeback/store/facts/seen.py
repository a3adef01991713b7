"""The fact tables as queries see them: as they were a moment ago, unless something tells that they have changed.

In object storage, looking for new entries in the log of a table is a request. Runs raise a revision in the control
database, which a query reads anyway: no later than in the transaction after their commits. While it is the same, what
was seen of the tables is still true. The log remains the truth: it is looked at again after a while in any case, for
a commit whose run did not live to record it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from chargeback.errors import StorageError
from chargeback.store.facts.parallel import side_by_side
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.facts.tables import DAY_TABLES, DIMENSIONS_TABLE, HISTORY_TABLES, FactTables, Snapshot

#: Tables that refer to others are seen before these: rows to their dimensions, present files to the histories into
#: which they go.
_ORDER: Final = (DAY_TABLES, (DIMENSIONS_TABLE,), tuple(HISTORY_TABLES.values()))


class ReadableTables(Protocol):
    """What queries use of fact tables."""

    @property
    def partials(self) -> PartialFiles:
        """Their partial aggregates."""

    def snapshot(self, name: str) -> Snapshot:
        """Return a table as it is now; a table that was never written is empty."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen at one time: the tables, the revision that was known before, what this process had committed."""

    at: float = 0.0
    revision: int = -1
    commits: int = -1
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)


class SeenTables:
    """Keeps the snapshots of all tables that were asked for, seen at one time. Safe for use by several threads.

    They are seen together: a table is never older than one that refers to it, as it would be if each were looked at
    in its own time.
    """

    def __init__(self, tables: FactTables) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._last = _Look()

    def snapshots(self, names: Collection[str], revision: int) -> dict[str, Snapshot]:
        """Return tables with at least what was committed before ``revision`` was read.

        Raises:
            StorageError: a table cannot be read.
        """
        with self._lock:
            if not self._is_true(names, revision):
                self._last = self._look(names, revision)
            return {name: self._last.snapshots[name] for name in names}

    def _is_true(self, names: Collection[str], revision: int) -> bool:
        last = self._last
        return (
            revision <= last.revision
            and last.commits == self._tables.commits
            and time.monotonic() < last.at + self._tables.place.fresh_seconds
            and last.snapshots.keys() >= set(names)
        )

    def _look(self, names: Collection[str], revision: int) -> _Look:
        found: dict[str, Snapshot] = {}

        def _see(name: str) -> None:
            try:
                found[name] = self._tables.snapshot(name)
            except StorageError:
                if name in names:  # names of others are only for callers that ask for them
                    raise

        at, commits, wanted = time.monotonic(), self._tables.commits, {*names, *self._last.snapshots}
        for together in _ORDER:
            side_by_side(_see, [name for name in together if name in wanted])
        return _Look(at, revision, commits, found)
