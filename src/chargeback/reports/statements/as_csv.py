"""Statements as CSV: a line for each line of a statement, or for each statement of a month. Texts are written as by the
export, so that no spreadsheet takes one for a formula."""

from __future__ import annotations

from typing import Any, Final

from chargeback.reports.csv_text import csv_text
from chargeback.reports.statements.as_json import heading_json, stated_json, statement_row
from chargeback.reports.statements.content import Statement, Statements

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
_NUMBERS: Final = ("amount", "rounded", "previous", "delta")


def statement_csv(found: Statements, statement: Statement) -> str:
    """Return the lines of a statement, which sum to it."""
    common = _common(found, statement)
    lines = [
        common
        | {"kind": line.kind, "product_category": line.product_category, "product_type": line.product_type}
        | stated_json(line.amount)
        for line in statement.lines
    ]
    return csv_text(LINE_COLUMNS, lines, numbers=_NUMBERS)


def statements_csv(found: Statements) -> str:
    """Return the statements of a month, which sum to its costs."""
    rows = [_common(found, each) | statement_row(each) | {"supersedes": each.supersedes} for each in found.items]
    return csv_text(STATEMENT_COLUMNS, rows, numbers=_NUMBERS)


def _common(found: Statements, statement: Statement) -> dict[str, Any]:
    recipient = statement.recipient
    return heading_json(found.heading) | {
        "number": statement.number,
        "value": recipient.value,
        "name": recipient.name,
        "gl": dict(recipient.gl) or None,
    }
