"""Statements as CSV: a line for each line of a statement, or for each statement of a month. Texts are in the format of
exports, so that no spreadsheet takes them for formulas."""

from __future__ import annotations

from typing import Any, Final

from chargeback.reports.answers import csv_text
from chargeback.reports.statements.content import StatementAnswer, Statements

LINE_COLUMNS: Final = (
    "number",
    "period",
    "status",
    "value",
    "name",
    "gl",
    "kind",
    "product_category",
    "product_type",
    "amount",
    "rounded",
    "currency",
)
STATEMENT_COLUMNS: Final = (
    "number",
    "supersedes",
    "period",
    "status",
    "data_through",
    "value",
    "name",
    "gl",
    "amount",
    "rounded",
    "previous",
    "delta",
    "currency",
)
_NUMBERS: Final = ("amount", "rounded")


def statement_csv(statement: StatementAnswer) -> str:
    """Return the lines of a statement with its corrections and adjustments, which sum to it."""
    rows: list[dict[str, Any]] = [line.model_dump() for line in statement.lines]
    booked = [("correction", statement.corrections), ("adjustment", statement.adjustments)]
    for kind, parts in booked:
        rows += [{"kind": kind, "amount": each.amount, "rounded": each.rounded} for each in parts or ()]
    nothing = dict.fromkeys(("product_category", "product_type"))
    return csv_text(LINE_COLUMNS, [_common(statement) | nothing | row for row in rows], numbers=_NUMBERS)


def statements_csv(found: Statements) -> str:
    """Return the statements of a month, which sum to its costs."""
    rows = [
        _common(each)
        | {
            "previous": None if each.previous is None else each.previous.amount,
            "delta": None if each.previous is None else each.previous.delta,
        }
        for each in found.items
    ]
    return csv_text(STATEMENT_COLUMNS, rows, numbers=_NUMBERS)


def _common(statement: StatementAnswer) -> dict[str, Any]:
    recipient = statement.recipient
    return statement.model_dump(include={*STATEMENT_COLUMNS} - {"previous"}) | {
        "value": recipient.value,
        "name": recipient.name,
        "gl": recipient.gl or None,
    }
