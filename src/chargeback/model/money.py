"""Money: exact decimals with twelve places, from the provider's response to the API.

An amount is a :class:`~decimal.Decimal` that fits ``DECIMAL(38,12)``: up to 26 digits before the point and twelve after
it. For exact arithmetic it is converted to *units*, integers of 10⁻¹². A sum that is shown obeys the same limit; see
:func:`checked_sum`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from functools import reduce
from typing import Any

from chargeback.errors import SumTooLarge

PRECISION = 38
PLACES = 12
#: The decimal places of a sum that cost categories share out: an amount times a weight of twelve places.
SHARED_PLACES = 2 * PLACES
UNIT = Decimal(1).scaleb(-PLACES)
_ZERO = Decimal(0).scaleb(-PLACES)
LIMIT = Decimal(10) ** (PRECISION - PLACES)

# Enough digits that neither a product of two amounts nor an input with very many digits is rounded.
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)


def parse_decimal(text: str) -> Decimal:
    """Return the finite decimal in ``text``.

    Raises:
        ValueError: ``text`` is not a finite number.

    >>> parse_decimal("1.5e2")
    Decimal('1.5E+2')
    """
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not a finite number")
    return value


def to_amount(value: Decimal) -> Decimal:
    """Return ``value`` as an amount of twelve places, rounded half-even.

    Raises:
        ValueError: the value needs more than 26 digits before the point.

    >>> to_amount(Decimal("0.0000000000005"))
    Decimal('0E-12')
    >>> to_amount(Decimal("1.25"))
    Decimal('1.250000000000')
    """
    if value.copy_abs() >= LIMIT:  # abs() itself would round to 28 digits
        raise ValueError(f"{value} does not fit DECIMAL({PRECISION},{PLACES})")
    return value.quantize(UNIT, context=_EXACT)


def is_exact(value: Decimal) -> bool:
    """Return whether ``value`` has at most twelve decimal places."""
    return to_amount(value) == value


def to_units(amount: Decimal) -> int:
    """Return an amount as an integer of 10⁻¹².

    >>> to_units(Decimal("-0.5"))
    -500000000000
    """
    return int(to_amount(amount).scaleb(PLACES, context=_EXACT))


def to_shared_units(amount: Decimal) -> int:
    """Return a sum with all its digits, as an integer of 10⁻²⁴.

    >>> to_shared_units(Decimal("-0.5"))
    -500000000000000000000000
    """
    return int(amount.scaleb(SHARED_PLACES, context=_EXACT))


def from_units(units: int, places: int = PLACES) -> Decimal:
    """Return the amount of an integer of 10⁻¹², or the number of an integer of other ``places``, exactly.

    Raises:
        SumTooLarge: the amount has more than 26 digits before the point.

    >>> from_units(10**30 + 1, 6)
    Decimal('1000000000000000000000000.000001')
    """
    value = Decimal(units).scaleb(-places, context=_EXACT)
    return checked_sum(value) if places == PLACES else value


def checked_sum(value: Decimal) -> Decimal:
    """Return ``value`` if it fits an amount: the one rule for sums, in Python as in the query engine.

    Raises:
        SumTooLarge: it has more than 26 digits before the point.
    """
    if value.copy_abs() >= LIMIT:
        raise SumTooLarge
    return value


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum of any size, with at least twelve places; Python's addition would round to 28 digits. For
    what must not fail at a wrong amount: calculating days and verifying them.

    >>> exact_sum([LIMIT, LIMIT])
    Decimal('200000000000000000000000000.000000000000')
    """
    return reduce(_EXACT.add, amounts, _ZERO)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum, with at least twelve places.

    Raises:
        SumTooLarge: it has more than 26 digits before the point.

    >>> total([Decimal("0.1"), Decimal("-0.3")])
    Decimal('-0.200000000000')
    """
    return checked_sum(exact_sum(amounts))


def difference(after: Decimal, before: Decimal) -> Decimal:
    """Return ``after`` minus ``before``, exactly.

    Raises:
        SumTooLarge: it has more than 26 digits before the point.

    >>> difference(Decimal("0.1"), Decimal("0.3"))
    Decimal('-0.200000000000')
    """
    return total([after, before.copy_negate()])


def half_of_changes(changes: Iterable[Decimal]) -> Decimal:
    """Return half of the sum of changes without their signs: what moved from one to another, if they sum to zero. It
    may be of any size.

    >>> half_of_changes([Decimal("-0.3"), Decimal("0.3")])
    Decimal('0.3000000000000')
    """
    return _EXACT.multiply(exact_sum(change.copy_abs() for change in changes), Decimal("0.5"))


def half_of_differences(before: Mapping[Any, Decimal], after: Mapping[Any, Decimal]) -> Decimal:
    """Return half of what differs between sums by some key; what is absent is zero."""
    zero = Decimal(0)
    return half_of_changes(
        difference(after.get(key, zero), before.get(key, zero)) for key in before.keys() | after.keys()
    )


def part_of(amount: Decimal, count: int) -> Decimal | None:
    """Return one of ``count`` equal parts of an amount, rounded half-even to twelve places; None if there are none.

    >>> part_of(Decimal("1"), 3)
    Decimal('0.333333333333')
    """
    return _EXACT.divide(amount, Decimal(count)).quantize(UNIT, context=_EXACT) if count else None


def render(value: Decimal) -> str:
    """Return plain notation: no exponent, at least two decimals, no further trailing zeros.

    >>> render(Decimal("1E+3")), render(Decimal("0.500")), render(Decimal("-0.0000012"))
    ('1000.00', '0.50', '-0.0000012')
    >>> render(Decimal("-0.00"))
    '0.00'
    """
    if not value:
        return "0.00"
    text = f"{value:f}"
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def canonical(value: Decimal | None) -> str:
    """Return one text per number, for fingerprints: ``1.50`` and ``1.5`` both give ``1.50``; None gives an empty
    text."""
    return "" if value is None else render(value)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; numbers with a point or an exponent become exact decimals, never floats.

    Raises:
        ValueError: the text is not JSON, or contains ``NaN`` or ``Infinity``.

    >>> parse_json('{"amount": 0.1000}')
    {'amount': Decimal('0.1000')}
    """
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
