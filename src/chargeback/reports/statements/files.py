"""The statements of a month as files in a folder, with an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from chargeback.emitters.files import write_whole
from chargeback.reports.statements.as_csv import statement_csv, statements_csv
from chargeback.reports.statements.as_html import index_html, statement_html
from chargeback.reports.statements.as_pdf import to_pdf
from chargeback.reports.statements.content import StatementAnswer, Statements

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
    """Write each statement in some of :data:`FORMATS`, called by its number, and then the index; return the files.

    Every file is replaced as a whole, and the index last: it never names a file that is not there. The same statements
    give the same bytes. Files of earlier revisions stay.

    Raises:
        EmitterError: a file cannot be written; the message names it.
        PdfUnavailable: what makes PDF files is not installed.
    """
    written = []
    names: dict[str, dict[str, str]] = {}
    for statement in found.items:
        names[statement.number] = {form: f"{statement.number}.{form}" for form in FORMATS if form in formats}
        for form, name in names[statement.number].items():
            written.append(_write(folder / name, _WRITERS[form](found, statement)))
    written.append(_write(folder / f"{INDEX}.csv", statements_csv(found).encode()))
    written.append(_write(folder / f"{INDEX}.html", index_html(found, names).encode()))
    return written


def _write(path: Path, content: bytes) -> Path:
    write_whole(path, [content], lambda: None)
    return path
