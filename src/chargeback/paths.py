"""Paths as users write them: relative to a folder, with ``~``, and limited to the length that a file system accepts."""

from __future__ import annotations

import os
from pathlib import Path

#: The limit of Linux, less room for the names of files created in a folder (bytes).
MAX_PATH_LENGTH = 3800
MAX_NAME_LENGTH = 255


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
