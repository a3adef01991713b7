"""Usage: measurements and memberships, the evidence from which a day is calculated."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

#: A measured value: six decimals, taken from the text of the metrics source, half-even.
QUANTITY = pa.decimal128(38, 6)
QUANTITY_PLACES = 6
_STEP = Decimal(1).scaleb(-QUANTITY_PLACES)
#: No valid measurement is as large; below it, sums over a day fit 128 bits.
QUANTITY_LIMIT = Decimal(10) ** 26
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)

#: One row is one measurement over the day: the measure, the resource, and the subject (an identity or a topic).
USAGE = pa.schema(
    [
        pa.field("date", pa.date32(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("resource_id", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("value", QUANTITY, nullable=False),
    ]
)

_MEASURED: Final = ("date", "measure", "resource_id", "subject", "value")


def measurements(rows: Iterable[tuple[date, str, str, str, Decimal]]) -> pa.Table:
    """Return measurements, each with the columns that it must have, as a table of the schema :data:`USAGE`.

    >>> measurements([(date(2026, 1, 31), "bytes_in", "lkc-1", "sa-1", Decimal(7))]).num_rows
    1
    """
    columns = tuple(zip(*rows, strict=True)) or ((),) * len(_MEASURED)
    known = dict(zip(_MEASURED, columns, strict=True))
    arrays = [
        pa.array(known[field.name], field.type) if field.name in known else pa.nulls(len(columns[0]), field.type)
        for field in USAGE
    ]
    return pa.Table.from_arrays(arrays, schema=USAGE)


#: One row says that an identity belonged to a resource on that day. ``relation`` is ``active``, ``owner``,
#: ``owners`` (its owner and those of what it directly contains) or, with the tenant's own pseudo-resource
#: :data:`EVERYTHING`, ``period``.
MEMBERS = pa.schema(
    [
        pa.field("date", pa.date32(), nullable=False),
        pa.field("resource_id", pa.string(), nullable=False),
        pa.field("identity_id", pa.string(), nullable=False),
        pa.field("relation", pa.string(), nullable=False),
    ]
)

ACTIVE = "active"
OWNER = "owner"
OWNERS = "owners"
PERIOD = "period"
#: The resource id for the identities of the whole period.
EVERYTHING = "*"


def parse_quantity(text: str) -> Decimal | None:
    """Return a measured value from its text, or None if it must not count: NaN, ±Inf, negative or too large.

    >>> parse_quantity("1.0000005"), parse_quantity("NaN"), parse_quantity("-1")
    (Decimal('1.000000'), None, None)
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite() or value < 0 or value >= QUANTITY_LIMIT:
        return None
    return value.quantize(_STEP, context=_EXACT)
