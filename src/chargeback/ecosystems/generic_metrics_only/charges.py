"""The charges of one day, from the user's own queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from chargeback.ecosystems.constructed.bill import Charge, coverage, for_hours, gib, gib_hours, measured
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.generic_metrics_only.settings import CostType, Fixed, StorageGib
from chargeback.errors import SourceDataError


def charges(cost_types: Sequence[CostType], meter: Meter | None, day: date) -> list[Charge]:
    """Return the charges of a day. Cost types with a rate of zero are neither measured nor billed. ``meter`` may be
    None if all quantities are fixed.

    Raises:
        SourceDataError: the day has no sample of a billed quantity.
        SourceError: as for :class:`Meter`.
    """
    return [_charge(each, meter, day) for each in cost_types if each.rate]


def _charge(cost_type: CostType, meter: Meter | None, day: date) -> Charge:
    quantity, unit, seen = _quantity(cost_type, meter, day)
    return Charge(cost_type.product_category, cost_type.name, quantity, unit, cost_type.rate, seen)


def _quantity(cost_type: CostType, meter: Meter | None, day: date) -> tuple[Fraction, str, str | None]:
    """Return the quantity, its unit, and the measured part of the day."""
    asked = cost_type.cost_quantity
    if isinstance(asked, Fixed):
        return for_hours(asked.count), "hour", None
    if meter is None:
        raise SourceDataError(f"there is no metrics source to measure {cost_type.name}", source="metrics")
    query = with_step(asked.query, meter.step)
    if isinstance(asked, StorageGib):
        reading = measured(meter.mean(query, day), cost_type.name)
        return gib_hours(reading), "GiB-hour", coverage(reading)
    reading = measured(meter.total(query, day), cost_type.name)
    return gib(reading), "GiB", coverage(reading)
