"""Files of one text line per row: CSV and JSON lines.

Every row leaves DuckDB as one text, its line end included; a batch of them is one contiguous piece of memory that
goes out as it is. No row passes through Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.store.queries.datasets import METADATA, TAGS, Column, Dataset
from chargeback.store.queries.exported_rows import ExportedRows, TagsOfRows
from chargeback.store.queries.sql_format import END_OF_LINE, csv_json, guarded_inside, literal


@dataclass(frozen=True)
class TextFormat:
    """How rows are written as lines; fields are separated by commas.

    Attributes:
        header: the first line of a file with these columns, or nothing.
        field: SQL for a column's field.
        metadata: SQL for the field of a row's metadata.
        tags: the field of a row's tags.
        opening, closing: what is before the first field of a row, and behind the last one.
    """

    header: Callable[[Sequence[str]], str]
    field: Callable[[Column], str]
    metadata: Callable[[Dataset], str]
    tags: Callable[[dict[str, str]], str]
    opening: str
    closing: str


def text_pieces(rows: ExportedRows, form: TextFormat) -> Iterator[memoryview]:
    """Yield the header, if there is one, and then all rows as UTF-8, some thousand at a time.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    if header := form.header(rows.columns):
        yield memoryview(header.encode())
    fields = [_field(rows, form, name) for name in rows.columns]
    opening, closing = literal(form.opening), literal(form.closing)
    if not rows.has_tags:
        for batch in rows.batches([_joined([opening], fields, [closing])]):
            yield text_of(batch.column(0))
        return
    at = rows.columns.index(TAGS)
    before, after = fields[:at], fields[at + 1 :]
    comma = literal(",")
    select = [
        _joined([opening], before, [comma] if before else []),
        _joined([comma] if after else [], after, [closing]),
        *rows.dataset.tag_columns,
        "date",
    ]
    texts = TagsOfRows(rows.tags, form.tags, pa.string())
    for batch in rows.batches(select):
        head, tail, identities, resources, days = batch.columns
        yield text_of(pc.binary_join_element_wise(head, texts.of(identities, resources, days), tail, ""))


def _field(rows: ExportedRows, form: TextFormat, name: str) -> str:
    """SQL for the field of a column; that of tags is the field of a row without any."""
    if name == METADATA:
        return form.metadata(rows.dataset)
    return literal(form.tags({})) if name == TAGS else form.field(rows.column(name))


def _joined(opening: Sequence[str], fields: Sequence[str], closing: Sequence[str]) -> str:
    """SQL for fields with commas between them; one without a value is empty."""
    parts = [*opening, ", ',', ".join(f"({field})" for field in fields), *closing]
    return f"concat('', {', '.join(filter(None, parts))})"


def text_of(array: Any) -> memoryview:
    """The texts of a string array, one after the other, without copying them."""
    _, offsets, data = array.buffers()
    if data is None:
        return memoryview(b"")
    positions = memoryview(offsets).cast("i")
    return memoryview(data)[positions[array.offset] : positions[array.offset + len(array)]]


def tags_field(tags: dict[str, str]) -> str:
    r"""Tags as one CSV field: ``key=value`` joined by ``;``, sorted by key; ``\``, ``;`` and ``=`` are escaped.

    A key begins with a letter or a digit, so that no spreadsheet takes it for a formula; in values, what follows a
    separator is guarded as in every text.

    >>> tags_field({"team": "a=b;c", "env": "prod"})
    'env=prod;team=a\\=b\\;c'
    """
    text = guarded_inside(";".join(f"{key}={_escaped(value)}" for key, value in sorted(tags.items())))
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in '",\r\n') else text


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(";", "\\;").replace("=", "\\=")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _member(name: str, value: str) -> str:
    """SQL for a member of a JSON object; ``value`` is SQL for its JSON text, or null."""
    return f"{literal(f'{_json(name)}:')} || coalesce({value}, 'null')"


#: RFC 4180, with texts that no spreadsheet executes.
CSV: Final = TextFormat(
    header=lambda columns: f"{','.join(columns)}{END_OF_LINE}",
    field=lambda column: column.csv,
    metadata=lambda dataset: csv_json(dataset.metadata_json),
    tags=tags_field,
    opening="",
    closing=END_OF_LINE,
)

#: One JSON object per line, with the values of the API's lists.
JSON_LINES: Final = TextFormat(
    header=lambda _: "",
    field=lambda column: _member(column.name, column.json),
    metadata=lambda dataset: _member(METADATA, dataset.metadata_json),
    tags=lambda tags: f"{_json(TAGS)}:{_json(tags)}",
    opening="{",
    closing="}\n",
)
