"""Logging: one handler on standard error, as text or as JSON lines, that knows what the work is about.

Code logs with :mod:`logging` as usual. Inside ``with log_context(tenant="acme"):`` every record carries the tenant;
JSON lines show it, and a format may ask for ``%(tenant)s``, ``%(run)s`` and ``%(date)s``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

from chargeback.config.settings import JSON_FORMAT, LOG_CONTEXT, LoggingSettings

MASK = "********"

#: Libraries that tell every step they take; unless the configuration names them, only what they warn of is shown.
QUIET = dict.fromkeys(("alembic", "httpcore", "httpx", "uvicorn"), "WARNING")

# Hiding a value of three letters would hide half of every sentence, and protect nobody.
_SHORTEST_SECRET = 4

_context: ContextVar[dict[str, str]] = ContextVar("log_context", default={})  # noqa: B039 - replaced, never changed


@contextmanager
def log_context(**about: object) -> Iterator[None]:
    """Says what the work inside the ``with`` is about: ``tenant``, ``run``, ``date``."""
    token = _context.set(_context.get() | {name: str(value) for name, value in about.items()})
    try:
        yield
    finally:
        _context.reset(token)


class _AboutFilter(logging.Filter):
    """Gives every record the three attributes of its context; what a call gave as ``extra`` comes first, and what
    holds for the whole process last."""

    def __init__(self, of_process: Mapping[str, str]) -> None:
        super().__init__()
        self._of_process = of_process

    def filter(self, record: logging.LogRecord) -> bool:
        about = {**self._of_process, **_context.get()}
        for name in LOG_CONTEXT:
            if not hasattr(record, name):
                setattr(record, name, about.get(name, ""))
        return True


class _Masking(logging.Formatter):
    """Hides the known secrets in whatever another formatter wrote.

    No message is meant to contain one; this is the second line of defence, for what a library might say.
    """

    def __init__(self, inner: logging.Formatter, secrets: Iterable[str]) -> None:
        super().__init__()
        self._inner = inner
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        spelt = known | {json.dumps(secret)[1:-1] for secret in known} | {repr(secret)[1:-1] for secret in known}
        self._secrets = sorted(spelt, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        text = self._inner.format(record)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``logger``, ``message``, and where known ``tenant``, ``run``,
    ``date``, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: str(value) for name in LOG_CONTEXT if (value := getattr(record, name, ""))}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what is standard error at the time, so that a progress display can keep its lines below the logs."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


def configure_logging(
    settings: LoggingSettings, secrets: Iterable[str] = (), about: Mapping[str, object] | None = None
) -> None:
    """Sends the logs of this process to standard error as ``settings`` say, with ``secrets`` hidden.

    ``about`` is what everything in this process is about, whichever thread it happens in. Replaces what was configured
    before, so it may be called again. Call it once in every process.
    """
    inner = JsonFormatter() if settings.format == JSON_FORMAT else logging.Formatter(settings.format)
    handler = _StandardError(sys.stderr)
    handler.addFilter(_AboutFilter({name: str(value) for name, value in (about or {}).items()}))
    handler.setFormatter(_Masking(inner, secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for module, level in {**QUIET, **settings.per_module_levels}.items():
        logging.getLogger(module).setLevel(level)
    logging.captureWarnings(capture=True)
