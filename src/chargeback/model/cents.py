"""Amounts in cents: rounded to the minor unit of their currency so that they add up, by largest remainder.

A cent stands for the minor unit of any currency: most have two decimal places, the yen has none, the Kuwaiti dinar has
three.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.model.money import from_units, total

_USUAL: Final = 2
#: The currencies whose minor unit has another number of decimal places than two. Source: ISO 4217, list one, "Minor
#: unit", as published by its maintenance agency, SIX.
_OTHERS: Final = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_PLACES: Final = {currency: places for places, currencies in _OTHERS.items() for currency in currencies.split()}


def minor_places(currency: str) -> int:
    """Return how many decimal places the minor unit of a currency has; 2 for a code that ISO 4217 does not know.

    >>> minor_places("USD"), minor_places("JPY"), minor_places("KWD")
    (2, 0, 3)
    """
    return _PLACES.get(currency, _USUAL)


def minor_unit(currency: str) -> Decimal:
    """Return the amount of one minor unit of a currency.

    >>> minor_unit("USD"), minor_unit("JPY")
    (Decimal('0.01'), Decimal('1'))
    """
    return Decimal(1).scaleb(-minor_places(currency))


def rounded_cents(amount: Decimal, currency: str) -> Decimal:
    """Return an amount rounded half-even to the minor unit of its currency.

    >>> rounded_cents(Decimal("0.125"), "USD"), rounded_cents(Decimal("-0.375"), "USD")
    (Decimal('0.12'), Decimal('-0.38'))
    >>> rounded_cents(Decimal("122769.27"), "JPY"), rounded_cents(Decimal("1.2345"), "KWD")
    (Decimal('122769'), Decimal('1.234'))
    """
    places = minor_places(currency)
    return from_units(round(Fraction(amount) * 10**places), places)


def to_cents(amounts: Sequence[Decimal], currency: str, whole: Decimal | None = None) -> list[Decimal]:
    """Return each amount in cents, so that they sum to ``whole``, or to the rounded sum of the amounts.

    Amounts are rounded down; the cents that are left go one each to the largest remainders, and to the first of equal
    ones. So no amount differs from its exact value by a cent or more, and amounts of whole cents stay as they are.

    Raises:
        ValueError: ``whole`` is not the sum of the amounts, rounded up or down.

    >>> [str(cents) for cents in to_cents([Decimal("0.334"), Decimal("0.333"), Decimal("0.333")], "USD")]
    ['0.34', '0.33', '0.33']
    >>> [str(cents) for cents in to_cents([Decimal("0.334"), Decimal("0.333"), Decimal("0.333")], "JPY")]
    ['1', '0', '0']
    """
    places = minor_places(currency)
    parts = [divmod(Fraction(amount) * 10**places, 1) for amount in amounts]
    wanted = rounded_cents(total(amounts), currency) if whole is None else whole
    left = int(Fraction(wanted) * 10**places) - sum(cents for cents, _ in parts)
    by_remainder = sorted((place for place, (_, rest) in enumerate(parts) if rest), key=lambda place: -parts[place][1])
    if not 0 <= left <= len(by_remainder):
        raise ValueError(f"{wanted} is not the sum of the amounts, {total(amounts)}, rounded to cents")
    raised = set(by_remainder[:left])
    return [from_units(cents + (place in raised), places) for place, (cents, _) in enumerate(parts)]


def render_cents(cents: Decimal) -> str:
    """Return an amount in cents with all decimal places of its minor unit, and no others.

    >>> render_cents(from_units(1500, 3)), render_cents(from_units(0, 0)), render_cents(from_units(-5, 2))
    ('1.500', '0', '-0.05')
    """
    return f"{cents:f}"
