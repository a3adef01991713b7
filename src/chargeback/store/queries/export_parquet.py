"""Files of typed columns: Parquet, one row group after the other.

Amounts are decimals of 38 digits, timestamps are instants in UTC, tags are maps, metadata is a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.store.queries.datasets import METADATA, TAGS, Dataset
from chargeback.store.queries.exported_rows import ExportedRows, TagsOfRows

_TAGS: Final = pa.map_(pa.string(), pa.string())


def parquet_pieces(rows: ExportedRows) -> Iterator[memoryview]:
    """Yield a Parquet file with all rows, a row group at a time. Without its last piece it cannot be read.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    schema = pa.schema([(name, _type_of(rows, name)) for name in rows.columns])
    yield from parquet_file(schema, _typed(rows, schema))


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
