"""Where the fact tables of a tenant lie: a :class:`Place` reads, writes, lists and deletes their files, and makes
durable what Delta's writer has written.

Paths are relative to the place, with ``/``: ``usage/date=2026-01-01/part-….parquet``. An absolute path below
:attr:`Place.root`, where queries open the file, names it as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.disk import fsync
from chargeback.store.clocks import ClockReading

if TYPE_CHECKING:
    from chargeback.store.facts.copies import Copies

#: The folder of a table that has its log.
LOG: Final = "_delta_log"
LAST_CHECKPOINT: Final = "_last_checkpoint"
#: How many digits of a file's digest are in its name.
DIGITS: Final = 32

# What has it at its end is unfinished or set aside; upkeep removes it when it is old.
_ASIDE: Final = "#1"
_DAY: Final = "date="


class LogState(NamedTuple):
    """What a log looks like from outside.

    Attributes:
        folder: the inode of its folder; 0 without one.
        checkpoint: when its last checkpoint was written; 0 without one.
        has_next: whether there is a newer entry.
    """

    folder: int
    checkpoint: int
    has_next: bool


class Written(NamedTuple):
    """A new file: its path in the place, its size in bytes."""

    path: str
    size: int


class Place(Protocol):
    """Where the tables of one tenant lie. Safe for use by several threads and processes.

    Raises (everywhere): FileNotFoundError for a file that is not there; OSError for any other trouble.
    """

    @property
    def root(self) -> Path:
        """The folder of this machine below which queries open the files: each under its path in the place."""

    @property
    def copies(self) -> Copies | None:
        """What keeps copies of the files below :attr:`root`; None where they are the files themselves."""

    @property
    def options(self) -> dict[str, str] | None:
        """What the Delta library needs to know to open :meth:`uri`."""

    @property
    def fresh_seconds(self) -> float:
        """For how long what was seen of a log may be taken for what it is, if no change is announced; 0 where looking
        again is as quick."""

    def __str__(self) -> str:
        """How messages name it."""

    def uri(self, table: str) -> str:
        """Return where the Delta library finds a table."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def open(self, path: str) -> pa.NativeFile:
        """Open a file to read some of it."""

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file's content, in hexadecimal digits."""

    def sizes(self, table: str) -> Callable[[str], int]:
        """Return what tells the size of a file of a table, in bytes, as it is now or was when this was called."""

    def data_files(self, table: str) -> list[str]:
        """Return the paths of the data files of a table, also of those that are not part of it any more."""

    def write(self, folder: str, name: str, suffix: str, fill: Callable[[Path | pa.NativeFile], None]) -> Written:
        """Write a new file ``{name}-{digest}{suffix}`` with what ``fill`` gives it. It is durable when this returns,
        and no reader sees a part of it; nothing is left of a failed one. Its table is there already."""

    def put(self, path: str, content: bytes) -> None:
        """Write a file in the place of one that may be there: readers see the one or the other, whole."""

    def copy(self, path: str, target: str) -> int:
        """Make a file known under another path, too; return its size in bytes."""

    def delete(self, path: str) -> None:
        """Delete a file."""

    def prepare(self, table: str) -> None:
        """Make ready for the first file of a table."""

    def newest_version(self, table: str) -> int:
        """Return the version of the newest entry of a table's log; -1 where there is no table."""

    def log_state(self, table: str, version: int) -> LogState:
        """Return the state of a table's log for a reader that knows it up to ``version``.

        Versions are consecutive: there is something new only if there is a next entry, if the log was shortened up to a
        new checkpoint, or if the whole folder was exchanged.
        """

    def settle(self, table: str, after: int) -> None:
        """Make the log entries after a version durable, with their checkpoints."""

    def mend(self, table: str) -> Iterator[str]:
        """Set aside what a power failure left at the end of a table's log; yield the name of each part. The caller
        holds the tenant's lease."""

    def remove_leftovers(self, table: str, age: timedelta) -> int:
        """Delete what killed writers left half-written longer ago than ``age``, which no vacuum sees; return how many
        files that were."""

    def remove_empty_days(self, table: str, kept: Collection[date | None], age: timedelta) -> int:
        """Remove the empty folders of days that are not ``kept`` and have not changed for ``age``; return how many."""

    def try_out(self) -> None:
        """Check that the place keeps what the tables need: that of two who create one file the second is refused.

        Raises:
            OSError: it does not, or it cannot be written. The message says what is missing.
        """

    def clock(self) -> ClockReading | None:
        """Return the time by which the place dates its files; None if its clock is this machine's."""

    def is_empty(self) -> bool:
        """Return whether there is nothing in the place."""

    def save(self, folder: Path, but: Sequence[str]) -> None:
        """Copy the place into a new local folder, except what is unfinished or named in ``but``; a place that does not
        exist makes no folder."""

    def load(self, folder: Path) -> None:
        """Copy what :meth:`save` has made into the place, which is empty."""


class Folder:
    """A folder of a local disk, which may lose power.

    Delta's writer leaves it to the disk when an entry of the log is really there. A power cut in between would leave an
    entry cut short or full of zeros, and with it a table that cannot be opened. So entries are forced to the disk when
    they are made, and one that was cut off is set aside: it belongs to a commit that was not confirmed.
    """

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.copies: Final = None
        self.options: Final = None
        self.fresh_seconds: Final = 0.0

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
        """Return the SHA-256 of a file's content, which is not in the memory at once."""
        return _digest(self.root / path)

    def sizes(self, table: str) -> Callable[[str], int]:
        """Return what tells the size of a file as it is now."""
        return lambda path: (self.root / path).stat().st_size

    def data_files(self, table: str) -> list[str]:
        """Return the paths of the data files of a table: they lie in the folders of its days."""
        return [str(path.relative_to(self.root)) for path in (self.root / table).glob("*/*.parquet")]

    def write(self, folder: str, name: str, suffix: str, fill: Callable[[Path | pa.NativeFile], None]) -> Written:
        """Write a file under a name by which upkeep finds what a killed writer has left; rename it when it is on the
        disk."""
        place = self.root / folder
        place.mkdir(exist_ok=True)
        unfinished = place / f"{name}{suffix}{_ASIDE}"
        try:
            fill(unfinished)
            fsync(unfinished)
            path = place / f"{name}-{_digest(unfinished)[:DIGITS]}{suffix}"
            unfinished.rename(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
        return Written(str(path.relative_to(self.root)), path.stat().st_size)

    def put(self, path: str, content: bytes) -> None:
        """Write a file beside the one that may be there, and exchange them."""
        target = self.root / path
        new = _aside(target)
        try:
            new.write_bytes(content)
            fsync(new)
            new.rename(target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
        fsync(target.parent)

    def copy(self, path: str, target: str) -> int:
        """Make a hard link of a file where the file system has them."""
        source, copied = self.root / path, self.root / target
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.unlink(missing_ok=True)
        try:
            os.link(source, copied)
        except OSError:  # no hard links here
            shutil.copyfile(source, copied)
            fsync(copied)
        fsync(copied.parent)
        return copied.stat().st_size

    def delete(self, path: str) -> None:
        """Delete a file."""
        (self.root / path).unlink()

    def prepare(self, table: str) -> None:
        """Make the folder of a table."""
        (self.root / table).mkdir(parents=True, exist_ok=True)

    def newest_version(self, table: str) -> int:
        """Return the version of the newest entry of a table's log; -1 where there is no table."""
        entries = _entries(self._log(table))
        return int(entries[-1].stem) if entries else -1

    def log_state(self, table: str, version: int) -> LogState:
        """Return the state of a table's log for a reader that knows it up to ``version``: three looks at the disk."""
        log = self._log(table)
        return LogState(_inode(log), _changed_at(log / LAST_CHECKPOINT), (log / entry_name(version + 1)).exists())

    def settle(self, table: str, after: int) -> None:
        """Flush the log entries after a version to the disk, with their checkpoints."""
        log, version = self._log(table), after + 1
        while (entry := log / entry_name(version)).exists():
            fsync(entry)
            checkpoint = log / checkpoint_name(version)
            if checkpoint.exists():
                fsync(checkpoint)
                with suppress(FileNotFoundError):  # who makes the checkpoint at this moment has yet to name it
                    fsync(log / LAST_CHECKPOINT)
            version += 1
        fsync(log)

    def mend(self, table: str) -> Iterator[str]:
        """Set aside an entry that was cut off, and a checkpoint that cannot be read."""
        log = self._log(table)
        entries = _entries(log)
        if not entries:
            return
        if not _is_whole(entries[-1], is_first=len(entries) == 1):
            yield _set_aside(entries[-1], "is truncated")
        hint = log / LAST_CHECKPOINT
        if hint.exists() and not _is_readable(checkpoint := _hinted(log, hint)):
            if checkpoint is not None and checkpoint.exists():
                checkpoint.rename(_aside(checkpoint))
            yield _set_aside(hint, "names a checkpoint that cannot be read: the entries before it are read instead")

    def remove_leftovers(self, table: str, age: timedelta) -> int:
        """Delete the half-written files (``…#1``) of killed writers that are older than ``age``."""
        oldest = time.time() - age.total_seconds()
        removed = 0
        for path in _leftovers(self.root / table):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
                    removed += 1
        return removed

    def remove_empty_days(self, table: str, kept: Collection[date | None], age: timedelta) -> int:
        """Remove the empty folders of days that are not ``kept`` and have not changed for ``age``."""
        oldest = time.time() - age.total_seconds()
        removed = 0
        for folder in (self.root / table).glob(f"{_DAY}*"):
            with suppress(ValueError, OSError):  # not a day of ours, or not empty after all
                if date.fromisoformat(folder.name.removeprefix(_DAY)) in kept or folder.stat().st_mtime > oldest:
                    continue
                folder.rmdir()
                removed += 1
        return removed

    def try_out(self) -> None:
        """Check nothing: file systems create files so."""

    def clock(self) -> None:
        """Return None: the clock is this machine's."""

    def is_empty(self) -> bool:
        """Return whether the folder has nothing in it, or is not there."""
        return not (self.root.is_dir() and any(self.root.iterdir()))

    def save(self, folder: Path, but: Sequence[str]) -> None:
        """Copy the folder, except what is unfinished or named in ``but``."""
        if self.root.is_dir():
            shutil.copytree(self.root, folder, ignore=shutil.ignore_patterns("*#*", *but))

    def load(self, folder: Path) -> None:
        """Copy a folder into this one."""
        shutil.copytree(folder, self.root, dirs_exist_ok=True)

    def _log(self, table: str) -> Path:
        return self.root / table / LOG


#: Files that are named by their absolute paths.
DISK: Final = Folder(Path("/"))


def as_place(where: Place | Path) -> Place:
    """Return a place, or the folder that a path names."""
    return Folder(where) if isinstance(where, Path) else where


def entry_name(version: int) -> str:
    """Return the name of a log's entry."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """Return the name of the checkpoint of a version."""
    return f"{version:020d}.checkpoint.parquet"


def hinted_version(hint: bytes) -> int:
    """Return the version of the checkpoint that ``_last_checkpoint`` names.

    Raises:
        ValueError: it names none.
    """
    try:
        return int(json.loads(hint)["version"])
    except (KeyError, TypeError) as error:
        raise ValueError("the hint names no version") from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _entries(log: Path) -> list[Path]:
    return sorted(path for path in log.glob("*.json") if path.stem.isdigit())


def _is_whole(entry: Path, *, is_first: bool) -> bool:
    """Whether every line is an action. The first entry says what the table is; a later one may be empty, as after a
    power cut: it changes nothing."""
    try:
        actions = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines()]
    except ValueError:
        return False
    return not is_first or all(any(kind in action for action in actions) for kind in ("protocol", "metaData"))


def _hinted(log: Path, hint: Path) -> Path | None:
    """The checkpoint that a table begins with, if that is known."""
    try:
        return log / checkpoint_name(hinted_version(hint.read_bytes()))
    except ValueError:
        return None


def _is_readable(checkpoint: Path | None) -> bool:
    try:
        return checkpoint is not None and pq.read_metadata(checkpoint) is not None
    except (FileNotFoundError, pa.ArrowException):
        return False


def _set_aside(path: Path, why: str) -> str:
    path.rename(_aside(path))
    return f"{LOG}/{path.name} {why}"


def _aside(path: Path) -> Path:
    return path.with_name(path.name + _ASIDE)


def _leftovers(root: Path) -> Iterator[Path]:
    for path in root.rglob("*#*"):
        if path.name.rpartition("#")[2].isdigit() and path.is_file():
            yield path
