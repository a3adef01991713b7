"""Units of usage, and what one of them costs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.model.money import PLACES, from_units
from chargeback.model.usage import QUANTITY_PLACES


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, and ``size``, how many of what is measured make one: a GiB is 2³⁰ bytes."""

    name: str
    size: int


_COST_PLACES: Final = PLACES


def unit_cost(amount: Decimal, usage: Decimal | None, unit: Unit) -> tuple[Decimal | None, Decimal | None]:
    """Return a usage (as measured) in units, and an amount divided by it; None for each that there is not.

    The usage is rounded to six places, half-even; the quotient is made of the exact usage and rounded to twelve.

    Raises:
        SumTooLarge: the quotient has more than 26 digits before the point.

    >>> unit_cost(Decimal("3"), Decimal(2**30) / 2, Unit("GiB", 2**30))
    (Decimal('0.500000'), Decimal('6.000000000000'))
    >>> unit_cost(Decimal("3"), Decimal(0), Unit("GiB", 2**30))
    (Decimal('0.000000'), None)
    """
    if usage is None:
        return None, None
    exact = Fraction(usage) / unit.size
    shown = from_units(round(exact * 10**QUANTITY_PLACES), QUANTITY_PLACES)
    return shown, from_units(round(Fraction(amount) / exact * 10**_COST_PLACES)) if exact else None
