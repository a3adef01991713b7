"""Logging: one handler on standard error, as text or as JSON lines, with the context of the work.

Code uses :mod:`logging` as usual. Inside ``with log_context(tenant="acme"):`` every record carries the tenant; JSON
lines show it, and a format may use ``%(tenant)s``, ``%(run)s`` and ``%(date)s``.
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

#: Libraries that log every step; unless the configuration names them, only their warnings and errors are shown.
QUIET = dict.fromkeys(("alembic", "distributed", "httpcore", "httpx", "uvicorn"), "WARNING")

# Masking a value of three letters would make messages unreadable and protect nothing.
_SHORTEST_SECRET = 4

_context: ContextVar[dict[str, str]] = ContextVar("log_context", default={})  # noqa: B039 - replaced, never changed


@contextmanager
def log_context(**about: object) -> Iterator[None]:
    """Set the context of the work inside the ``with``: ``tenant``, ``run``, ``date``."""
    token = _context.set(_context.get() | {name: str(value) for name, value in about.items()})
    try:
        yield
    finally:
        _context.reset(token)


class _AboutFilter(logging.Filter):
    """Adds the three attributes of the context to every record. The ``extra`` of a call takes precedence, and the
    context of the process comes last."""

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
    """Masks the known secrets in the output of another formatter.

    No message should contain one; this is a second protection, against messages of libraries.
    """

    def __init__(self, inner: logging.Formatter, secrets: Iterable[str]) -> None:
        super().__init__()
        self._inner = inner
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        forms = known | {json.dumps(secret)[1:-1] for secret in known} | {repr(secret)[1:-1] for secret in known}
        self._secrets = sorted(forms, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        text = self._inner.format(record)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``time`` (UTC), ``level``, ``logger``, ``message``, and if known ``tenant``, ``run``,
    ``date``, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
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
    """Writes to the current standard error, so that a progress display can stay below the logs."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


def configure_logging(
    settings: LoggingSettings, secrets: Iterable[str] = (), about: Mapping[str, object] | None = None
) -> None:
    """Send the logs of this process to standard error as ``settings`` say, with ``secrets`` masked.

    ``about`` is the context of all threads of this process. Call this once in every process; a later call replaces the
    configuration.
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
