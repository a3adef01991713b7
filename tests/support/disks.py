"""A small disk for a test, which can be filled, enlarged and made read-only.

It is a file system in memory, mounted in a separate mount namespace: only processes that are started ``within`` it see
it. Users other than root need permission to create user namespaces.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Disk:
    """A mounted disk. ``path`` is its path in processes that are started within it."""

    def __init__(self, path: Path, holder: int) -> None:
        self.path = path
        self._holder = holder

    @property
    def within(self) -> Sequence[str]:
        """Return the prefix of a command that uses the disk."""
        as_ourselves = [] if os.getuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self._holder), "--mount", *as_ourselves]

    @property
    def from_here(self) -> Path:
        """Return the disk's path in this process; libraries that resolve links fail with it."""
        return Path(f"/proc/{self._holder}/root{self.path}")

    def resize(self, kibibytes: int) -> None:
        """Make the disk smaller or larger; its files must fit."""
        self._remount(f"size={kibibytes}k").check_returncode()

    def make_read_only(self) -> bool:
        """Make the disk read-only; return whether that succeeded, which it does not while a process has a file open for
        writing."""
        return self._remount("ro").returncode == 0

    def make_writable(self) -> None:
        """Undo :meth:`make_read_only`."""
        self._remount("rw").check_returncode()

    def fill(self) -> Path:
        """Write a file until the disk is full; removing it frees the space."""
        junk = self.from_here / "junk"
        block = bytes(4096)
        with junk.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(block)
            except OSError:
                return junk

    def files(self) -> list[str]:
        """Return every file on the disk in order."""
        return sorted(str(path.relative_to(self.from_here)) for path in self.from_here.rglob("*") if path.is_file())

    def _remount(self, options: str) -> subprocess.CompletedProcess[bytes]:
        # With a named source, mount does not add the previous options, which contain ids that are unknown in the user
        # namespace.
        command = [*self.within, "mount", "-t", "tmpfs", "-o", f"remount,{options}", "none", str(self.path)]
        return subprocess.run(command, check=False, capture_output=True)


@contextmanager
def disk(path: Path, kibibytes: int) -> Iterator[Disk]:
    """Mount an empty disk of that size at a new folder for the length of the ``with``."""
    path.mkdir(parents=True)
    as_root = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    script = 'mount -t tmpfs -o "size=$1k" none "$0" && echo mounted && exec sleep infinity'
    holder = subprocess.Popen(
        ["unshare", *as_root, "--mount", "sh", "-c", script, str(path), str(kibibytes)], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mounted\n", "this user may not mount disks of its own"
        yield Disk(path, holder.pid)
    finally:
        holder.kill()
        holder.communicate()
