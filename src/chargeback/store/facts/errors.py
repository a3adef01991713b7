"""Errors of the disk, of object storage and of Arrow in our words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pyarrow as pa

from chargeback.disk import explain_denial
from chargeback.errors import StorageError

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


class MissingBucket(OSError):
    """The bucket of the tables does not exist: no table is at fault."""


class translate_file_errors:  # noqa: N801 - reads as a statement: `with translate_file_errors(table)`
    """Translate errors about files of a table into ours, with the table's name."""

    def __init__(self, table: str) -> None:
        self._table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MissingBucket):
            raise StorageError(str(error)) from error
        if isinstance(error, OSError | pa.ArrowException):
            place = error.filename if isinstance(error, PermissionError) else None
            why = explain_denial(Path(place)) if isinstance(place, str) else ""
            raise StorageError(f"the table {self._table} cannot be used: {in_one_line(error)}{why}") from error


def in_one_line(error: BaseException) -> str:
    """Return an error in one line; some libraries draw its causes, in colours, below one another."""
    return " ".join(_COLOURS.sub("", str(error)).split())
