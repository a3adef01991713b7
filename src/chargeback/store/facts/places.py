"""Where the fact tables of a tenant lie: a :class:`Place` reads, writes, lists and deletes their files.

Paths are relative to the place, with ``/``: ``usage/date=2026-01-01/part-….parquet``. An absolute path below
:attr:`Place.root`, where queries open the file, names it as well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from chargeback.disk import fsync
from chargeback.model.days import utc_now
from chargeback.store.clocks import ClockReading

if TYPE_CHECKING:
    from chargeback.store.facts.copies import Copies

T = TypeVar("T")
R = TypeVar("R")

#: The folder of a table that has its published log.
LOG: Final = "_delta_log"
#: The number of digits of a file's digest in its name.
DIGITS: Final = 32
#: The most files or objects that are read or written at the same time.
PARALLEL: Final = 16
# The suffix of an unfinished file; upkeep removes old ones.
_ASIDE: Final = "#1"
_DAY: Final = "date="


class StoredFile(NamedTuple):
    """A file of a place: its path in it, its size in bytes, and when it was written."""

    path: str
    size: int
    written_at: datetime


class Place(Protocol):
    """Where the tables of one tenant lie. Safe for use by several threads and processes.

    Raises (everywhere): FileNotFoundError for a missing file; OSError for any other failure.
    """

    @property
    def root(self) -> Path:
        """The local folder below which queries open the files, each under its path in the place."""

    @property
    def copies(self) -> Copies | None:
        """The copies of the files below :attr:`root`; None if the files themselves are there."""

    @property
    def options(self) -> dict[str, str] | None:
        """The options with which the Delta library opens :meth:`uri`."""

    def __str__(self) -> str:
        """Return the name of the place in messages."""

    def uri(self, table: str) -> str:
        """Return the address of a table for the Delta library."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def open(self, path: str) -> pa.NativeFile:
        """Open a file to read parts of it."""

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file's content, in hexadecimal digits."""

    def sizes(self, folder: str = "") -> Callable[[str], int]:
        """Return a function from the path of a file in a folder, or of any file, to its size in bytes, now or at the
        time of this call."""

    def files(self, folder: str = "") -> Iterator[StoredFile]:
        """Yield the files in a folder, or all; none if the folder is missing."""

    def write(self, folder: str, name: str, suffix: str, content: bytes) -> str:
        """Write a new file ``{name}-{digest}{suffix}``; return its path. The file is durable when this returns. No
        table refers to what a failed write leaves."""

    def put(self, path: str, content: bytes) -> None:
        """Write or replace a file: readers see the whole old file, or the whole new one."""

    def copy(self, path: str, target: str) -> None:
        """Make a file available under a second path."""

    def delete(self, path: str) -> None:
        """Delete a file."""

    def remove_empty_days(self, table: str, kept: Collection[date | None], age: timedelta) -> int:
        """Remove the empty folders of days that are not ``kept`` and have not changed for ``age``; return how many."""

    def try_out(self) -> None:
        """Check that files can be written and read again.

        Raises:
            OSError: they cannot. The message says what is missing.
        """

    def clock(self) -> ClockReading | None:
        """Return the time of the clock that dates the files; None if it is this machine's."""

    def is_empty(self) -> bool:
        """Return whether there is nothing in the place."""

    def save(self, folder: Path, paths: Iterable[str]) -> None:
        """Copy some files of the place into a local folder."""

    def load(self, folder: Path) -> None:
        """Copy a local folder into the place, which is empty."""


class Folder:
    """A folder of a local disk, which may lose power: a file is on the disk before a table refers to it."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.copies: Final = None
        self.options: Final = None

    def __str__(self) -> str:
        return str(self.root)

    def uri(self, table: str) -> str:
        """Return the folder of a table."""
        return str(self.root / table)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return (self.root / path).read_bytes()

    def open(self, path: str) -> pa.NativeFile:
        """Open a file to read some of it."""
        return pa.OSFile(str(self.root / path))

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file's content, without loading it into memory."""
        with (self.root / path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def sizes(self, folder: str = "") -> Callable[[str], int]:
        """Return a function from a file to its present size."""
        return lambda path: (self.root / path).stat().st_size

    def files(self, folder: str = "") -> Iterator[StoredFile]:
        """Yield the files in a folder, or all."""
        for path in sorted((self.root / folder).rglob("*")):
            with suppress(FileNotFoundError):  # deleted meanwhile
                if path.is_file():
                    found = path.stat()
                    at = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield StoredFile(path.relative_to(self.root).as_posix(), found.st_size, at)

    def write(self, folder: str, name: str, suffix: str, content: bytes) -> str:
        """Write a file; force it, its name and the new folders to the disk."""
        place = self.root / folder
        folders = _made(place)
        path = place / f"{name}-{hashlib.sha256(content).hexdigest()[:DIGITS]}{suffix}"
        try:
            path.write_bytes(content)
            for each in (path, *folders):
                fsync(each)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
        return f"{folder}/{path.name}"

    def put(self, path: str, content: bytes) -> None:
        """Write a file under another name, and rename it."""
        target = self.root / path
        folders = _made(target.parent)
        new = target.with_name(target.name + _ASIDE)
        try:
            new.write_bytes(content)
            fsync(new)
            new.rename(target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
        for each in folders:
            fsync(each)

    def copy(self, path: str, target: str) -> None:
        """Make a hard link of a file where the file system has them."""
        source, copied = self.root / path, self.root / target
        folders = _made(copied.parent)
        copied.unlink(missing_ok=True)
        try:
            os.link(source, copied)
        except FileNotFoundError:
            raise
        except OSError:  # no hard links here
            shutil.copyfile(source, copied)
            fsync(copied)
        for each in folders:
            fsync(each)

    def delete(self, path: str) -> None:
        """Delete a file."""
        (self.root / path).unlink()

    def remove_empty_days(self, table: str, kept: Collection[date | None], age: timedelta) -> int:
        """Remove the empty folders of days that are not ``kept`` and have not changed for ``age``."""
        oldest = (utc_now() - age).timestamp()
        removed = 0
        for folder in (self.root / table).glob(f"{_DAY}*"):
            with suppress(ValueError, OSError):  # not a day of ours, or not empty after all
                if date.fromisoformat(folder.name.removeprefix(_DAY)) in kept or folder.stat().st_mtime > oldest:
                    continue
                folder.rmdir()
                removed += 1
        return removed

    def try_out(self) -> None:
        """Check nothing: the first write of a run reports a disk that cannot be written."""

    def clock(self) -> None:
        """Return None: the clock is this machine's."""

    def is_empty(self) -> bool:
        """Return whether the folder is empty or missing."""
        return not (self.root.is_dir() and any(self.root.iterdir()))

    def save(self, folder: Path, paths: Iterable[str]) -> None:
        """Copy some files into another folder."""
        for path in paths:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / path, target)

    def load(self, folder: Path) -> None:
        """Copy a folder into this one."""
        shutil.copytree(folder, self.root, dirs_exist_ok=True)


def _made(folder: Path) -> list[Path]:
    """Create a folder if it is missing. Return the folders to force to the disk once a file is in it: the folder, and
    the parents of new folders."""
    new = [each for each in (folder, *folder.parents) if not each.is_dir()]
    folder.mkdir(parents=True, exist_ok=True)
    return [folder, *(each.parent for each in new)]


#: Files that are named by their absolute paths.
DISK: Final = Folder(Path("/"))


def as_place(where: Place | Path) -> Place:
    """Return a place, or the folder that a path names."""
    return Folder(where) if isinstance(where, Path) else where


def side_by_side(work: Callable[[T], R], of: Sequence[T]) -> list[R]:
    """Call ``work`` with each item, up to :data:`PARALLEL` at a time, because object storage makes callers wait; return
    the results in order. After an error no more calls begin."""
    if len(of) < 2:
        return [work(each) for each in of]
    pool = ThreadPoolExecutor(min(PARALLEL, len(of)), "facts")
    try:
        return [done.result() for done in [pool.submit(work, each) for each in of]]
    finally:
        pool.shutdown(cancel_futures=True)
