"""How many runs may be under way at the same time."""

from __future__ import annotations

import threading


class RunSlots:
    """A fixed number of slots for runs; those that wait for one are counted. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._waiting

    def take(self) -> bool:
        """Wait for a place and take it; return False, without one, once the places were closed."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._free > 0 or self._closed)
            finally:
                self._waiting -= 1
            return self._take()

    def try_take(self) -> bool:
        """Take a place if one is free; return whether it was."""
        with self._changed:
            return self._take()

    def give_back(self) -> None:
        """Give a place back."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def close(self) -> None:
        """Give nobody a place any more; everyone who waits goes on without one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self) -> bool:
        if self._closed or self._free == 0:
            return False
        self._free -= 1
        return True
