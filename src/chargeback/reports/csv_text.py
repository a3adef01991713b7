"""Tables as the text of CSV files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from chargeback.model.days import render_instant
from chargeback.model.money import render
from chargeback.reports.answers import ResponseModel
from chargeback.store.queries.sql_format import END_OF_LINE, csv_field


def csv_text(columns: Sequence[str], items: Iterable[Mapping[str, Any]], *, numbers: Collection[str] = ()) -> str:
    """Return items as CSV with a header (RFC 4180), as the export writes it.

    ``numbers`` are the columns whose texts are decimals: a minus sign in front of one begins no formula.
    """
    fields = ([_field(item[column], is_number=column in numbers) for column in columns] for item in items)
    return _lines(columns, fields)


def table_text(columns: Mapping[str, str], items: Iterable[ResponseModel]) -> str:
    """Return answers as CSV with a header, as the export writes it. ``columns`` are the header's names, and for each
    the path to the field below an item, such as ``subject.name``; below a field that is None, everything is empty."""
    paths = [path.split(".") for path in columns.values()]
    return _lines(columns, ([_field(_found(item, path)) for path in paths] for item in items))


def _lines(columns: Iterable[str], rows: Iterable[list[str]]) -> str:
    lines = [[csv_field(column) for column in columns], *rows]
    return "".join(f"{','.join(fields)}{END_OF_LINE}" for fields in lines)


def _found(item: object, path: Sequence[str]) -> object:
    for name in path:
        item = None if item is None else getattr(item, name)
    return item


def _field(value: object, *, is_number: bool = False) -> str:
    match value:
        case None:
            return ""
        case Decimal():
            return render(value)
        case datetime():
            return render_instant(value)
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
