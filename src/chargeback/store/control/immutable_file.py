"""Read a SQLite file in a folder that cannot be written.

Readers of a file in WAL mode create two files beside it, which a full or read-only disk does not allow. If no process
has the file open, it is complete: it can be read alone, without locks, as long as no process writes meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from chargeback.errors import StorageError


@dataclass(frozen=True, slots=True)
class ImmutableSqliteFile:
    """A SQLite file without pending changes, as it was when it was inspected."""

    path: Path
    changed_at: int
    size: int

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """Return the file; return None if it is missing, or if the log beside it has changes that it lacks."""
        log = path.with_name(path.name + "-wal")
        try:
            if log.exists() and log.stat().st_size:
                return None
            found = path.stat()
        except OSError:
            return None
        return cls(path, found.st_mtime_ns, found.st_size)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that only reads and uses no locks.

        Raises:
            StorageError: another process wrote meanwhile, so the results are invalid.
        """
        engine = create_engine("sqlite://", creator=self._open, poolclass=NullPool)
        with engine.connect() as connection:
            yield connection
        if ImmutableSqliteFile.at(self.path) != self:
            raise StorageError("the control database cannot be used: it was changed while it was read without locks")

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
