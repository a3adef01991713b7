"""How often this process has asked whom, and how that ended: for the metrics of the service."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

#: How a call ended that was never answered.
NO_ANSWER: Final = "none"

#: (source, HTTP status as text or :data:`NO_ANSWER`) → how many calls.
Calls = Mapping[tuple[str, str], int]


class CallCounter:
    """Counts calls. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, source: str, status: str) -> None:
        """One more call: redirects and repetitions are calls of their own."""
        with self._lock:
            self._counts[source, status] += 1

    def read(self) -> Calls:
        """All calls so far."""
        with self._lock:
            return dict(self._counts)


#: The calls of this process. A run is a process of its own, so in it they are those of the run.
CALLS: Final = CallCounter()
