"""The bill and the usage of one day, from the user's own queries."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from fractions import Fraction

from chargeback.ecosystems.constructed.bill import Charge, coverage, for_hours, gib, gib_hours, measured
from chargeback.ecosystems.constructed.meter import Meter, Shares
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.settings import PRESENCE
from chargeback.ecosystems.constructed.usage import measured_usage
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.ecosystems.generic_metrics_only.settings import (
    CostType,
    Fixed,
    GenericMetricsSettings,
    StorageGib,
)
from chargeback.errors import SourceDataError


class Measuring:
    """Measures days. ``meter`` may be None if nothing is measured: fixed costs, static identities."""

    def __init__(self, settings: GenericMetricsSettings, meter: Meter | None, measures: Collection[str]) -> None:
        self._settings = settings
        self._meter = meter
        self._measures = measures

    def charges(self, day: date) -> list[Charge]:
        """Return the charges of the day. Cost types with a rate of zero are neither measured nor billed.

        Raises:
            SourceDataError: the day has no sample of a billed quantity.
            SourceError: as for :class:`Meter`.
        """
        return [self._charge(each, day) for each in self._settings.cost_types if each.rate]

    def _charge(self, cost_type: CostType, day: date) -> Charge:
        quantity, unit, seen = self._quantity(cost_type, day)
        return Charge(cost_type.product_category, cost_type.name, quantity, unit, cost_type.rate, seen)

    def _quantity(self, cost_type: CostType, day: date) -> tuple[Fraction, str, str | None]:
        """Return the quantity, its unit, and the measured part of the day."""
        asked, meter = cost_type.cost_quantity, self._meter
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

    def usage(self, day: date) -> MeasuredUsage:
        """Return usage and presence: with a discovery query, every identity that it found that day is active."""
        settings, meter = self._settings, self._meter
        measures: dict[str, Shares] = {}
        if meter is None:
            return measured_usage(day, settings.cluster_id, measures)
        for each in settings.cost_types:
            if each.allocation_query is not None and each.measure in self._measures:
                label = each.allocation_label or settings.identity_label
                measures[each.measure] = meter.total_by(with_step(each.allocation_query, meter.step), label, day)
        source = settings.identity_source
        if source.uses_metrics and source.discovery_query:
            query = with_step(source.discovery_query, meter.step)
            measures[PRESENCE] = meter.presence(query, settings.identity_label, day)
        return measured_usage(day, settings.cluster_id, measures)
