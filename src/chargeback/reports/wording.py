"""Amounts, days and measurements for sentences: rounded, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final

from chargeback.allocation.methods import AllocationMethod
from chargeback.model.cents import minor_places
from chargeback.model.inventory import UNALLOCATED

_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_EVEN)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_BYTES: Final = (("PB", 15), ("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3))


@dataclass(frozen=True)
class DisplayNames:
    """The display names of identities and resources; ids without one are left out."""

    identities: Mapping[str, str]
    resources: Mapping[str, str]


def measured(method: AllocationMethod, value: Decimal, whole: Decimal, verb: str) -> str:
    """Return a measurement in words, such as «wrote 12.3 of 45.6 GB»."""
    if not all("bytes" in measure for measure in method.arguments):
        return f"used {short(value)} of {short(whole)} {method.measured}"
    unit, power = next(((name, power) for name, power in _BYTES if whole >= Decimal(10) ** power), ("bytes", 0))
    mine, total = (short(each.scaleb(-power, _WIDE)) for each in (value, whole))
    return f"{verb} {mine} of {total} {unit}"


def short(value: Decimal) -> str:
    """Return a quantity with three significant digits, or all digits before the point.

    >>> short(Decimal("12345.6")), short(Decimal("0.012345"))
    ('12,346', '0.0123')
    """
    places = max(0, 2 - value.adjusted()) if value else 0
    text = f"{value.quantize(Decimal(1).scaleb(-places), context=_WIDE):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def money_text(amount: Decimal, currency: str, *, with_currency: bool = True) -> str:
    """Return an amount rounded to the minor unit of its currency; a smaller one with two significant digits.

    >>> money_text(Decimal("-1234.567"), "USD"), money_text(Decimal("0.000123"), "USD", with_currency=False)
    ('-1,234.57 USD', '0.00012')
    >>> money_text(Decimal("122769.27"), "JPY"), money_text(Decimal("1.5"), "KWD")
    ('122,769 JPY', '1.500 KWD')
    """
    places = minor_places(currency)
    if amount and amount.adjusted() < -places:
        places = 1 - amount.adjusted()
    text = f"{amount.quantize(Decimal(1).scaleb(-places), context=_WIDE):,f}"
    return f"{text} {currency}" if with_currency else text


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "day"), counted(2, "day")
    ('1 day', '2 days')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def percent(share: Decimal) -> str:
    """Return a share, such as «70 %»."""
    return f"{short(share.scaleb(2, _WIDE))} %"


def calendar_day(day: date) -> str:
    """Return a day, such as «4 November 2026»."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def month_text(period: str) -> str:
    """Return the month of a period.

    >>> month_text("2026-11")
    'November 2026'
    """
    year, _, month = period.partition("-")
    return f"{_MONTHS[int(month) - 1]} {year}"


def name(names: Mapping[str, str], id_: str) -> str:
    """Return the display name of an id, or the id."""
    return "UNALLOCATED" if id_ == UNALLOCATED else names.get(id_, id_)


def start(text: str) -> str:
    """Return a text with the first letter in upper case."""
    return f"T{text[1:]}" if text.startswith("the ") else text


def rounded(ratio: Fraction, places: int) -> Decimal:
    """Return a fraction with some decimal places."""
    return Decimal(round(ratio * 10**places)).scaleb(-places, _WIDE)
