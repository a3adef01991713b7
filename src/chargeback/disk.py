"""What must survive a loss of power."""

from __future__ import annotations

import os
from pathlib import Path


def force(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the disk.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
