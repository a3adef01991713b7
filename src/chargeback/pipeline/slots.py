"""The limit of concurrent runs."""

from __future__ import annotations

import threading


class RunSlots:
    """A fixed number of slots for runs, with a count of waiting runs. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Return how many runs wait for a slot."""
        return self._waiting

    def take(self) -> bool:
        """Wait for a slot and take it; return False if the slots were closed."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._free > 0 or self._closed)
            finally:
                self._waiting -= 1
            return self._take()

    def try_take(self) -> bool:
        """Take a slot if one is free; return whether it was."""
        with self._changed:
            return self._take()

    def give_back(self) -> None:
        """Release a slot."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def close(self) -> None:
        """Close the slots; all waiting calls return without one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self) -> bool:
        if self._closed or self._free == 0:
            return False
        self._free -= 1
        return True
