"""Atomic writes of files, and file names that cannot leave their folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from glob import escape
from pathlib import Path
from string import Formatter
from urllib.parse import quote

from chargeback.disk import explain_denial, fsync
from chargeback.errors import EmitterError

_TEMPORARY = ".chargeback-"


def write_whole(path: Path, pieces: Iterable[bytes | memoryview], check: Callable[[], None]) -> None:
    """Replace the content of the file by ``pieces`` atomically: a reader finds the old content or the new one. Missing
    folders are created. ``check`` is called before each piece and before the end; if it raises, the old file remains.

    Raises:
        EmitterError: the file cannot be written; the message names it.
    """
    # In the folder of the file, because a rename is atomic only within one file system.
    suffix = f"-{path.name[-150:]}"
    temporary = path.parent / f"{_TEMPORARY}{os.getpid()}{suffix}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for abandoned in path.parent.glob(f"{_TEMPORARY}*{escape(suffix)}"):  # left by a killed process
            abandoned.unlink(missing_ok=True)
        try:
            with temporary.open("wb") as file:
                for piece in pieces:
                    check()
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            check()
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        fsync(path.parent)
    except OSError as error:
        why = explain_denial(path) if isinstance(error, PermissionError) else ""
        raise EmitterError(f"{path} cannot be written: {error.strerror or type(error).__name__}{why}") from error


def check_template(template: str, known: Iterable[str], required: Iterable[str]) -> str:
    """Return the template of a file name if it is valid.

    Raises:
        ValueError: it has a folder, or a placeholder that is not in ``known``, or lacks one of ``required``.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        raise ValueError("should be a file name with placeholders such as {date}") from None
    literal = "".join(text for text, *_ in parts)
    if any(mark in literal for mark in "/\\\0\n\r"):
        raise ValueError("should be a file name without a folder; name the folder in output_dir")
    named = [name for _, name, *_ in parts if name is not None]
    plain = all(not form and not conversion for _, _, form, conversion in parts)
    listed = ", ".join(f"{{{name}}}" for name in known)
    if not plain or set(named) - set(known):
        raise ValueError(f"can only contain the placeholders {listed}")
    for name in required:
        if name not in named:
            raise ValueError(f"should contain {{{name}}}, so that no file overwrites another")
    return template


def file_name(template: str, values: Mapping[str, str]) -> str:
    """Return a name made from a checked template. Characters of a value that have a meaning in file systems are
    percent-encoded, so that different values remain different.

    >>> file_name("{tenant_id}_{date}.csv", {"tenant_id": "../a b", "date": "2026-01-31"})
    '%2E.%2Fa%20b_2026-01-31.csv'
    """
    name = template.format_map({key: quote(value, safe="") for key, value in values.items()})
    return f"%2E{name[1:]}" if name.startswith(".") else name
