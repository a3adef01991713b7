"""What is asked of a server, and within which limits; :mod:`.http` asks it.

Clients import that module with their first connection: its library imports Rich, for a command line of its own, and a
service that only answers has no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from chargeback.sources.rate_limit import RateLimiter
from chargeback.sources.replies import Classifier, classify_json

#: The status of a response to credentials that the server does not accept.
WRONG_CREDENTIALS: Final = 401


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time, attempts and size.

    ``attempts`` limits the attempts that fail for other reasons than throttling; ``deadline_seconds`` limits all
    attempts together, including waits. ``exchange_seconds`` is for one request and its whole response,
    ``silence_seconds`` for the time without any data. ``largest_body`` limits the decompressed response in bytes: its
    JSON takes up to thirty times as much memory.
    """

    attempts: int = 6
    deadline_seconds: float = 600
    exchange_seconds: float = 180
    silence_seconds: float = 90
    connect_seconds: float = 10
    first_backoff_seconds: float = 0.5
    longest_backoff_seconds: float = 30
    largest_body: int = 32 * 1024 * 1024
    connections: int = 16


#: For a request for which a person waits: one attempt with short timeouts.
INTERACTIVE_LIMITS: Final = Limits(
    attempts=1, deadline_seconds=20, exchange_seconds=15, silence_seconds=10, connect_seconds=5
)


@dataclass(frozen=True, slots=True)
class Call:
    """One request: a GET of ``path`` with ``params``, or a POST of ``form``.

    ``path`` is appended to the client's base address.
    """

    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] | None = None
    classify: Classifier = classify_json
    limiter: RateLimiter | None = None

    @property
    def method(self) -> str:
        """POST if there is a form, else GET."""
        return "GET" if self.form is None else "POST"
