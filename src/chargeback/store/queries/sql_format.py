"""SQL expressions that write values as the API and the exports show them.

Everything is rendered by the database, from typed columns: the list and the CSV show the same text, and no row passes
through Python on its way to a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from chargeback.model.money import PLACES

END_OF_LINE = "\r\n"

#: What follows the name of a sum in that of the column with its further digits, see :func:`exact`.
FINE = "_fine"
#: How many decimal places these digits have.
FINE_PLACES = 12
_FINE_WHOLE = f"{10**FINE_PLACES}::HUGEINT"

# Where a spreadsheet may begin a cell inside a field: many read ";" or tab as the separator, depending on the country.
_SEPARATOR = r"[;\t\r\n]"
# What may begin a formula there. The apostrophe is among them, so that those that were added differ from others.
_AFTER_SEPARATOR = r"""[=+\-@'"]"""
_AT_START = r"[=+\-@'\t\r\n]"
# A text with one of these anywhere, or one of those at its beginning, is not written as it is.
_CARE_INSIDE = '",;\t\r\n'
_CARE_FIRST = "=+-@'"
_INNER = re.compile(rf"({_SEPARATOR})(?={_AFTER_SEPARATOR})")
_START = re.compile(_AT_START)
_CARE = re.compile(rf"^{_AT_START}|[{_CARE_INSIDE}]")


def named(expressions: Mapping[str, str]) -> str:
    """Return a SELECT list of expressions (SQL) under their names."""
    return ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())


def decimal_text(column: str, places: int = PLACES) -> str:
    """A DECIMAL column in plain notation: at least two decimals, no superfluous zeros beyond them."""
    return _plain(f"{column}::VARCHAR", places)


def _plain(text: str, places: int) -> str:
    """A text of ``places`` decimal places without superfluous zeros."""
    return f"regexp_replace({text}, '0{{1,{places - 2}}}$', '')"


def in_parts(whole: str, fine: str) -> str:
    """A sum that has twelve decimal places more than its DECIMAL, as one value: ``fine`` (HUGEINT, of either sign) is
    the number of these last places that is added. Python gets a Decimal, see
    :meth:`~chargeback.store.queries.engine.Cursor.rows`.
    """
    return f"struct_pack(whole := {whole}, fine := {fine})"


def exact(whole: str, fine: str | None, places: int = PLACES) -> str:
    """The same of a DECIMAL of ``places``, with further digits that are less than one of its last place: values compare
    and sort like the sums. Without further digits ``fine`` is None, and the database divides nothing.
    """
    if fine is None:
        return in_parts(whole, "0::BIGINT")
    count = f"({fine})::HUGEINT"
    carried = f"(({count} - CASE WHEN {count} < 0 THEN {_FINE_WHOLE} - 1 ELSE 0 END) // {_FINE_WHOLE})"
    return in_parts(f"({whole}) + {one_of(carried, places)}", f"({count} - {carried} * {_FINE_WHOLE})::BIGINT")


def fine_wholes(fine: str) -> str:
    """What of further digits counts in the last place of the DECIMAL."""
    return f"(({fine})::HUGEINT // {_FINE_WHOLE})"


def fine_rest(fine: str) -> str:
    """What remains of further digits below that, with the same sign."""
    return f"(({fine})::HUGEINT % {_FINE_WHOLE})"


def sum_exact(column: str, places: int = PLACES, where: str = "TRUE", *, is_fine: bool = True) -> str:
    """The sum of a column of such values, of the rows of a condition; they have further digits if it ``is_fine``."""
    whole, fine = (f"sum({column}.{part}) FILTER ({where})" for part in ("whole", "fine"))
    return exact(whole, fine if is_fine else None, places)


def distance(first: str, second: str, places: int = PLACES, *, is_fine: bool = True) -> str:
    """Return the absolute difference of two such values, which have further digits if it ``is_fine``."""
    if not is_fine:
        return f"abs({first}.whole - {second}.whole)"
    one, other = (
        exact(f"{a}.whole - {b}.whole", f"{a}.fine - {b}.fine", places) for a, b in ((first, second), (second, first))
    )
    return f"greatest({one}, {other})"


def exact_texts(values: Sequence[str], places: int = PLACES) -> str:
    """A list of such values, each :func:`in_parts`, in plain notation as :func:`decimal_text`. Written once for all of
    them: the database takes its time to plan an expression."""
    whole, fine = "each.whole", "each.fine"
    below_zero = f"concat('-', (-{whole} - {one_of('1', places)})::VARCHAR, {_digits(f'{_FINE_WHOLE} - {fine}')})"
    text = f"CASE WHEN {whole} < 0 AND {fine} > 0 THEN {below_zero} ELSE concat({whole}::VARCHAR, {_digits(fine)}) END"
    normal = f"list_transform([{', '.join(values)}], lambda each: {exact(whole, fine, places)})"
    return f"list_transform({normal}, lambda each: {_plain(text, places + FINE_PLACES)})"


def _digits(fine: str) -> str:
    return f"right(({_FINE_WHOLE} + {fine})::VARCHAR, {FINE_PLACES})"


def one_of(units: str, places: int = PLACES) -> str:
    """A whole number of the last of some decimal places, as DECIMAL(38, ``places``)."""
    return f"(({units})::DECIMAL(38, 0) * 0.{'0' * (places - 1)}1)"


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
    # A regular expression is tried on every row; of these functions the database keeps the result for each distinct
    # text. It would join a list of constants (IN), and then lose the order of the rows.
    tests = [f"contains({expression}, {literal(mark)})" for mark in _CARE_INSIDE]
    tests += [f"starts_with({expression}, {literal(mark)})" for mark in _CARE_FIRST]
    return (
        f"CASE WHEN {' OR '.join(tests)} "
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
