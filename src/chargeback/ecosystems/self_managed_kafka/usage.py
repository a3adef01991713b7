"""The usage of the cluster on one day."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from chargeback.ecosystems.constructed.meter import Meter, Shares
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.settings import PRESENCE
from chargeback.ecosystems.constructed.usage import measured_usage
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings


class ClusterUsage:
    """Measures the bytes of each principal and, with a discovery query, which principals were present.

    Present principals are active: with a discovery query, the even parts of the bill are shared by all that it found
    that day.
    """

    def __init__(
        self, settings: SelfManagedKafkaSettings, metrics: BrokerMetrics, meter: Meter, measures: Collection[str]
    ) -> None:
        source = settings.identity_source
        self._cluster_id = settings.cluster_id
        self._metrics = metrics
        self._meter = meter
        self._bytes = {name: counted for name, counted in settings.measures.items() if name in measures}
        given = source.discovery_query if source.uses_metrics else None
        needed = metrics.principals("{step}") if PRESENCE in measures else None
        self._presence = given or needed

    def of(self, day: date) -> MeasuredUsage:
        """Return every measure over the day."""
        label = self._metrics.principal_label
        measures = {measure: self._measure(*counted, day) for measure, counted in self._bytes.items()}
        if self._presence:
            query = with_step(self._presence, self._meter.step)
            measures[PRESENCE] = self._meter.presence(query, label, day)
        return measured_usage(day, self._cluster_id, measures)

    def _measure(self, metric: str, of_kind: str, day: date) -> Shares:
        label = self._metrics.principal_label
        if self._metrics.counts_principals:
            return self._meter.increase_by(self._metrics.traffic(metric, of_kind), label, day)
        query = self._metrics.principal_bytes(metric, self._meter.step)
        return self._meter.total_by(query, label, day)
