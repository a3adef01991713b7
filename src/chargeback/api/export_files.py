"""Files of rows: which formats there are, and how they are documented and sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import Field

from chargeback.api.documentation import csv_answer
from chargeback.api.parameters import CSV_TYPE
from chargeback.api.tenant_requests import RowsFile
from chargeback.store.queries.export import ExportFormat
from chargeback.store.queries.reader import TenantReader

MEDIA_TYPES: Final[Mapping[ExportFormat, str]] = {
    "csv": CSV_TYPE,
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
}


def format_field() -> Any:
    """Return the field ``format`` of a request for a file."""
    return Field(
        default="csv",
        description="The format of the file: `csv`; `parquet`, with typed columns; `jsonl`, one JSON object per line.",
    )


def file_answer(example: str) -> dict[str, Any]:
    """Return the description of a response that is a file of rows, for the ``extra`` of a route; ``example`` is one of
    CSV."""
    described = csv_answer(
        "The rows by time and ids, in the format asked for: CSV (RFC 4180, UTF-8), Parquet, or JSON lines (UTF-8).",
        example=example,
    )
    binary, text = {"type": "string", "format": "binary"}, {"type": "string"}
    described["content"] |= {MEDIA_TYPES["parquet"]: {"schema": binary}, MEDIA_TYPES["jsonl"]: {"schema": text}}
    return described


def rows_file(name: str, form: ExportFormat, read: Callable[[TenantReader], Iterator[memoryview]]) -> RowsFile:
    """Return a file that is sent while it is made; ``name`` is its name without the suffix."""
    return RowsFile(f"{name}.{form}", MEDIA_TYPES[form], read)
