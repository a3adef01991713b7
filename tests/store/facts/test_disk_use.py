"""The disk use of a tenant does not grow with the running time of the service."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.disk import simulate


@pytest.mark.drill
@pytest.mark.timeout(1800)
def test_disk_use_is_flat(tmp_path: Path) -> None:
    """Once the oldest days go, another month of daily runs, corrections and killed writers needs no more disk."""
    used = list(simulate(tmp_path, days=80, retention_days=30, seconds=2.0))
    settled, last = used[45:60], used[-15:]
    for what, taken in {
        "bytes": lambda use: use.facts,
        "files of rows": lambda use: use.files - use.log_files,
        # On a busy machine days take longer, and logs are kept for fewer of them.
        "files of logs for each day": lambda use: use.log_files / use.log_days,
        "folders": lambda use: use.folders,
    }.items():
        assert max(map(taken, last)) <= 1.25 * max(map(taken, settled)), what
    assert last[-1].control < 6_000_000  # SQLite's write-ahead log grows up to four million bytes, and is then reused
