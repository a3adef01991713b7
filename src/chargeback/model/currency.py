"""Amounts in another currency: one rate for each UTC month.

A sum is converted after it was made: the sum of each UTC month, times the rate of that month. An amount has twelve
decimal places and a rate at most eight, so that a product has at most twenty and nothing is rounded. Conversion is
therefore linear: converted parts sum to their converted total, however an amount is divided, on every page and in
every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import Final

from chargeback.model.money import PLACES

#: The decimal places that a rate may have, and those of a converted amount.
RATE_PLACES: Final = 8
CONVERTED_PLACES: Final = PLACES + RATE_PLACES
#: Rates are smaller than this: ten digits before the decimal point.
RATE_LIMIT: Final = Decimal(10) ** 10

#: Month (its first day) → units of a currency for one unit of the bill's.
Rates = Mapping[date, Decimal]

_MONTH: Final = re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])")
# Enough digits that neither a product nor a sum of products is rounded.
_EXACT: Final = Context(prec=200)

#: The codes of ISO 4217 that name a currency in use.
CURRENCY_CODES: Final = frozenset(
    re.findall(
        r"[A-Z]{3}",
        """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF
        CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
        GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP
        LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB
        PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB
        TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER
        ZAR ZMW ZWG
        """,
    )
)


@dataclass(frozen=True)
class Conversion:
    """How amounts are converted: from the currency of the bill to ``currency``, by the ``rates`` of the months that
    have any."""

    billed: str
    currency: str
    rates: Rates

    @property
    def named_rates(self) -> dict[str, str]:
        """The rates as text, by the names of the months, ascending."""
        return {month_name(month): f"{rate:f}" for month, rate in sorted(self.rates.items())}

    def convert(self, day: date, amount: Decimal) -> Decimal:
        """Return an amount of a UTC day in the other currency, exactly; nothing needs no rate."""
        return converted(amount, self.rates[month_start(day)]) if amount else amount


def parse_month(text: str) -> date:
    """Return the first day of a month such as ``2026-10``.

    Raises:
        ValueError: it is no month.

    >>> parse_month("2026-10")
    datetime.date(2026, 10, 1)
    """
    if not _MONTH.fullmatch(text):
        raise ValueError("should be a month such as 2026-10")
    return date.fromisoformat(f"{text}-01")


def month_start(day: date) -> date:
    """Return the first day of the month of a day."""
    return day.replace(day=1)


def month_name(day: date) -> str:
    """Return the month of a day, as :func:`parse_month` reads it."""
    return day.isoformat()[:7]


def months_of(days: Iterable[date]) -> list[date]:
    """Return the first days of the months of some days, ascending."""
    return sorted({month_start(day) for day in days})


def checked_rate(rate: Decimal) -> Decimal:
    """Return ``rate`` if it can be one.

    Raises:
        ValueError: it is not above zero, or has more than ten digits before the decimal point or eight after it.

    >>> checked_rate(Decimal("0.9131"))
    Decimal('0.9131')
    """
    if not 0 < rate < RATE_LIMIT:
        raise ValueError("should be a number above 0, with at most 10 digits before the decimal point")
    if rate != rate.quantize(Decimal(1).scaleb(-RATE_PLACES), context=_EXACT):
        raise ValueError(f"should have at most {RATE_PLACES} decimal places")
    return rate


def converted(amount: Decimal, rate: Decimal) -> Decimal:
    """Return an amount times a rate, exactly.

    >>> converted(Decimal("0.333333333333"), Decimal("0.9131"))
    Decimal('0.3043666666663623')
    """
    return _EXACT.multiply(amount, rate)


def missing_months(rates: Rates, days: Iterable[date]) -> list[str]:
    """Return the months of some days that have no rate, ascending, such as ``2026-10``."""
    return [month_name(month) for month in months_of(days) if month not in rates]
