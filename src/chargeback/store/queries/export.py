"""The rows of a dataset as a file, in pieces that are made while others are sent: memory does not grow with the number
of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from chargeback.store.queries.export_parquet import parquet_pieces
from chargeback.store.queries.export_texts import CSV, JSON_LINES, text_pieces
from chargeback.store.queries.exported_rows import ExportedRows

#: The format of a file, which is also the suffix of its name.
ExportFormat = Literal["csv", "parquet", "jsonl"]


def export_pieces(rows: ExportedRows, form: ExportFormat) -> Iterator[memoryview]:
    """Yield a file of all rows, piece by piece.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    match form:
        case "csv":
            return text_pieces(rows, CSV)
        case "jsonl":
            return text_pieces(rows, JSON_LINES)
        case "parquet":
            return parquet_pieces(rows)
