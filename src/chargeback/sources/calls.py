"""Counts of this process's calls by source and result, for the metrics of the service."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

#: The result of a call without a response.
NO_ANSWER: Final = "none"

#: (source, HTTP status as text or :data:`NO_ANSWER`) → how many calls.
Calls = Mapping[tuple[str, str], int]


class CallCounter:
    """Counts calls. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, source: str, status: str) -> None:
        """Count one call; redirects and retries are separate calls."""
        with self._lock:
            self._counts[source, status] += 1

    def read(self) -> Calls:
        """Return all counts."""
        with self._lock:
            return dict(self._counts)


#: The calls of this process. Each run is a separate process, so there they are the calls of the run.
CALLS: Final = CallCounter()
