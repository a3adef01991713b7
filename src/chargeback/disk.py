"""Durable writes, private folders, the limit of open files, explanations of missing file permissions, and paths as
users write them.

Paths are relative to a folder, may begin with ``~``, and are limited to the length that a file system accepts.
"""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

#: The limit of Linux, less room for the names of files created in a folder (bytes).
MAX_PATH_LENGTH = 3800
MAX_NAME_LENGTH = 255


def fsync(path: Path) -> None:
    """Flush a file, or a folder's entries, to the disk.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def part_of_open_files(parts: int, *, least: int, most: int) -> int:
    """Return one of equal ``parts`` of the files that the process may open, but between ``least`` and ``most``."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = most if files == resource.RLIM_INFINITY else files // parts
    return max(least, min(allowed, most))


def private_folder(path: Path) -> Path:
    """Create a folder that no other user can write to, or accept an existing one.

    Raises:
        PermissionError: it belongs to another user, or is a link.
        OSError: it cannot be created.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{path} is not a folder that belongs to this user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)
    return path


def explain_denial(path: Path, *, write: bool = True) -> str:
    """Explain which permission this process lacks to read ``path`` (and to write it), as an addition to a message.

    Return "; " and a sentence that names the file or folder that denies access, its owner and mode, the user and group
    of this process and what to do; return "" if permissions are not the cause. A path that does not exist is created in
    the nearest folder that does.
    """
    for place in (path, *path.parents):
        try:
            found = place.stat()
        except OSError:
            continue
        is_folder = stat.S_ISDIR(found.st_mode)
        if write and os.statvfs(place).f_flag & os.ST_RDONLY:
            return f"; {place} is on a read-only file system"
        mode = os.R_OK | (os.W_OK if write else 0) | (os.X_OK if is_folder else 0)
        if not os.access(place, mode, effective_ids=os.access in os.supports_effective_ids):
            user = f"{os.geteuid()}:{os.getegid()}"
            is_owner = found.st_uid == os.geteuid()
            remedy = f"`chmod u+rwX {place}`" if is_owner else f"run it as the owner, or `chown -R {user} {place}`"
            return (
                f"; {place} belongs to {found.st_uid}:{found.st_gid} (mode {stat.S_IMODE(found.st_mode):04o}) and this "
                f"process runs as {user} (user:group): {remedy}"
            )
        if is_folder:
            break
    return ""


def locate(written: str, folder: Path) -> Path:
    """Return the absolute path that ``written`` means in a file in ``folder``. Links are kept, ``..`` is resolved.

    Raises:
        ValueError: it cannot be a path; the message says why and does not show it.
    """
    if not written.strip() or "\0" in written:
        raise ValueError("should be a path")
    try:
        expanded = Path(written).expanduser()
    except RuntimeError:
        raise ValueError("begins with a home folder (~) that does not exist") from None
    path = Path(os.path.abspath(folder / expanded))  # noqa: PTH100 - links are kept, dots go
    try:
        sizes = [len(os.fsencode(part)) for part in path.parts]
    except UnicodeEncodeError:
        raise ValueError("has characters that no path can have") from None
    if max(sizes) > MAX_NAME_LENGTH or sum(sizes) + len(sizes) > MAX_PATH_LENGTH:
        raise ValueError(f"is too long: a name may have {MAX_NAME_LENGTH} bytes, a path {MAX_PATH_LENGTH:,}")
    return path
