"""Amounts in cents: two-place amounts that add up, by largest remainder."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.model.money import PLACES, from_units, to_units, total

_CENT_PLACES: Final = 2
_UNITS: Final = 10 ** (PLACES - _CENT_PLACES)


def rounded_cents(amount: Decimal) -> Decimal:
    """Return an amount rounded half-even to cents.

    >>> rounded_cents(Decimal("0.125")), rounded_cents(Decimal("-0.375"))
    (Decimal('0.12'), Decimal('-0.38'))
    """
    return from_units(round(Fraction(to_units(amount), _UNITS)), _CENT_PLACES)


def to_cents(amounts: Sequence[Decimal], whole: Decimal | None = None) -> list[Decimal]:
    """Return each amount in cents, so that they sum to ``whole``, or to the rounded sum of the amounts.

    Amounts are rounded down; the cents that are left go one each to the largest remainders, and to the first of equal
    ones. So no amount differs from its exact value by a cent or more, and amounts of whole cents stay as they are.

    Raises:
        ValueError: ``whole`` is not the sum of the amounts, rounded up or down.

    >>> [str(cents) for cents in to_cents([Decimal("0.334"), Decimal("0.333"), Decimal("0.333")])]
    ['0.34', '0.33', '0.33']
    """
    parts = [divmod(to_units(amount), _UNITS) for amount in amounts]
    wanted = rounded_cents(total(amounts)) if whole is None else whole
    left = to_units(wanted) // _UNITS - sum(cents for cents, _ in parts)
    by_remainder = sorted((place for place, (_, rest) in enumerate(parts) if rest), key=lambda place: -parts[place][1])
    if not 0 <= left <= len(by_remainder):
        raise ValueError(f"{wanted} is not the sum of the amounts, {total(amounts)}, rounded to cents")
    raised = set(by_remainder[:left])
    return [from_units(cents + (place in raised), _CENT_PLACES) for place, (cents, _) in enumerate(parts)]
