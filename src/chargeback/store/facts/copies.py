"""Copies of data files on this machine, for queries over facts that are in object storage.

A data file never changes and its name has its digest, so a copy is right or damaged, never stale. All processes of a
machine share the folder::

    kept/<place>/<table>/date=…/<file>            what is kept, up to a number of bytes: the longest unused go first
    in-use/<process>/<place>/<table>/date=…/<file>   what questions of one process read now

The second is a hard link of the first. So a file can leave what is kept while a reader has it open, and one for which
there is no room is read without being kept. What a killed process has left in use is removed by the next that fetches.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from chargeback.disk import private_folder
from chargeback.store.facts.files import DayFile, digest_in_name, read_content
from chargeback.store.facts.places import side_by_side

log = logging.getLogger(__name__)

_KEPT, _IN_USE, _LOCK = "kept", "in-use", "lock"
# So much of the room stays free after files were removed, so that it is not looked for with each new one.
_SPARE: Final = 10
# How much of the free room a process fills before it counts again what all of them have kept.
_SHARE: Final = 8


def _go_on() -> None:
    """Check nothing."""


class Copies:
    """The copies in one folder. Safe for use by several threads and processes.

    Args:
        folder: on a local disk; it is made if it is not there.
        max_bytes: how many bytes are kept at most; what is in use is not counted.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder: Final = folder
        self.max_bytes: Final = max_bytes
        self._mutex = threading.Lock()
        self._fetching = [threading.Lock() for _ in range(64)]
        self._users: Counter[str] = Counter()
        self._mine: Path | None = None
        self._allowance = 0

    def folder_of(self, place: str) -> Path:
        """Return the folder in which the kept copies of a place are: each under its path in the place."""
        return self.folder / _KEPT / hashlib.sha256(place.encode()).hexdigest()[:16]

    @contextmanager
    def lent(self, files: Sequence[DayFile], check: Callable[[], None] = _go_on) -> Iterator[list[str]]:
        """Yield where copies of some files are, which stay for the length of the ``with``; those that are not there are
        fetched, and compared with their size and digest. ``check`` is called before each of them, and may raise.

        Raises:
            DamagedFacts: a file is missing in its place, or not what was written.
            OSError: a file cannot be fetched, for a reason that may pass.
        """
        names = [str(Path(file.path).relative_to(self.folder / _KEPT)) for file in files]
        mine = self._own_folder()
        with self._mutex:
            self._users.update(names)
        try:
            missing = [
                (name, file) for name, file in zip(names, files, strict=True) if not self._is_there(mine, name, file)
            ]
            side_by_side(lambda each: self._fetch(mine, *each, check), missing)
            yield [f"{mine}/{name}" for name in names]
        finally:
            self._release(mine, names)

    def discard_damaged(self, files: Sequence[DayFile]) -> None:
        """Remove those copies of some files that are not what was written: they are fetched again when needed."""
        for file in files:
            digest = digest_in_name(file.path)
            with suppress(OSError):
                content = Path(file.path).read_bytes()
                if digest and not hashlib.sha256(content).hexdigest().startswith(digest):
                    log.warning("the copy %s is damaged and is fetched again", file.path)
                    Path(file.path).unlink()

    def _release(self, mine: Path, names: Sequence[str]) -> None:
        with self._mutex:
            for name in names:
                self._users[name] -= 1
                if not self._users[name]:
                    del self._users[name]
                    with suppress(OSError):
                        (mine / name).unlink()

    def _is_there(self, mine: Path, name: str, file: DayFile) -> bool:
        """Return whether a file is in use; a kept one is put in use."""
        kept, used = Path(file.path), mine / name
        try:
            _link(kept, used)
        except FileNotFoundError:
            return used.exists()
        if file.size and used.stat().st_size != file.size:
            for each in (used, kept):
                each.unlink(missing_ok=True)
            return False
        with suppress(OSError):  # removed a moment ago; the time of the content is what readers compare
            os.utime(kept, ns=(time.time_ns(), kept.stat().st_mtime_ns))
        return True

    def _fetch(self, mine: Path, name: str, file: DayFile, check: Callable[[], None]) -> None:
        """Bring one file into use, and keep it where there is room."""
        with self._fetching[hash(name) % len(self._fetching)]:
            check()
            if self._is_there(mine, name, file):
                return
            content = read_content(file)
            used = mine / name
            unfinished = used.with_name(f"{used.name}#1")
            used.parent.mkdir(parents=True, exist_ok=True)
            try:
                unfinished.write_bytes(content)
                unfinished.rename(used)
            except OSError:
                unfinished.unlink(missing_ok=True)
                raise
            self._keep(used, Path(file.path), len(content))

    def _keep(self, used: Path, kept: Path, size: int) -> None:
        """Keep a file that is in use, if there is room for it; the least recently used ones are removed to make room.

        The file is kept before the mutex, or the lock, is released, so that the next count includes it."""
        try:
            with self._mutex:
                if size <= self._allowance:
                    self._allowance -= size
                    _link(used, kept)
                elif size <= self.max_bytes:
                    with self._locked():
                        self._remove_left_in_use()
                        room = self.max_bytes - self._shrunk(self.max_bytes - size)
                        self._allowance = max(room // _SHARE - size, 0)
                        if size <= room:
                            _link(used, kept)
        except OSError as error:
            log.info("the copy %s is not kept: %s", kept, error)

    def _shrunk(self, most: int) -> int:
        """Remove the copies that were not used for the longest time, if there are more than ``most`` bytes; return how
        many bytes are left."""
        found = sorted(_kept_files(self.folder / _KEPT))
        total = sum(size for _, size, _ in found)
        if total <= most:
            return total
        wanted = min(most, self.max_bytes - self.max_bytes // _SPARE)
        for _, size, path in found:
            if total <= wanted:
                break
            with suppress(OSError):
                Path(path).unlink()
                total -= size
                Path(path).parent.rmdir()  # the folder of a day, unless there is more in it
        return total

    def _own_folder(self) -> Path:
        """The folder of what this process has in use, locked as long as it lives."""
        with self._mutex:
            if self._mine is None:
                private_folder(self.folder)
                with self._locked():
                    mine = self.folder / _IN_USE / f"{os.getpid()}-{uuid.uuid4().hex}"
                    mine.mkdir(parents=True)
                    lock = os.open(mine / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
                    fcntl.flock(lock, fcntl.LOCK_EX)
                self._mine = mine
                weakref.finalize(self, _leave, mine, lock)
            return self._mine

    def _remove_left_in_use(self) -> None:
        """Remove what processes had in use that live no more."""
        for folder in (self.folder / _IN_USE).iterdir():
            with suppress(OSError):
                lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(lock)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from removing anything."""
        with (self.folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@cache
def copies_in(folder: Path, max_bytes: int) -> Copies:
    """Return the copies in a folder; there is one object of them in a process."""
    return Copies(folder, max_bytes)


def _leave(mine: Path, lock: int) -> None:
    shutil.rmtree(mine, ignore_errors=True)
    os.close(lock)


def _link(source: Path, target: Path) -> None:
    """Make a file known under another name, too, if it is not already.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with suppress(FileExistsError):
        try:
            os.link(source, target)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)


def _kept_files(folder: Path) -> Iterator[tuple[int, int, str]]:
    """Yield when each copy was last used, its size and its path. Folders that begin with a dot hold other things."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        yield from _kept_files(Path(entry.path))
                else:
                    found = entry.stat(follow_symlinks=False)
                    yield found.st_atime_ns, found.st_size, entry.path
    except FileNotFoundError:
        return
