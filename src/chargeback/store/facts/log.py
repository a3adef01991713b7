"""The logs of the fact tables on a disk that may lose power.

Delta's writer leaves it to the disk when an entry of the log is really there. A power cut in between would leave an
entry cut short or full of zeros, and with it a table that nobody can open. So entries are forced to the disk when they
are made, and one that was cut off is set aside: it belongs to a commit that nobody was told of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.disk import fsync

FOLDER: Final = "_delta_log"
#: What is set aside is a leftover, which upkeep removes.
_ASIDE: Final = "#1"
_LAST_CHECKPOINT: Final = "_last_checkpoint"


def has_log(table: Path) -> bool:
    """Whether there is a table below that folder."""
    return bool(_entries(table / FOLDER))


def newest_version(table: Path) -> int:
    """The version of the newest entry of a table's log; -1 where there is none."""
    entries = _entries(table / FOLDER)
    return int(entries[-1].stem) if entries else -1


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


def log_state(table: Path, version: int) -> LogState:
    """Return the state of a table's log for a reader that knows it up to ``version``.

    Versions are consecutive: there is something new only if there is a next entry, if the log was shortened up to a new
    checkpoint, or if the whole folder was exchanged.

    Raises:
        OSError: the log cannot be looked at.
    """
    log = table / FOLDER
    return LogState(_inode(log), _changed_at(log / _LAST_CHECKPOINT), _entry(log, version + 1).exists())


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


def flush_log(table: Path, after: int) -> None:
    """Flush the log entries after a version to the disk, with their checkpoints.

    Raises:
        OSError: the disk refuses.
    """
    log, version = table / FOLDER, after + 1
    while _entry(log, version).exists():
        fsync(_entry(log, version))
        checkpoint = _checkpoint(log, version)
        if checkpoint.exists():
            fsync(checkpoint)
            fsync(log / _LAST_CHECKPOINT)
        version += 1
    fsync(log)


def repair_log(table: Path) -> Iterator[str]:
    """Set aside what a power failure left at the end of a table's log; yield the name of each part. The caller holds
    the tenant's lease.

    Raises:
        OSError: the log cannot be read or changed.
    """
    log = table / FOLDER
    entries = _entries(log)
    if not entries:
        return
    if not _is_whole(entries[-1], is_first=len(entries) == 1):
        yield _set_aside(entries[-1], "is truncated")
    hint = log / _LAST_CHECKPOINT
    if hint.exists() and not _is_readable(checkpoint := _hinted(log, hint)):
        if checkpoint is not None and checkpoint.exists():
            checkpoint.rename(_aside(checkpoint))
        yield _set_aside(hint, "names a checkpoint that cannot be read: the entries before it are read instead")


def _entries(log: Path) -> list[Path]:
    return sorted(path for path in log.glob("*.json") if path.stem.isdigit())


def _entry(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


def _checkpoint(log: Path, version: int) -> Path:
    return log / f"{version:020d}.checkpoint.parquet"


def _is_whole(entry: Path, *, is_first: bool) -> bool:
    """Whether every line is an action. The first entry says what the table is; a later one may be empty, as after a
    power cut: it changes nothing."""
    try:
        actions = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines()]
    except ValueError:
        return False
    return not is_first or all(any(kind in action for action in actions) for kind in ("protocol", "metaData"))


def _hinted(log: Path, hint: Path) -> Path | None:
    """The checkpoint that a table begins with, if that can be told."""
    try:
        return _checkpoint(log, int(json.loads(hint.read_text(encoding="utf-8"))["version"]))
    except (ValueError, KeyError, TypeError):
        return None


def _is_readable(checkpoint: Path | None) -> bool:
    try:
        return checkpoint is not None and pq.read_metadata(checkpoint) is not None
    except (FileNotFoundError, pa.ArrowException):
        return False


def _set_aside(path: Path, why: str) -> str:
    path.rename(_aside(path))
    return f"{FOLDER}/{path.name} {why}"


def _aside(path: Path) -> Path:
    return path.with_name(path.name + _ASIDE)
