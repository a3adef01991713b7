"""Files of rows: which formats there are, and how they are documented and sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field
from starlette.responses import Response

from chargeback.api.documentation import csv_answer
from chargeback.api.parameters import CSV_TYPE
from chargeback.api.responses import ByteStream, attachment
from chargeback.service.executor import PieceStream, RequestContext
from chargeback.store.queries.export import ExportFormat

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


async def file_response(
    context: RequestContext,
    pieces: PieceStream[memoryview],
    name: str,
    form: ExportFormat,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a file that is sent while it is made; ``name`` is its name without the suffix. ``headers`` may be filled
    until the first piece is there."""
    headers = {} if headers is None else headers
    headers.update(attachment(f"{name}.{form}"))
    return await ByteStream.begin(context, pieces, media_type=MEDIA_TYPES[form], headers=headers)
