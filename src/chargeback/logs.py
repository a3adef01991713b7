"""Logging: one handler on standard error, as text or as JSON lines, with the context of the work.

Code uses :mod:`logging` as usual. Inside ``with log_context(tenant="acme"):`` every record carries the tenant; JSON
lines show it, and a format may use ``%(tenant)s``, ``%(run)s`` and ``%(date)s``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, TextIO

from chargeback.config.settings import JSON_FORMAT, LOG_CONTEXT, LoggingSettings

MASK = "********"

#: Libraries that log every step; unless the configuration names them, only their warnings and errors are shown.
QUIET = dict.fromkeys(("alembic", "distributed", "httpcore", "httpx", "uvicorn"), "WARNING")

# Masking a value of three letters would make messages unreadable and protect nothing.
_SHORTEST_SECRET = 4

#: How many lines a capture keeps at most, and how long one is.
_MAX_CAPTURED, _MAX_LINE = 1000, 2000

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
        self.mask(secrets)

    def mask(self, secrets: Iterable[str]) -> None:
        """Mask these secrets from now on, and no others."""
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        forms = known | {json.dumps(secret)[1:-1] for secret in known} | {repr(secret)[1:-1] for secret in known}
        self._secrets = sorted(forms, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        text = self._inner.format(record)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


#: Messages without what is around them.
_plain: Final = _Masking(logging.Formatter("%(message)s"), ())


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


class LogCapture(logging.Handler):
    """Keeps what is logged about one tenant within its ``with``, from level INFO on, until it is taken: with the same
    secrets masked as in the logs of the process, and as its level lets through. Thread-safe."""

    def __init__(self, tenant: str) -> None:
        super().__init__(logging.INFO)
        self._tenant = tenant
        self._lock = threading.Lock()
        self._lines: list[tuple[datetime, str, str]] = []
        self._count = 0

    def __enter__(self) -> LogCapture:
        logging.getLogger("chargeback").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("chargeback").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, unless it is about another tenant."""
        if _context.get().get("tenant", self._tenant) == self._tenant:
            self.note(_plain.format(record), record.levelname)

    def note(self, message: str, level: str = "INFO") -> None:
        """Keep a line that is not logged elsewhere."""
        with self._lock:
            self._count += 1
            if self._count > _MAX_CAPTURED:
                return
            last = self._count == _MAX_CAPTURED
            text = "There is more in the log of the service." if last else message[:_MAX_LINE]
            self._lines.append((datetime.now(UTC), level, text))

    def take(self) -> list[tuple[datetime, str, str]]:
        """Return the lines since the last call: (time, level, message)."""
        with self._lock:
            taken, self._lines = self._lines, []
        return taken


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
    _plain.mask(secrets)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for module, level in {**QUIET, **settings.per_module_levels}.items():
        logging.getLogger(module).setLevel(level)
    logging.captureWarnings(capture=True)
