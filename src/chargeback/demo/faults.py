"""Faults that can be added to any path of the served organisation, and rate limits like the provider's.

The provider has a bucket for each credential, and says in headers with *relative* seconds when it is full again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PagingFault = Literal["endless", "duplicate"]
FaultKind = Literal["answer", "truncated", "html", "endless_paging", "duplicated_page", "slow_drip", "reset"]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        kind: ``answer`` sends ``status`` and ``body`` instead of the real response (with ``status`` None: only delays
            it); ``truncated`` cuts the real response in half but keeps it well-formed HTTP; ``html`` sends a proxy's
            page; ``endless_paging`` links every page to itself; ``duplicated_page`` repeats the previous page;
            ``slow_drip`` sends the real response in small pieces with ``delay`` seconds between them; ``reset`` resets
            the connection without a response.
        status: the status of the response; for ``html`` 502 by default.
        body: the body; None means the provider's error shape.
        times: how many requests it affects; None means all, until it is removed.
        skip: how many matching requests succeed before it begins.
        retry_after: seconds for the ``Retry-After`` header.
        delay: seconds to wait before the response.
    """

    kind: FaultKind = "answer"
    status: int | None = None
    body: str | None = None
    times: int | None = 1
    skip: int = 0
    retry_after: float | None = None
    delay: float = 0


@dataclass
class _Laid:
    prefix: str
    fault: Fault
    seen: int = 0
    hits: int = 0


class Faults:
    """The faults in force. May be changed from any thread while the server runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._laid: list[_Laid] = []

    def add(self, path_prefix: str, fault: Fault) -> None:
        """Add ``fault`` to all paths that begin with ``path_prefix``; the oldest that still applies is used."""
        with self._lock:
            self._laid.append(_Laid(path_prefix, fault))

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._laid.clear()

    def hits(self, path_prefix: str) -> int:
        """Return how many requests the faults of exactly this prefix have affected."""
        with self._lock:
            return sum(laid.hits for laid in self._laid if laid.prefix == path_prefix)

    def take(self, path: str) -> Fault | None:
        """Return the fault for this request, and count it."""
        with self._lock:
            for laid in self._laid:
                fault = laid.fault
                if not path.startswith(laid.prefix) or (fault.times is not None and laid.hits >= fault.times):
                    continue
                laid.seen += 1
                if laid.seen > fault.skip:
                    laid.hits += 1
                    return fault
        return None


@dataclass
class _Bucket:
    tokens: float
    at: float


class CredentialLimiter:
    """Allows ``burst`` requests at once and ``per_second`` after that, for each credential."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._rate = per_second
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, credential: str) -> tuple[bool, dict[str, str]]:
        """Return whether a request may pass, and the rate limit headers; ``Retry-After`` only if it may not."""
        now = self._clock()
        bucket = self._buckets.setdefault(credential, _Bucket(float(self._burst), now))
        bucket.tokens = min(float(self._burst), bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        passes = bucket.tokens >= 1
        if passes:
            bucket.tokens -= 1
        full_in = (self._burst - bucket.tokens) / self._rate
        headers = {
            "X-RateLimit-Limit": str(self._burst),
            "X-RateLimit-Remaining": str(int(bucket.tokens)),
            "X-RateLimit-Reset": str(math.ceil(full_in)),
        }
        if not passes:
            headers["Retry-After"] = str(max(1, math.ceil((1 - bucket.tokens) / self._rate)))
        return passes, headers
