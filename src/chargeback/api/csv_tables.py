"""Tables as CSV files that are finished before they are sent: they have an ETag, and are sent as gzip."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from chargeback.api.conditional import CSV_TYPE
from chargeback.store.queries.sql_format import END_OF_LINE, csv_field


def csv_response(
    name: str,
    columns: Sequence[str],
    items: Iterable[Mapping[str, Any]],
    *,
    numbers: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return items of a JSON answer as a CSV file called ``name``, as the export writes it.

    ``numbers`` are the columns whose texts are decimals: a minus sign in front of one begins no formula.
    """
    lines = [",".join(map(csv_field, columns))]
    lines += [",".join(_field(item[column], is_number=column in numbers) for column in columns) for item in items]
    return Response(
        "".join(f"{line}{END_OF_LINE}" for line in lines),
        media_type=CSV_TYPE,
        headers={"Content-Disposition": f"attachment; filename={name}", **(headers or {})},
    )


def _field(value: object, *, is_number: bool) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value if is_number else csv_field(value)
        case Mapping():
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            # As JSON may write it, so that it separates nothing.
            return '"' + text.replace(";", "\\u003b").replace('"', '""') + '"'
        case _:
            return str(value)
