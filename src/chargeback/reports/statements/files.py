"""The statements of a month as files, with an index: in a folder, or together in a ZIP file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import ZipFile, ZipInfo

from chargeback.emitters.files import write_whole
from chargeback.reports.statements.as_csv import statement_csv, statements_csv
from chargeback.reports.statements.as_html import index_html, statement_html
from chargeback.reports.statements.as_pdf import to_pdf
from chargeback.reports.statements.content import StatementAnswer, Statements

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: What the files in a ZIP file may be used for, as Unix has it: a file that all may read.
_READABLE: Final = 0o100644 << 16
#: The first instant that a ZIP file can name.
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
#: The name of the index, which is a page and a CSV file.
INDEX: Final = "index"


def _json(statement: StatementAnswer) -> bytes:
    text = json.dumps(statement.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=2)
    return f"{text}\n".encode()


# What may not be installed comes first, so that nothing is written then.
_WRITERS: Final[Mapping[str, Callable[[Statements, StatementAnswer], bytes]]] = {
    "pdf": lambda found, statement: to_pdf(statement_html(found, statement)),
    "html": lambda found, statement: statement_html(found, statement).encode(),
    "csv": lambda _, statement: statement_csv(statement).encode(),
    "json": lambda _, statement: _json(statement),
}
#: The forms that a statement can have as a file.
FORMATS: Final = tuple(_WRITERS)


def write_statements(found: Statements, folder: Path, formats: Collection[str]) -> list[Path]:
    """Write the files of :func:`files_of` to a folder; return them.

    Every file is replaced as a whole, and the index last: it never names a file that is not there. Files of earlier
    revisions stay.

    Raises:
        EmitterError: a file cannot be written; the message names it.
        PdfUnavailable: what makes PDF files is not installed.
    """
    written = []
    for name, content in files_of(found, formats):
        write_whole(folder / name, [content], lambda: None)
        written.append(folder / name)
    return written


def files_of(found: Statements, formats: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each statement in some of :data:`FORMATS` as a file, called by its number, and then the index, with their
    names. The same statements give the same bytes.

    Raises:
        PdfUnavailable: what makes PDF files is not installed.
    """
    names: dict[str, dict[str, str]] = {}
    for statement in found.items:
        names[statement.number] = {form: f"{statement.number}.{form}" for form in FORMATS if form in formats}
        for form, name in names[statement.number].items():
            yield name, _WRITERS[form](found, statement)
    yield f"{INDEX}.csv", statements_csv(found).encode()
    yield f"{INDEX}.html", index_html(found, names).encode()


def zipped_statements(found: Statements, formats: Collection[str]) -> Iterator[memoryview]:
    """Yield the files of :func:`files_of` as the pieces of one ZIP file, each when it is made: no more than one of them
    is in memory. The same statements give the same bytes.

    Raises:
        PdfUnavailable: what makes PDF files is not installed.
    """
    unsent = _Unsent()
    issued_at = found.heading.issued_at
    date_time = _EARLIEST if issued_at is None else issued_at.timetuple()[:6]
    # Files are stored as they are: PDF is compressed already, and other versions of zlib would give other bytes.
    with ZipFile(unsent, "w") as archive:
        for name, content in files_of(found, formats):
            entry = ZipInfo(name, date_time)
            entry.create_system, entry.external_attr = 3, _READABLE
            archive.writestr(entry, content)
            yield unsent.take()
    yield unsent.take()


class _Unsent(io.RawIOBase):
    """A file of which only the end is kept: what was taken can be read or written no more."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._taken = 0
        self._position = 0

    def take(self) -> memoryview:
        """Return what was written since the last time."""
        taken, self._kept = self._kept, bytearray()
        self._taken += len(taken)
        return memoryview(taken)

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET or offset < self._taken:
            raise OSError("only what was not taken yet can be written again")
        self._position = offset
        return offset

    def write(self, data: ReadableBuffer) -> int:
        start, content = self._position - self._taken, bytes(data)
        self._kept[start : start + len(content)] = content
        self._position += len(content)
        return len(content)
