"""The bill of one day: brokers, storage, and traffic in and out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction

from chargeback.ecosystems.constructed.bill import Charge, coverage, for_hours, gib, gib_hours, measured
from chargeback.ecosystems.constructed.meter import Meter, Reading
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.settings import PricedKind, SelfManagedKafkaSettings

CATEGORY = "KAFKA"
COMPUTE = "SELF_KAFKA_COMPUTE"
STORAGE = "SELF_KAFKA_STORAGE"
INGRESS = "SELF_KAFKA_NETWORK_INGRESS"
EGRESS = "SELF_KAFKA_NETWORK_EGRESS"


class DailyCharges:
    """Measures and prices days. Quantities with a rate of zero are neither measured nor billed."""

    def __init__(self, settings: SelfManagedKafkaSettings, metrics: BrokerMetrics, meter: Meter) -> None:
        self._broker_count = settings.broker_count
        self._rates = settings.rates
        self._kinds = settings.rates.of_kinds()
        self._metrics = metrics
        self._meter = meter

    def of(self, day: date) -> list[Charge]:
        """Return the charges of the day.

        Raises:
            SourceDataError: the day has no sample of a billed quantity.
            SourceError: as for :class:`Meter`.
        """
        return list(self._charges(day))

    def _charges(self, day: date) -> Iterator[Charge]:
        if rate := self._rates.compute_hourly_rate:
            yield Charge(CATEGORY, COMPUTE, for_hours(self._broker_count), "broker-hour", rate)
        for kind in self._kinds:
            if rate := kind.rates.storage_per_gib_hourly:
                query = with_step(self._metrics.mean_log_size(kind.matcher), self._meter.step)
                stored = measured(self._meter.mean(query, day), self._metrics.log_size())
                product = kind.product_type(STORAGE)
                yield Charge(CATEGORY, product, gib_hours(stored), "GiB-hour", rate, coverage(stored))
            for base, metric, rate in (
                (INGRESS, "bytes_in", kind.rates.network_ingress_per_gib),
                (EGRESS, "bytes_out", kind.rates.network_egress_per_gib),
            ):
                if rate:
                    yield Charge(CATEGORY, kind.product_type(base), gib(self._traffic(metric, kind, day)), "GiB", rate)

    def _traffic(self, metric: str, kind: PricedKind, day: date) -> Reading:
        """Return the bytes of a kind of topics: none if only topics of other kinds had traffic."""
        found = self._meter.increase(self._metrics.traffic(metric, kind.matcher), day)
        if found is not None:
            return found
        counters = self._metrics.traffic(metric)
        everything = self._meter.increase(counters, day) if kind.matcher else None
        return replace(measured(everything, counters), value=Fraction(0))
