"""The disk that a tenant takes does not grow with the time that the service runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.disk import simulate


@pytest.mark.drill
def test_disk_use_is_flat(tmp_path: Path) -> None:
    """Once the oldest days go, a month more of daily runs, corrections and killed writers takes no more disk."""
    # A day is longer than its work takes on a busy machine: else files would be kept for fewer days, now and then.
    used = list(simulate(tmp_path, days=80, retention_days=30, seconds=2.0))
    settled, last = used[45:60], used[-15:]
    for what in ("facts", "files", "log_files", "folders"):
        before = max(getattr(use, what) for use in settled)
        assert max(getattr(use, what) for use in last) <= 1.25 * before, what
    assert last[-1].control < 6_000_000  # SQLite's write-ahead log grows up to four million bytes, and is used again
