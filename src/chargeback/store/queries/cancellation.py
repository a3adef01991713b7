"""Cancellation of queries that run in other threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection

from chargeback.errors import QueryTimeout


class CancellationToken:
    """Cancels the queries of one request or use case, which run in another thread.

    An interrupt is lost on a cursor that is just not executing: repeat :meth:`cancel` until that thread has ended.

    A request either times out or changes something, never both: :meth:`expire` and :meth:`begin_commit` exclude each
    other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._is_committing = False
        self._interrupts: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the token was cancelled."""
        return self._cancelled

    def cancel(self) -> None:
        """Interrupt what runs, and let nothing begin any more. May block for a moment."""
        with self._lock:
            self._cancelled = True
            interrupts = list(self._interrupts)
        for interrupt in interrupts:
            interrupt()

    def expire(self) -> bool:
        """Cancel the token unless a commit has begun; return whether it is cancelled. Does not block."""
        with self._lock:
            self._cancelled = self._cancelled or not self._is_committing
            return self._cancelled

    def begin_commit(self) -> None:
        """Begin to make a change permanent. From now on, the token does not expire.

        Raises:
            QueryTimeout: the token was cancelled; the change must be rolled back.
        """
        with self._lock:
            self.check()
            self._is_committing = True

    def check(self) -> None:
        """Return if the token is not cancelled.

        Raises:
            QueryTimeout: the token was cancelled.
        """
        if self._cancelled:
            raise QueryTimeout("the query was cancelled")

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Let :meth:`cancel` call ``interrupt`` for the length of the ``with``."""
        with self._lock:
            self._interrupts.append(interrupt)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)


def interruptible(token: CancellationToken, connection: Connection) -> AbstractContextManager[None]:
    """Let the token interrupt what runs on a connection to a control database, for the length of the ``with``."""
    driver: Any = connection.connection.dbapi_connection
    return token.interruptible(driver.interrupt)
