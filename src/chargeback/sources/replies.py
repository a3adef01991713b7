"""Responses of servers, and their classification."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from chargeback.errors import SourceError, SourceRejected, SourceUnavailable
from chargeback.model.money import parse_json
from chargeback.model.texts import replace_surrogates

_MAX_MESSAGE_LENGTH = 500
_MAX_CLOCK_SKEW = timedelta(days=1)
#: A surrogate, escaped or as (wrong) UTF-8; most bodies have none, and need not be searched.
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_TIMEOUT_OR_THROTTLE = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete response: its status, its headers (names in lower case), its decoded body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    _parsed: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def json(self) -> Any:
        """Return the body as JSON with exact decimals. It is parsed once; every call returns the same document. A lone
        surrogate, which no database accepts, is replaced by U+FFFD.

        Raises:
            SourceUnavailable: it is not JSON (a proxy's HTML page, a truncated body); another attempt may succeed.
        """
        if self._parsed:
            return self._parsed[0]
        try:
            document = parse_json(self.body)
            if _HALF_A_PAIR.search(self.body):
                document = replace_surrogates(document)
        except (ValueError, ArithmeticError, RecursionError):
            kind = self.headers.get("content-type", "no content type").split(";")[0]
            raise SourceUnavailable(f"the response is not complete JSON ({kind})") from None
        self._parsed.append(document)
        return document

    def explanation(self) -> str:
        """Return the provider's message about an error in one line, or the status if there is none.

        Shapes: ``{"errors": [{"title", "detail"}]}``, ``{"status", "error": {"code", "message"}}``,
        ``{"error_code"/"code", "message"}``, Prometheus' ``{"errorType", "error"}``.
        """
        message = ""
        try:
            message = _error_message(self.json())
        except SourceUnavailable:
            if "html" not in self.headers.get("content-type", "") and self.body.lstrip()[:1] != b"<":
                message = self.body[: _MAX_MESSAGE_LENGTH * 4].decode("utf-8", "replace")
        message = " ".join("".join(c if c.isprintable() else " " for c in message).split())[:_MAX_MESSAGE_LENGTH]
        return f"HTTP {self.status}: {message}" if message else f"HTTP {self.status}"

    def check_clock(self, now: datetime | None = None) -> None:
        """Check that the server's clock has about the same date: with a wrong clock, the wrong days would be gathered,
        or data deleted before the end of its retention. A response without a time passes.

        Raises:
            SourceRejected: its clock (``Date``, and ``Age`` of a cached response) and the host's are days apart.
        """
        now = now or datetime.now(UTC)
        try:
            date = parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError):
            return
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        date += timedelta(seconds=_seconds(self.headers.get("age")) or 0)
        if abs(date - now) > _MAX_CLOCK_SKEW:
            raise SourceRejected(
                f"its clock says {date:%Y-%m-%d %H:%M} UTC, this machine's {now:%Y-%m-%d %H:%M} UTC: set the clock"
            )

    def retry_after(self, now: datetime | None = None) -> float | None:
        """Return the seconds that the server asks to wait: ``Retry-After`` (seconds or an HTTP date) or
        ``X-RateLimit-Reset``, which is relative. Return None if there is no valid value."""
        asked = [_seconds(self.headers.get("x-ratelimit-reset")), _seconds(self.headers.get("ratelimit-reset"))]
        header = self.headers.get("retry-after")
        after = _seconds(header)
        if after is None and header:
            try:
                at = parsedate_to_datetime(header)
            except ValueError:
                at = None
            if at is not None:
                at = at if at.tzinfo else at.replace(tzinfo=UTC)
                after = max((at - (now or datetime.now(UTC))).total_seconds(), 0.0)
        if after is not None:
            return after
        return max((seconds for seconds in asked if seconds is not None), default=None)


#: Returns the error of a reply, or None; the client retries after a retryable error.
Classifier = Callable[[Reply], SourceError | None]


def classify_response(reply: Reply) -> SourceError | None:
    """Classify a response by its status: 2xx succeeds; 408, 425, 429 and 5xx may be retried; all else is rejected."""
    if 200 <= reply.status < 300:
        return None
    if reply.status in _TIMEOUT_OR_THROTTLE or reply.status >= 500:
        return SourceUnavailable(reply.explanation())
    return SourceRejected(reply.explanation(), status=reply.status)


def classify_json(reply: Reply) -> SourceError | None:
    """Classify as :func:`classify_response`; a body that is not JSON may be retried, too."""
    error = classify_response(reply)
    if error is None:
        try:
            reply.json()
        except SourceUnavailable as unreadable:
            return unreadable
    return error


def _error_message(document: Any) -> str:
    if not isinstance(document, dict):
        return document if isinstance(document, str) else ""
    errors = document.get("errors")
    if isinstance(errors, list) and errors:
        return "; ".join(_one(error) for error in errors[:3])
    error = document.get("error")
    if isinstance(error, dict):
        return _one(error)
    if isinstance(error, str):
        kind = document.get("errorType")
        return f"{kind}: {error}" if isinstance(kind, str) else error
    return _one(document)


def _one(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    parts = [error.get(key) for key in ("title", "detail", "message")]
    texts = list(dict.fromkeys(part for part in parts if isinstance(part, str) and part))
    return ": ".join(texts) or str(error.get("code") or "")


def _seconds(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*\d{1,9}(\.\d{1,9})?\s*", text):
        return None
    return float(text)
