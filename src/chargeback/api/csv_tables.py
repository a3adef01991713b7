"""Tables as CSV files that are finished before they are sent: they have an ETag, and are sent as gzip."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from chargeback.api.parameters import CSV_TYPE
from chargeback.api.responses import attachment
from chargeback.service.csv_text import csv_text


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
    return Response(
        csv_text(columns, items, numbers=numbers),
        media_type=CSV_TYPE,
        headers=attachment(name) | dict(headers or {}),
    )
