"""Makes billing lines from quantities and rates.

The cost of a product type on one day is ``quantity × rate``, calculated as an exact fraction and rounded once,
half-even, to twelve decimals; ``original_text`` keeps the exact value if rounding changed it. Hourly lines are that
rounded cost split over the 24 hours by largest remainder, so that they add up to the daily one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

from chargeback.allocation.split import split_exactly
from chargeback.ecosystems.constructed.meter import Reading
from chargeback.ecosystems.constructed.settings import ConstructedSettings
from chargeback.ecosystems.contract import GatheredDay
from chargeback.errors import SourceDataError, SourcePartial, SourceTooLarge, SumTooLarge
from chargeback.model.billing import BillingLine, partly_measured
from chargeback.model.days import DayRange, start_of_day
from chargeback.model.money import PLACES, from_units, to_amount

HOURS = 24
GIB = 2**30
_HOUR_NAMES = tuple(f"{hour:02d}" for hour in range(HOURS))
_ONE = 10**PLACES


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one product type on one day: ``quantity`` of ``unit`` at ``rate`` each."""

    product_category: str
    product_type: str
    quantity: Fraction
    unit: str
    rate: Decimal
    description: str | None = None


@dataclass(frozen=True, slots=True)
class LineDefaults:
    """The fields that all billing lines of a tenant share."""

    resource_id: str
    resource_type: str
    resource_name: str | None
    currency: str
    granularity: str

    @classmethod
    def of(cls, settings: ConstructedSettings, resource_type: str, currency: str) -> LineDefaults:
        """Return the fields for the one resource that everything is billed for."""
        return cls(
            resource_id=settings.cluster_id,
            resource_type=resource_type,
            resource_name=settings.display_name,
            currency=currency,
            granularity=settings.chargeback_granularity,
        )


def for_hours(count: int) -> Fraction:
    """Return the unit-hours of a fixed number of units over a day."""
    return Fraction(count * HOURS)


def gib_hours(mean_bytes: Reading) -> Fraction:
    """Return the GiB-hours of the stored bytes, averaged over a day."""
    return mean_bytes.value * HOURS / GIB


def gib(total_bytes: Reading) -> Fraction:
    """Return the GiB transferred in a day."""
    return total_bytes.value / GIB


def measured(reading: Reading | None, what: str) -> Reading:
    """Return the reading.

    Raises:
        SourceDataError: the day has no sample of it, which is not the same as a quantity of zero.
    """
    if reading is None:
        raise SourceDataError(
            f"no sample of {what} on this day, so its cost is unknown (is lookback_days too long?)",
            source="metrics",
        )
    return reading


def coverage(reading: Reading) -> str | None:
    """Return the measured part of the day, or None if it is the whole day."""
    if reading.steps == reading.expected:
        return None
    return partly_measured(reading.steps, reading.expected)


def gather(
    days: DayRange, charges: Callable[[date], Sequence[Charge]], defaults: LineDefaults
) -> Iterator[GatheredDay]:
    """Yield the bill of each day. If a day cannot be measured, or its data cannot be trusted, it has an error.

    Raises:
        SourceError: the metrics source cannot be reached, or refuses a query permanently.
    """
    for day in days:
        try:
            lines = [line for charge in charges(day) for line in billing_lines(charge, defaults, day)]
        except (SourceDataError, SourcePartial, SourceTooLarge) as error:
            yield GatheredDay(day, error=str(error))
        else:
            yield GatheredDay(day, lines)


def billing_lines(charge: Charge, defaults: LineDefaults, day: date) -> list[BillingLine]:
    """Return the line of a charge, or its 24 hourly lines.

    Raises:
        SourceDataError: the cost does not fit 26 digits before the point.
    """
    exact_cost = charge.quantity * Fraction(charge.rate)
    cost, quantity = _units(exact_cost), _units(charge.quantity)
    exact = (("total_cost", exact_cost, cost), ("quantity", charge.quantity, quantity))
    original = ";".join(f"{name}={exact_text(value)}" for name, value, units in exact if value * _ONE != units) or None
    if defaults.granularity == "hourly":
        parts = list(enumerate(zip(_hourly(cost), _hourly(quantity), strict=True)))
    else:
        parts = [(0, (cost, quantity))]
    return [
        BillingLine(
            day=day,
            timestamp=start_of_day(day) + timedelta(hours=hour),
            resource_id=defaults.resource_id,
            resource_type=defaults.resource_type,
            resource_name=defaults.resource_name,
            product_category=charge.product_category,
            product_type=charge.product_type,
            quantity=from_units(its_quantity),
            unit=charge.unit,
            unit_price=to_amount(charge.rate),
            total_cost=from_units(its_cost),
            currency=defaults.currency,
            granularity=defaults.granularity,
            description=charge.description,
            original_text=original,
        )
        for hour, (its_cost, its_quantity) in parts
    ]


def exact_text(value: Fraction) -> str:
    """Return a fraction without loss: as a decimal if that is finite, else as ``numerator/denominator``.

    >>> exact_text(Fraction(1, 8)), exact_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
    rest, places = value.denominator, 0
    for factor in (2, 5):
        count = 0
        while rest % factor == 0:
            rest //= factor
            count += 1
        places = max(places, count)
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = f"{value.numerator * 10**places // value.denominator:0{places + 1}d}"
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


def _units(value: Fraction) -> int:
    """Return units of 10⁻¹², rounded half-even."""
    units: int = round(value * _ONE)
    try:
        from_units(units)
    except SumTooLarge:
        raise SourceDataError("a quantity or cost is too large: it has more than 26 digits before the point") from None
    return units


def _hourly(units: int) -> list[int]:
    return [share for _, share in split_exactly(units, [(hour, 1) for hour in _HOUR_NAMES])]
