"""SQL expressions that write values as the API and the exports show them.

Everything is rendered by the database, from typed columns: the list and the CSV show the same text, and no row passes
through Python on its way to a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from chargeback.model.money import PLACES

END_OF_LINE = "\r\n"

# The first characters by which a spreadsheet takes a text for a formula.
_FORMULA = r"^[=+\-@\t\r\n]"
_MUST_BE_QUOTED = r'[",\r\n]'


def decimal_text(column: str, places: int = PLACES) -> str:
    """A DECIMAL column in plain notation: at least two decimals, no superfluous zeros beyond them."""
    superfluous = places - 2
    text = f"{column}::VARCHAR"
    return f"left({text}, -{superfluous}) || rtrim(right({text}, {superfluous}), '0')"


def instant_text(column: str) -> str:
    """A TIMESTAMPTZ column as ISO 8601 with a ``Z``; fractions of a second only where there are any."""
    return f"replace(make_timestamp(epoch_us({column}))::VARCHAR, ' ', 'T') || 'Z'"


def json_text(column: str) -> str:
    """A text column as a JSON string."""
    return f"to_json({column})::VARCHAR"


def json_object(members: Sequence[tuple[str, str]]) -> str:
    """A JSON object with sorted keys; members whose value is null are left out.

    ``members`` are (key, expression of the value's JSON text).
    """
    parts = ", ".join(f"""'"{key}":' || {value}""" for key, value in sorted(members))
    return f"'{{' || concat_ws(',', {parts}) || '}}'"


def quoted(expression: str) -> str:
    """The JSON string of a text that needs no escaping, a decimal."""
    return f"""'"' || {expression} || '"'"""


def csv_text(expression: str) -> str:
    """A text as a CSV field: quoted where RFC 4180 wants it, and never something a spreadsheet would execute.

    What a spreadsheet would take for a formula gets an apostrophe in front, which it takes for "this is text".
    """
    harmless = f"CASE WHEN regexp_matches({expression}, '{_FORMULA}') THEN '''' || {expression} ELSE {expression} END"
    return (
        f"CASE WHEN regexp_matches({expression}, '{_MUST_BE_QUOTED}|{_FORMULA}') "
        f"""THEN '"' || replace({harmless}, '"', '""') || '"' ELSE {expression} END"""
    )
