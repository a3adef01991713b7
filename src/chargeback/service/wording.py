"""Amounts, days and measurements as sentences have them: rounded, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final

from chargeback.allocation.methods import AllocationMethod
from chargeback.model.inventory import UNALLOCATED

_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_EVEN)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_BYTES: Final = (("PB", 15), ("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3))


def measure_text(method: AllocationMethod) -> str:
    """Return what a method measures: «bytes», or the names of its measures, such as «retained bytes»."""
    measures = [measure.removeprefix("topic_") for measure in method.arguments]
    if all(measure.startswith("bytes") for measure in measures):
        return "bytes"
    return " and ".join(measure.replace("_", " ") for measure in measures)


def measured(method: AllocationMethod, value: Decimal, whole: Decimal, verb: str) -> str:
    """Return what was measured, such as «wrote 12.3 of 45.6 GB»."""
    if not all("bytes" in measure for measure in method.arguments):
        return f"used {short(value)} of {short(whole)} {measure_text(method)}"
    unit, power = next(((name, power) for name, power in _BYTES if whole >= Decimal(10) ** power), ("bytes", 0))
    mine, total = (short(each.scaleb(-power, _WIDE)) for each in (value, whole))
    return f"{verb} {mine} of {total} {unit}"


def short(value: Decimal) -> str:
    """Return a quantity with three significant digits, or all digits before the point."""
    places = max(0, 2 - value.adjusted()) if value else 0
    text = f"{value.quantize(Decimal(1).scaleb(-places), context=_WIDE):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def money_text(amount: Decimal, currency: str = "") -> str:
    """Return an amount rounded to cents; a smaller one with two significant digits.

    >>> money_text(Decimal("-1234.567"), "USD"), money_text(Decimal("0.000123"))
    ('-1234.57 USD', '0.00012')
    """
    places = 2 if not amount or amount.adjusted() >= -2 else 1 - amount.adjusted()
    text = f"{amount.quantize(Decimal(1).scaleb(-places), context=_WIDE):f}"
    return f"{text} {currency}".strip()


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
    """Return a text as it begins a sentence."""
    return f"T{text[1:]}" if text.startswith("the ") else text


def rounded(ratio: Fraction, places: int) -> Decimal:
    """Return a fraction with some decimal places."""
    return Decimal(round(ratio * 10**places)).scaleb(-places, _WIDE)
