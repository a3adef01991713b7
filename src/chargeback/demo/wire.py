"""JSON text with exact decimals: no amount is converted to a float."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

#: Below this, Go's encoder (the provider's) writes doubles with an exponent.
_SMALL = Decimal("0.000001")


def dumps(value: Any) -> str:
    """Return ``value`` as JSON text; :class:`~decimal.Decimal` as a JSON number with its own digits.

    >>> dumps({"price": Decimal("0.0500"), "tiny": Decimal("1.3E-8"), "amount": None})
    '{"price":0.05,"tiny":1.3e-8,"amount":null}'

    Raises:
        TypeError: for a float, which could not be written exactly.
    """
    if isinstance(value, str) or value is None or isinstance(value, (bool, int)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Decimal):
        return number(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dumps, value)) + "]"
    raise TypeError(f"{type(value).__name__} cannot be written exactly as JSON")


def loads(text: str | bytes) -> Any:
    """Parse JSON text; numbers with a fraction or an exponent become :class:`~decimal.Decimal`."""
    return json.loads(text, parse_float=Decimal)


def number(value: Decimal) -> str:
    """Return a finite decimal as a JSON number, without trailing zeros."""
    if value == 0:
        return "0"
    if abs(value) < _SMALL:
        digits, _, exponent = f"{value.normalize():e}".partition("e")
        return f"{digits}e{int(exponent)}"
    plain = f"{value:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
