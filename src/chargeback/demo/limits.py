"""Rate limits like the provider's: a bucket for each credential, headers with *relative* seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Bucket:
    tokens: float
    at: float


class RateLimiter:
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
