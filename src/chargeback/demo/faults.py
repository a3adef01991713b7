"""Faults that can be added to any path of the served organisation, for tests and drills."""

from __future__ import annotations

import threading
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
