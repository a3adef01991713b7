"""``chargeback check --online`` for a self-managed cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from chargeback.ecosystems.constructed.admin import describe
from chargeback.ecosystems.constructed.check import series_of
from chargeback.ecosystems.constructed.identities import recently_seen
from chargeback.ecosystems.contract import Finding
from chargeback.ecosystems.findings import Check, CheckWarning, attempt, attempt_all
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings
from chargeback.errors import SourceDataError
from chargeback.model.days import Clock
from chargeback.sources.kafka_admin import KafkaAdmin
from chargeback.sources.prometheus import PrometheusClient


class Checks:
    """Sends one small request of each kind."""

    def __init__(
        self,
        settings: SelfManagedKafkaSettings,
        metrics: BrokerMetrics,
        client: PrometheusClient,
        admin: KafkaAdmin | None,
        now: Clock,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._client = client
        self._admin = admin
        self._now = now

    def run(self) -> Iterator[Finding]:
        """Yield one finding per metric and source. If the metrics source cannot be reached, or refuses its key, yield
        one finding for that, and one that names the checks that were skipped."""
        queries = {name: self._metrics.traffic(name) for name in ("bytes_in", "bytes_out")}
        queries["log_size"] = self._metrics.log_size()
        checks: dict[str, Check] = {
            f"metric {name}": partial(series_of, self._client, query, self._now) for name, query in queries.items()
        }
        checks["brokers"] = self._brokers
        if self._settings.identity_source.uses_metrics:
            checks["principals"] = self._principals
        yield from attempt_all(checks, lambda: self._client.given_up)
        if self._admin is not None:
            yield attempt("admin API", partial(describe, self._admin))

    def _brokers(self) -> str | CheckWarning:
        found = len(self._client.instant(self._metrics.brokers("1h"), self._now()))
        configured = self._settings.broker_count
        if not found:
            raise SourceDataError("the metrics contain no broker", source="metrics")
        if found != configured:
            return CheckWarning(f"the metrics contain {found} brokers, but broker_count bills {configured}")
        return f"{found} brokers, as broker_count says"

    def _principals(self) -> str:
        source, label = self._settings.identity_source, self._metrics.principal_label
        query = source.discovery_query or self._metrics.principals("{step}")
        hours = source.discovery_window_hours
        found = recently_seen(self._client, query, label, hours, self._now)
        if not found:
            raise SourceDataError(
                f"no series with the label {label} within {hours} h: the rule files of the JMX exporter give byte"
                " counters no principal; with quotas, metric_names.principals: quotas takes the gauges per user"
            )
        return f"{len(found)} within {hours} h"
