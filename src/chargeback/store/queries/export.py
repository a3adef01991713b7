"""The rows of a dataset as a file, in pieces that are made while others are sent: memory does not grow with the number
of rows.

The database writes each field as the format wants it, some thousand rows at a time; of CSV and JSON lines, every row
leaves it as one text, its line end included. Parquet has typed columns: amounts are decimals of 38 digits, timestamps
instants in UTC, tags maps, metadata a record. Tags are not in the database's files; they are resolved once for each
pair of identity and resource.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from chargeback.store.facts.tables import ORDER
from chargeback.store.queries.category_parts import SHARE
from chargeback.store.queries.datasets import METADATA, TAGS, Column, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.keys import ByTag, KeyLookups, KeySql, numbered
from chargeback.store.queries.lookups import CATEGORY_PREFIX, NO_CATEGORIES
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.sql_format import END_OF_LINE, csv_json, guarded_inside, literal, named
from chargeback.store.queries.tag_index import TagIndex

_BATCH: Final = 50_000
_PIECE: Final = 250_000


@dataclass(frozen=True)
class ExportedRows:
    """All rows of a scan, in the order of the list.

    Attributes:
        columns: distinct names of the dataset's ``export_columns``, ``category:<key>`` with the ``places`` of cost
            categories, and ``category_share``; then the rows are those of ``parts``, a relation and its condition.
        per: a unit of time (day, week, month; UTC): the rows of each that agree in the columns of the
            ``default_export``, of which ``columns`` are then some, and in their categories, are summed.
        constants: further columns that are texts: SQL by their names.
        table: a table from which the rows are taken instead, in the order of its column ``number``.
    """

    cursor: Cursor
    dataset: Dataset
    scan: Scan
    columns: Sequence[str]
    tags: TagIndex
    per: str | None = None
    parts: tuple[str, Condition] | None = None
    places: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None

    @property
    def has_tags(self) -> bool:
        """Whether there is a column of tags, and some row may have one."""
        return TAGS in self.columns and not self.tags.is_empty

    def column(self, name: str) -> Column:
        """Return what is known of one of :attr:`columns` that is stored, or of a cost category or its share."""
        if name in self.constants:
            return Column(name, source=self.constants[name])
        if name.startswith(CATEGORY_PREFIX):
            return Column(name, source=f"category_{self.places[name.removeprefix(CATEGORY_PREFIX)]}")
        known = {column.name: column for column in (*self.dataset.columns, Column(SHARE))}
        return known[name]

    def batches(self, select: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield expressions (SQL) of every row, some thousand rows at a time.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        if self.table is not None:
            yield from self.cursor.batches(
                f"SELECT {', '.join(select)} FROM {self.table} ORDER BY number", {}, size=_BATCH
            )
            return
        if not self.scan.files:
            return
        source, condition = self.parts or (SOURCE, self.scan.condition())
        categories = [f"category_{place}" for place in self.places.values()]
        relation, pieces = f"{source} AS stored WHERE {condition.sql}", [self.scan]
        if self.per is not None:
            relation = f"({self._summed(self.per, source, condition.sql, categories)})"
        elif self.parts or self.scan.filter.clauses:
            # DuckDB keeps the order of files it only reads, but not that of rows it joins, and some filters are joins.
            relation = f"{relation} ORDER BY {', '.join(['date', 'file_row_number', *categories])}"
            pieces = list(self.scan.pieces(_PIECE))  # only one of them is sorted at a time
        sql = f"SELECT {', '.join(select)} FROM {relation}"
        for piece in pieces:
            yield from self.cursor.batches(sql, {**condition.parameters, "files": piece.files}, size=_BATCH)

    def _summed(self, unit: str, source: str, condition: str, categories: Sequence[str]) -> str:
        """Return the sums as SQL; rows whose tags change with the days are summed apart, and have the first of their
        days as their ``date``."""
        dataset, by_tag = self.dataset, self._dated_tags()
        keys = [name for name in dataset.default_export if name not in {"timestamp", dataset.amount, TAGS}]
        keys += categories
        order = [name for name in ORDER[dataset.table] if name == "timestamp" or name in keys]
        tags = [f"d{number}" for number in range(len(by_tag))]
        grouped = [*keys, *(named(key.columns) for key in by_tag)]
        return (
            f"SELECT date_trunc('{unit}', timestamp) AS timestamp, {', '.join(grouped)}, "
            f"sum({dataset.amount}) AS {dataset.amount}, min(date) AS date "
            f"FROM {source} AS stored {' '.join(key.joins for key in by_tag)} "
            f"WHERE {condition} GROUP BY ALL ORDER BY {', '.join([*order, *keys, *tags])}"
        )

    def _dated_tags(self) -> Sequence[KeySql]:
        keys = self.tags.dated_keys if self.has_tags else ()
        lookups = KeyLookups(self.cursor, self.dataset, self.tags, dict, NO_CATEGORIES, None)
        return numbered(ByTag(key).on(lookups) for key in keys)


class TagsOfRows:
    """The tags of many rows at once: each pair of identity and resource is resolved only once for the days on which
    tags stay the same. ``made`` is what the tags of a row are as a value of the Arrow type ``kind``."""

    def __init__(self, tags: TagIndex, made: Callable[[dict[str, str]], Any], kind: pa.DataType) -> None:
        self._tags = tags
        self._made = made
        self._kind = kind
        self._known: dict[tuple[str, str, int], Any] = {}

    def of(self, identities: pa.Array, resources: pa.Array, days: pa.Array) -> pa.Array:
        """Return one value per row."""
        columns = [each.dictionary_encode() for each in (identities, resources, days)]
        payers, things, dates = (each.dictionary.to_pylist() for each in columns)
        payer, thing, day = (each.indices.cast(pa.int64()) for each in columns)
        place = pc.add(pc.multiply(pc.add(pc.multiply(payer, len(things)), thing), len(dates)), day)
        distinct = place.dictionary_encode()
        values = []
        for code in distinct.dictionary.to_pylist():
            pair, of_day = divmod(code, len(dates))
            values.append(self._value(payers[pair // len(things)], things[pair % len(things)], dates[of_day]))
        return pa.array(values, self._kind).take(distinct.indices)

    def _value(self, identity_id: str, resource_id: str, day: date) -> Any:
        place = (identity_id, resource_id, self._tags.era(day))
        if place not in self._known:
            self._known[place] = self._made(self._tags.resolve(identity_id, resource_id, day))
        return self._known[place]


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


def text_pieces(parts: Iterable[ExportedRows], form: TextFormat) -> Iterator[memoryview]:
    """Yield the header, if there is one, and then all rows of the parts as UTF-8, some thousand at a time.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    for number, rows in enumerate(parts):
        if not number and (header := form.header(rows.columns)):
            yield memoryview(header.encode())
        yield from _texts(rows, form)


def _texts(rows: ExportedRows, form: TextFormat) -> Iterator[memoryview]:
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


_TAGS: Final = pa.map_(pa.string(), pa.string())


def parquet_pieces(parts: Iterable[ExportedRows]) -> Iterator[memoryview]:
    """Yield a Parquet file with all rows of the parts, a row group at a time. Without its last piece it cannot be read.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    rest = iter(parts)
    first = next(rest)
    schema = pa.schema([(name, _type_of(first, name)) for name in first.columns])
    yield from parquet_file(schema, (batch for rows in chain([first], rest) for batch in _typed(rows, schema)))


def parquet_file(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[memoryview]:
    """Yield a Parquet file of batches with that schema, each a row group. Without its last piece it cannot be read."""
    sink = _Sink()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd", store_schema=False) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


def _type_of(rows: ExportedRows, name: str) -> pa.DataType:
    if name == METADATA:
        return pa.struct([(column.name, column.arrow) for column in rows.dataset.metadata])
    return _TAGS if name == TAGS else rows.column(name).arrow


def _typed(rows: ExportedRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows with the columns of ``schema``."""
    stored = [name for name in rows.columns if name != TAGS]
    select = [_record(rows.dataset) if name == METADATA else rows.column(name).typed for name in stored]
    tags = TagsOfRows(rows.tags, lambda of_row: list(of_row.items()), _TAGS)
    for batch in rows.batches([*select, *(rows.dataset.tag_columns if TAGS in rows.columns else ()), "date"]):
        columns = dict(zip(stored, batch.columns, strict=False))
        if TAGS in rows.columns:
            columns[TAGS] = tags.of(*batch.columns[len(stored) :])
        yield pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)


def _record(dataset: Dataset) -> str:
    """SQL for a row's metadata."""
    return f"struct_pack({', '.join(f'{column.name} := {column.typed}' for column in dataset.metadata)})"


class _Sink:
    """What a Parquet writer takes for an open file: keeps the bytes that are written until they are taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._parts.append(data)
        self._size += len(data)

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._size

    def flush(self) -> None:
        """Do nothing: there is nothing behind it."""

    def close(self) -> None:
        """Do nothing: the last bytes are still to be taken."""

    def take(self) -> memoryview:
        """Return the bytes that were written since the last time."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return memoryview(taken)


#: The format of a file, which is also the suffix of its name.
ExportFormat = Literal["csv", "parquet", "jsonl"]


def export_pieces(parts: Iterable[ExportedRows], form: ExportFormat) -> Iterator[memoryview]:
    """Yield a file of all rows of some parts, at least one, piece by piece.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    match form:
        case "csv":
            return text_pieces(parts, CSV)
        case "jsonl":
            return text_pieces(parts, JSON_LINES)
        case "parquet":
            return parquet_pieces(parts)
