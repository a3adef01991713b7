"""Queries for the brokers' metrics of one cluster, with the names and labels of the tenant's exporter."""

from __future__ import annotations

from datetime import timedelta

from chargeback.ecosystems.constructed.promql import mentions, select
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings
from chargeback.sources.prometheus import render_duration

_MINUTE = timedelta(minutes=1)


class BrokerMetrics:
    """Writes the queries."""

    def __init__(self, settings: SelfManagedKafkaSettings) -> None:
        self._names = settings.metric_names
        self._matchers = settings.metric_names.matchers or ""
        self._topic = settings.label_names.topic
        self._broker = settings.label_names.broker
        self.principal_label = settings.principal_label

    def traffic(self, metric: str, of_kind: str = "") -> str:
        """Return the byte counters (``bytes_in`` or ``bytes_out``), one series per topic and broker; ``of_kind`` are
        the matchers of a kind of topics.

        The brokers also export the sum over all topics, as the same metric without a topic: with it every byte would
        count twice, so it is excluded, unless the configured matchers have the topic label.
        """
        name = self._names.name(metric)
        per_topic = "" if mentions(name, self._topic) else f'{self._topic}!=""'
        return select(name, self._matchers, per_topic, of_kind)

    def log_size(self, of_kind: str = "") -> str:
        """Return the size of each log: one series per partition and replica. Replicas use disk, so all of them
        count."""
        return select(self._names.name("log_size"), self._matchers, of_kind)

    def mean_log_size(self, of_kind: str = "") -> str:
        """Return the bytes on all disks; each log counts with its mean over the step, so that a missed scrape omits
        none. A kind of topics has a value, perhaps zero, whenever any topic has: its mean is one over the same time."""
        of_all = f"sum(avg_over_time({self.log_size()}[{{step}}]))"
        return f"sum(avg_over_time({self.log_size(of_kind)}[{{step}}])) or 0 * {of_all}" if of_kind else of_all

    @property
    def counts_principals(self) -> bool:
        """Return whether the byte counters name the principals; otherwise the gauges of the quotas do."""
        return self._names.principals == "counters"

    def principal_bytes(self, measure: str, step: timedelta) -> str:
        """Return bytes per user and step, from the gauges of the quotas: bytes per second, minute by minute."""
        quota = select(self._names.name(measure.replace("bytes_", "quota_")), self._matchers, self._named())
        minutes = f"sum_over_time({quota}[{render_duration(step)}:{render_duration(_MINUTE)}])"
        return f"sum by ({self.principal_label}) ({minutes}) * {_MINUTE.seconds}"

    def principals(self, window: str) -> str:
        """Return the principals of the traffic within a window, such as ``1h`` or ``{step}``."""
        kind = "bytes" if self.counts_principals else "quota"
        matchers = (self._matchers, self._named())
        both = (
            f"last_over_time({select(self._names.name(f'{kind}_{way}'), *matchers)}[{window}])" for way in ("in", "out")
        )
        return f"group by ({self.principal_label}) ({' or '.join(both)})"

    def topics(self, window: str) -> str:
        """Return every topic that has a log."""
        return self._values_of(self._topic, window, "log_size")

    def brokers(self, window: str) -> str:
        """Return every broker that has a log or traffic, named by the scraped instance. A new broker has no log yet."""
        return self._values_of(self._broker, window, "log_size", "bytes_in", "bytes_out")

    def _values_of(self, label: str, window: str, *metrics: str) -> str:
        series = (select(self._names.name(metric), self._matchers, f'{label}!=""') for metric in metrics)
        return f"group by ({label}) ({' or '.join(f'last_over_time({each}[{window}])' for each in series)})"

    def _named(self) -> str:
        return f'{self.principal_label}!=""'
