"""What every commit to a Delta table carries, how often it is tried, and errors of the Delta library in our words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    stop_all,
    wait_random_exponential,
)

from chargeback.disk import explain_denial
from chargeback.errors import StorageBusy, StorageError

#: The application transaction under which a commit carries its writer's epoch.
LEASE: Final = "chargeback.lease"

#: So often a commit is tried, however long the first attempt took: that may be because the storage was away.
LEAST_ATTEMPTS: Final = 10

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def commit_properties(epoch: int) -> CommitProperties:
    """Return what every commit carries: the epoch of the lease under which it is made."""
    return CommitProperties(app_transactions=[Transaction(LEASE, epoch)])


def commit_attempts(seconds: float = 30) -> Retrying:
    """Return attempts at a commit while other writers are in the way: as many as fit into some seconds, and a few at
    least."""
    return Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        stop=stop_all(stop_after_delay(seconds), stop_after_attempt(LEAST_ATTEMPTS)),
        wait=wait_random_exponential(multiplier=0.02, max=1),
        reraise=True,
    )


class MissingBucket(OSError):
    """The bucket of the tables does not exist: no table is at fault."""


class translate_delta_errors:  # noqa: N801 - reads as a statement: `with naming(table)`
    """Translate errors of the Delta library into ours, with the table's name."""

    def __init__(self, table: str) -> None:
        self._table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, CommitFailedError):
            raise StorageBusy(f"other writers kept the table {self._table} busy: {_plain(error)}") from error
        if isinstance(error, MissingBucket):
            raise StorageError(str(error)) from error
        if isinstance(error, DeltaError | OSError | pa.ArrowException):
            place = error.filename if isinstance(error, PermissionError) else None
            why = explain_denial(Path(place)) if isinstance(place, str) else ""
            raise StorageError(f"the table {self._table} cannot be used: {_plain(error)}{why}") from error


def _plain(error: BaseException) -> str:
    """An error in one line; the Delta library draws its causes, in colours, below one another."""
    return " ".join(_COLOURS.sub("", str(error)).split())
