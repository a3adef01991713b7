"""The statements of a month as files with an index, in a folder or in a ZIP file."""

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

#: The Unix permissions of the files in a ZIP file: readable for all.
_READABLE: Final = 0o100644 << 16
#: The earliest time in a ZIP file.
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
#: The name of the index, which is a page and a CSV file.
INDEX: Final = "index"


def _json(statement: StatementAnswer) -> bytes:
    text = json.dumps(statement.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=2)
    return f"{text}\n".encode()


# The format that may not be installed comes first, so that nothing is written in that case.
_WRITERS: Final[Mapping[str, Callable[[Statements, StatementAnswer], bytes]]] = {
    "pdf": lambda found, statement: to_pdf(statement_html(found, statement)),
    "html": lambda found, statement: statement_html(found, statement).encode(),
    "csv": lambda _, statement: statement_csv(statement).encode(),
    "json": lambda _, statement: _json(statement),
}
#: The file formats of statements.
FORMATS: Final = tuple(_WRITERS)


def write_statements(found: Statements, folder: Path, formats: Collection[str]) -> list[Path]:
    """Write the files of :func:`files_of` to a folder; return them.

    Every file is replaced atomically, and the index last, so that it never names a missing file. Files of earlier
    revisions stay.

    Raises:
        EmitterError: a file cannot be written; the message names it.
        PdfUnavailable: the packages for PDF files are not installed.
    """
    written = []
    for name, content in files_of(found, formats):
        write_whole(folder / name, [content], lambda: None)
        written.append(folder / name)
    return written


def files_of(found: Statements, formats: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each statement in some of :data:`FORMATS` as (name, content), named by its number, and then the index.
    Equal statements result in equal bytes.

    Raises:
        PdfUnavailable: the packages for PDF files are not installed.
    """
    names: dict[str, dict[str, str]] = {}
    for statement in found.items:
        names[statement.number] = {form: f"{statement.number}.{form}" for form in FORMATS if form in formats}
        for form, name in names[statement.number].items():
            yield name, _WRITERS[form](found, statement)
    yield f"{INDEX}.csv", statements_csv(found).encode()
    yield f"{INDEX}.html", index_html(found, names).encode()


def zipped_statements(found: Statements, formats: Collection[str]) -> Iterator[memoryview]:
    """Yield the files of :func:`files_of` as the pieces of one ZIP file, as they are created, so that only one is in
    memory. Equal statements result in equal bytes.

    Raises:
        PdfUnavailable: the packages for PDF files are not installed.
    """
    unsent = _Unsent()
    issued_at = found.heading.issued_at
    date_time = _EARLIEST if issued_at is None else issued_at.timetuple()[:6]
    # Files are not compressed: PDF already is, and other versions of zlib would result in other bytes.
    with ZipFile(unsent, "w") as archive:
        for name, content in files_of(found, formats):
            entry = ZipInfo(name, date_time)
            entry.create_system, entry.external_attr = 3, _READABLE
            archive.writestr(entry, content)
            yield unsent.take()
    yield unsent.take()


class _Unsent(io.RawIOBase):
    """A file that keeps only the data that was not taken yet; taken data cannot be read or written any more."""

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
            raise OSError("data that was already taken cannot be written again")
        self._position = offset
        return offset

    def write(self, data: ReadableBuffer) -> int:
        start, content = self._position - self._taken, bytes(data)
        self._kept[start : start + len(content)] = content
        self._position += len(content)
        return len(content)
