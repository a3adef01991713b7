"""The bill of one day: brokers, storage, and traffic in and out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from chargeback.ecosystems.constructed.bill import Charge, coverage, for_hours, gib, gib_hours, measured
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings

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
        rates = self._rates
        if rates.compute_hourly_rate:
            brokers = for_hours(self._broker_count)
            yield Charge(CATEGORY, COMPUTE, brokers, "broker-hour", rates.compute_hourly_rate)
        if rates.storage_per_gib_hourly:
            query = with_step(self._metrics.mean_log_size(), self._meter.step)
            reading = measured(self._meter.mean(query, day), self._metrics.log_size())
            rate = rates.storage_per_gib_hourly
            yield Charge(CATEGORY, STORAGE, gib_hours(reading), "GiB-hour", rate, coverage(reading))
        for product_type, metric, rate in (
            (INGRESS, "bytes_in", rates.network_ingress_per_gib),
            (EGRESS, "bytes_out", rates.network_egress_per_gib),
        ):
            if rate:
                counters = self._metrics.traffic(metric)
                reading = measured(self._meter.increase(counters, day), counters)
                yield Charge(CATEGORY, product_type, gib(reading), "GiB", rate)
