"""Batches of days: what a stage has prepared is committed for several days at once.

A commit takes long for what it does: some milliseconds on a local disk, half a second on an object store. A process
that dies leaves the days of a batch as they were before it, and the next run prepares them again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Generic, TypeVar

from chargeback.errors import ChargebackError, StorageError

log = logging.getLogger(__name__)

#: A batch is committed when it has so many days or rows, or when its first day has waited for so many seconds.
MAX_DAYS: Final = 16
MAX_ROWS: Final = 1_000_000
MAX_SECONDS: Final = 2.0

T = TypeVar("T")


class Batch(Generic[T]):
    """Collects prepared days and hands them to ``commit``, which is never called without any.

    A context manager: its end commits the last days, also if the stage is stopped or ends with an error, unless the
    storage is the problem.
    """

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._days: list[T] = []
        self._rows = 0
        self._since = 0.0

    def __enter__(self) -> Batch[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        elif isinstance(error, Exception) and not isinstance(error, StorageError):
            try:
                self.commit()
            except ChargebackError as another:
                log.warning("the last days of the stage could not be stored: %s", another)

    @property
    def seconds_left(self) -> float | None:
        """How long the batch may still wait for another day; None if it is empty."""
        return max(0.0, self._since + MAX_SECONDS - time.monotonic()) if self._days else None

    def add(self, day: T, rows: int) -> None:
        """Add a day that has so many rows; commit the batch if it is full."""
        if not self._days:
            self._since = time.monotonic()
        self._days.append(day)
        self._rows += rows
        if len(self._days) >= MAX_DAYS or self._rows >= MAX_ROWS or self.seconds_left == 0:
            self.commit()

    def commit(self) -> None:
        """Commit the days that were added. Those of a commit that fails are not tried again."""
        days, self._days, self._rows = self._days, [], 0
        if days:
            self._commit(days)
