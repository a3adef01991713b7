"""Durable writes, private folders, and explanations of missing file permissions."""

from __future__ import annotations

import os
import stat
from pathlib import Path


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
