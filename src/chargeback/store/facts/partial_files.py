"""Partial aggregates on disk: the sums of data files by some columns, those of a week in one file.

They are a cache: the whole folder may be deleted at any time. A data file never changes and its name has its digest; a
partial file records the digests of the data files that it sums, so that it is never used for others. Nothing has to be
invalidated, fenced or repaired. A partial file has its own digest in its name; a damaged one is deleted and made again.
One file for each day would be simpler, but opening a file takes longer than adding up what is in it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.model.days import week_of
from chargeback.store.facts.files import DayFile, digest_in_name
from chargeback.store.facts.places import Place, as_place

log = logging.getLogger(__name__)

#: The folder, next to the tables, that holds all of them.
PARTIALS: Final = ".partials"
ONE_WEEK: Final = timedelta(days=7)

_SUFFIX: Final = ".parquet"
_SOURCES: Final = b"chargeback.sources"
_UNFINISHED: Final = "#1"
_UNFINISHED_SECONDS: Final = 3600
_DIGITS: Final = 32
# After a failed write (no permission, no space) this process does not try again for so long.
_PAUSE_SECONDS: Final = 300.0


@dataclass(frozen=True)
class PartialFile:
    """A partial file: where it lies, the digest of the data file that each of its days was summed from, how many sums
    it has."""

    path: str
    sources: Mapping[date, str]
    rows: int


class PartialFiles:
    """The partial files of one tenant. Safe for use by several threads and processes.

    Nothing here raises for the disk's sake: what cannot be read is missing, what cannot be written is not kept.
    """

    def __init__(self, place: Place | Path) -> None:
        self._place = as_place(place)
        self._root = self._place.root / PARTIALS
        self._paused_until = 0.0

    def read_only(self) -> PartialFiles:
        """Return the same partial files, read only."""
        files = PartialFiles(self._place)
        files._paused_until = math.inf
        return files

    @property
    def is_writable(self) -> bool:
        """Whether it is worth making one: False for some minutes after one could not be written."""
        return time.monotonic() >= self._paused_until

    def by_week(self, table: str, kind: str, weeks: Collection[date]) -> dict[date, list[PartialFile]]:
        """Return the intact partial files of a kind by week, those that sum the most days first."""
        folder = self._root / table / kind
        wanted = {week.isoformat(): week for week in weeks}
        found: dict[date, list[PartialFile]] = {}
        for name in _listed(folder):
            week = wanted.get(name[:10])
            if week is None or not name.endswith(_SUFFIX):
                continue
            path = f"{folder}/{name}"
            file = _intact(path)
            if file is None:
                with suppress(OSError):
                    Path(path).unlink()
            else:
                found.setdefault(week, []).append(file)
        for files in found.values():
            files.sort(key=lambda file: (-len(file.sources), file.path))
        return found

    def write(
        self, table: str, kind: str, week: date, rows: pa.Table, sources: Mapping[date, str]
    ) -> PartialFile | None:
        """Keep ``rows`` as the partial file of a week in the place of those that are there; None if that failed."""
        if not self.is_writable:
            return None
        content = _encoded(rows, sources)
        folder = self._root / table / kind
        path = folder / f"{week}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}{_SUFFIX}"
        unfinished = folder / f"{uuid.uuid4()}{_SUFFIX}{_UNFINISHED}"
        replaced = [name for name in _listed(folder) if name.startswith(f"{week}-") and name != path.name]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(content)
            unfinished.rename(path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            log.info("partial aggregates cannot be kept, queries read the rows instead: %s", error)
            return None
        for name in replaced:
            with suppress(OSError):
                (folder / name).unlink()
        return PartialFile(str(path), sources, rows.num_rows)

    def clean(self, kinds: Mapping[str, Collection[str]], kept: Mapping[str, Collection[str]]) -> int:
        """Delete what sums a data file that is not ``kept`` (table → paths), is of no known kind (table → kinds), or
        was never finished; return how many files that were."""
        removed = 0
        for folder in (kind for table in _folders(self._root) for kind in _folders(table)):
            table = folder.parent.name
            digests = _data_digests(kept.get(table, ())) if folder.name in kinds.get(table, ()) else frozenset()
            for name in _listed(folder):
                with suppress(OSError):
                    if _is_superfluous(folder / name, digests):
                        (folder / name).unlink()
                        removed += 1
            with suppress(OSError):  # not empty
                folder.rmdir()
        return removed


def by_week(files: Sequence[DayFile]) -> dict[date, list[DayFile]]:
    """Return the files of days by the week they lie in."""
    weeks: dict[date, list[DayFile]] = {}
    for file in files:
        if file.day is not None and file.rows:
            weeks.setdefault(week_of(file.day).start, []).append(file)
    return weeks


def sources_of(files: Sequence[DayFile]) -> dict[date, str] | None:
    """Return the digest of each day's file; None if a day has several, or a file none: then their sums cannot be
    kept."""
    digests: dict[date, str] = {}
    for file in files:
        digest = digest_in_name(file.path)
        if digest is None or file.day is None or file.day in digests:
            return None
        digests[file.day] = digest
    return digests


def _encoded(rows: pa.Table, sources: Mapping[date, str]) -> bytes:
    """The content of a partial file."""
    recorded = json.dumps({day.isoformat(): digest for day, digest in sorted(sources.items())})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, compression="zstd", compression_level=1, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({_SOURCES: recorded.encode()})
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _intact(path: str) -> PartialFile | None:
    """The partial file at ``path``; None if it is missing or damaged. It is read once as long as the file system shows
    no change of it."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return _read(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=2**14)
def _read(path: str, _inode: int, _size: int, _modified: int) -> PartialFile | None:
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    if not path.endswith(f"-{hashlib.sha256(content).hexdigest()[:_DIGITS]}{_SUFFIX}"):
        return None
    footer = pq.read_metadata(pa.BufferReader(content))
    sources = {date.fromisoformat(day): digest for day, digest in json.loads(footer.metadata[_SOURCES]).items()}
    return PartialFile(path, sources, footer.num_rows)


def _is_superfluous(path: Path, digests: frozenset[str]) -> bool:
    if path.name.endswith(_UNFINISHED):
        return path.stat().st_mtime < time.time() - _UNFINISHED_SECONDS
    file = _intact(str(path))
    return file is None or not digests.issuperset(file.sources.values())


def _data_digests(paths: Iterable[str]) -> frozenset[str]:
    """The digests of data files."""
    digests = (digest_in_name(path) for path in paths)
    return frozenset(digest for digest in digests if digest)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - for every query: pathlib would make objects of all names
    except OSError:
        return []


def _folders(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _listed(folder) if (folder / name).is_dir())
