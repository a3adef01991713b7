"""A rate limit shared by all processes of the host.

The provider limits an organization as a whole, so all tenants of one organization, and runs in separate processes,
share the limit. The algorithm is GCRA: one number, the *theoretical arrival time* (TAT) of the next request, lies in a
small locked file.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from chargeback.errors import SourceUnavailable, Stopped

logger = logging.getLogger(__name__)

#: The longest wait that a file can cause: a longer one is outdated or an error.
_HORIZON_SECONDS = 3600.0
_LOCK_POLL_SECONDS = 0.01
_LOCK_SECONDS = 2.0


class RateLimiter:
    """At most ``rate`` requests per second in the long run, and at most ``burst`` at once, for all users of ``key``.

    ``key`` is hashed into the name of the file in ``state_dir``. Times are those of the host's monotonic clock,
    which processes share and which is never set back. A file that cannot be used (corrupt, from before a restart, on a
    full disk, a link) never stops the work: the limit then applies to this process alone.
    """

    def __init__(self, state_dir: str | Path, key: str, *, rate: float, burst: int) -> None:
        digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        self._path = Path(state_dir) / f"rate-{digest}.tat"
        self._interval = 1.0 / rate
        self._tolerance = self._interval * (burst - 1)
        self._own = 0.0
        self._complained = False

    def acquire(self, stop: Event, deadline: float) -> None:
        """Wait until a request is allowed.

        Raises:
            Stopped: ``stop`` was set meanwhile.
            SourceUnavailable: that is after ``deadline`` (of :func:`time.monotonic`).
        """
        while (delay := self.reserve()) > 0:
            if time.monotonic() + delay > deadline:
                raise SourceUnavailable(f"the provider's rate limit asks to wait {delay:.0f} s")
            if stop.wait(delay):
                raise Stopped("stopped while waiting for the rate limit")
        if stop.is_set():
            raise Stopped("stopped while waiting for the rate limit")

    def reserve(self) -> float:
        """Reserve a request and return 0.0 if it is allowed now, else return the seconds after which to try again."""

        def take(arrival: float, now: float) -> tuple[float, float]:
            delay = arrival - self._tolerance - now
            if delay > 0:
                return arrival, delay
            return max(arrival, now) + self._interval, 0.0

        return self._change(take)

    def block(self, seconds: float) -> None:
        """Allow no request within the next ``seconds``, and no burst after them, because the provider demanded it."""

        def push(arrival: float, now: float) -> tuple[float, float]:
            return max(arrival, now + min(seconds, _HORIZON_SECONDS) + self._tolerance), 0.0

        self._change(push)

    def _change(self, change: Callable[[float, float], tuple[float, float]]) -> float:
        """Replace the number by the first value that ``change(number, now)`` returns; return the second."""
        try:
            with self._locked() as file:
                now = time.monotonic()
                before = self._clamp(_read(file), now)
                after, answer = change(before, now)
                if after != before:
                    _write(file, after)
                self._own = after
                return answer
        except OSError as error:
            if not self._complained:
                logger.warning("the shared rate limit cannot be used (%s); it applies to this process only", error)
                self._complained = True
            now = time.monotonic()
            self._own, answer = change(self._clamp(self._own, now), now)
            return answer

    def _clamp(self, arrival: float, now: float) -> float:
        """Return the number, unless it is so far in the future that it must be corrupt or from before a restart of the
        host."""
        return arrival if 0 <= arrival <= now + _HORIZON_SECONDS + 2 * self._tolerance + self._interval else 0.0

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise PermissionError(f"{self._path} is not a regular private file")
            given_up = time.monotonic() + _LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > given_up:
                        raise TimeoutError("another process holds the lock for too long") from None
                    time.sleep(_LOCK_POLL_SECONDS)
            yield file
        finally:
            os.close(file)  # releases the lock


def _read(file: int) -> float:
    try:
        return float(os.pread(file, 64, 0).decode("ascii"))
    except ValueError:
        return 0.0  # new, or truncated by a crash


def _write(file: int, number: float) -> None:
    # Always of the same length, so that no digits of a former number remain.
    os.pwrite(file, f"{number:032.9f}\n".encode("ascii"), 0)
    os.ftruncate(file, 33)
