"""Budgets as a CSV file: one line for each, with a column for each month."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.category_sources.csv_file import plain_cell, separator_of
from chargeback.model.accounting import PERIOD_ID
from chargeback.model.budgets import Budget
from chargeback.reports.answers import csv_text

COLUMNS: Final = ("id", "name", "parent", "scope", "thresholds", "notify", "monthly")
_REQUIRED: Final = COLUMNS[:2]
_AMOUNT: Final = "should be an amount such as 1000 or 1000.50"
#: Messages about invalid cells, instead of their patterns.
_WORDS: Final[Mapping[str, str]] = {
    "id": "should have small letters, digits, - and _ alone, 64 at most",
    "parent": "should be the id of a budget",
    "monthly": _AMOUNT,
    "amounts": _AMOUNT,
    "thresholds": "should be such as actual 80; forecast 100",
}
#: The maximum number of mistakes of a file that are reported.
_MOST: Final = 100


def budget_table(budgets: Iterable[Budget]) -> str:
    """Return budgets as CSV: ``scope`` as JSON, ``thresholds`` such as ``actual 80; forecast 100``, and a column for
    the amounts of each month."""
    known = list(budgets)
    months = sorted({month for each in known for month in each.amounts})
    rows = [
        {
            "id": each.id,
            "name": each.name,
            "parent": each.parent,
            "scope": {name: list(values) for name, values in each.scope.items()} or None,
            "thresholds": "; ".join(threshold.key for threshold in each.thresholds),
            "notify": "; ".join(each.notify),
            "monthly": each.monthly,
            **{month: each.amounts.get(month) for month in months},
        }
        for each in known
    ]
    return csv_text([*COLUMNS, *months], rows)


def read_budgets(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line as (``line N``, body), the inverse of :func:`budget_table`: the body of a budget with its ``id``.

    Raises:
        InvalidRequest: the file cannot be read; the error names the lines and their mistakes.
    """
    text = text.removeprefix("\ufeff")
    separator = separator_of(text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        head = [name.strip().lower() for name in next(rows, [])]
        _check_head(head)
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            place = f"line {rows.line_num}"
            if len(row) != len(head):
                raise _wrong([f"{place}: has {len(row)} fields, and the head has {len(head)}"])
            cells = {name: plain_cell(cell).strip() for name, cell in zip(head, row, strict=True)}
            yield place, _body(cells, place, decimal_comma=separator != ",")
    except csv.Error as error:
        raise _wrong([f"line {rows.line_num}: is not CSV: {error}"]) from None


def problems_of(place: str, error: ValidationError) -> Iterator[str]:
    """Yield the mistakes on a line."""
    for each in error.errors(include_url=False):
        column = each["loc"][0]
        if each["type"] == "string_pattern_mismatch" and column in _WORDS:
            where, said = (str(each["loc"][-1]) if column == "amounts" else column), _WORDS[str(column)]
        else:
            where, said = ".".join(map(str, each["loc"])), each["msg"].removeprefix("Value error, ")
        yield f"{place}: {where}: {said}"


def check_no_problems(found: list[str]) -> None:
    """Check that nothing is wrong.

    Raises:
        InvalidRequest: with everything that is.
    """
    if found:
        raise _wrong(found)


def _wrong(found: list[str]) -> InvalidRequest:
    return InvalidRequest([InvalidParameter("csv", each) for each in found[:_MOST]])


def _check_head(head: list[str]) -> None:
    known = [name for name in head if name in COLUMNS or re.fullmatch(PERIOD_ID, name)]
    check_no_problems(
        [
            *(f"line 1: the column {name} is missing" for name in _REQUIRED if name not in head),
            *(
                f"line 1: {name[:40]!r} is not a column of this file; these are {', '.join(COLUMNS)} and months"
                for name in head
                if name not in known
            ),
            *(f"line 1: the column {name} occurs twice" for name in sorted(set(known)) if known.count(name) > 1),
        ]
    )


def _body(cells: Mapping[str, str], place: str, *, decimal_comma: bool) -> dict[str, Any]:
    def amount(text: str) -> str:
        return text.replace(",", ".") if decimal_comma else text

    try:
        scope = json.loads(cells.get("scope") or "{}")
    except ValueError:
        raise _wrong([f'{place}: scope: should be JSON such as {{"product_category":["KAFKA"]}}']) from None
    thresholds = [each.split() for each in _parts(cells.get("thresholds", ""))]
    return {
        "id": cells["id"],
        "name": cells["name"],
        "parent": cells.get("parent") or None,
        "scope": scope,
        "thresholds": [{"on": each[0], "percent": " ".join(each[1:])} for each in thresholds],
        "notify": _parts(cells.get("notify", "")),
        "monthly": amount(cells.get("monthly", "")) or None,
        "amounts": {name: amount(cell) for name, cell in cells.items() if cell and name not in COLUMNS},
    }


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]
