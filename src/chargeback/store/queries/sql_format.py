"""SQL expressions that write values as the API and the exports show them.

Everything is rendered by the database, from typed columns: the list and the CSV show the same text, and no row passes
through Python on its way to a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from chargeback.model.money import PLACES

END_OF_LINE = "\r\n"

# Where a spreadsheet may begin a cell inside a field: many read ";" or tab as the separator, depending on the country.
_SEPARATOR = r"[;\t\r\n]"
# What may begin a formula there. The apostrophe is among them, so that those that were added can be told from others.
_AFTER_SEPARATOR = r"""[=+\-@'"]"""
_AT_START = r"[=+\-@'\t\r\n]"
_NEEDS_CARE = rf"""^{_AT_START}|[",;\t\r\n]"""
_INNER = re.compile(rf"({_SEPARATOR})(?={_AFTER_SEPARATOR})")
_START = re.compile(_AT_START)
_CARE = re.compile(_NEEDS_CARE)


def named(expressions: Mapping[str, str]) -> str:
    """Return a SELECT list of expressions (SQL) under their names."""
    return ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())


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
    r"""A text as a CSV field: quoted where RFC 4180 wants it, and never something a spreadsheet would execute.

    One of ``= + - @ '`` gets an apostrophe in front at the beginning of the text (there also tab and line breaks) and
    after each ``;``, tab and line break in it (there also ``"``). A program gets the text back by removing one
    apostrophe in each of these places: ``re.sub(r"(^|[;\t\r\n])'", r"\1", field)``.
    """
    inner = literal(f"({_SEPARATOR})({_AFTER_SEPARATOR})")
    guarded = f"regexp_replace({expression}, {inner}, '\\1''\\2', 'g')"
    first = f"CASE WHEN regexp_matches({expression}, {literal('^' + _AT_START)}) THEN '''' ELSE '' END"
    return (
        f"CASE WHEN regexp_matches({expression}, {literal(_NEEDS_CARE)}) "
        f"""THEN '"' || {first} || replace({guarded}, '"', '""') || '"' ELSE {expression} END"""
    )


def csv_json(expression: str) -> str:
    r"""A JSON object as a CSV field. A ``;`` in it is written as JSON may, ``\u003b``, so that it separates nothing."""
    return f"""'"' || replace(replace({expression}, ';', '\\u003b'), '"', '""') || '"'"""


def guarded_inside(text: str) -> str:
    """``text`` with the apostrophes that :func:`csv_text` adds after separators.

    >>> guarded_inside("a;=1+1")
    "a;'=1+1"
    """
    return _INNER.sub(r"\1'", text)


def csv_field(text: str) -> str:
    """Return a text as :func:`csv_text` writes it.

    >>> print(csv_field("plain"), csv_field("=1+1"))
    plain "'=1+1"
    """
    if not _CARE.search(text):
        return text
    first = "'" if _START.match(text) else ""
    return '"' + first + guarded_inside(text).replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
