"""The inventory of one cluster: itself, its brokers, its topics, and its users."""

from __future__ import annotations

from chargeback.ecosystems.constructed.admin import KAFKA_BROKER, KAFKA_TOPIC, list_parts, part
from chargeback.ecosystems.constructed.identities import InventoryBuilder, list_discovered, list_static
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings
from chargeback.model.days import Clock
from chargeback.model.inventory import KAFKA_CLUSTER, ListedInventory, Resource
from chargeback.sources.kafka_admin import KafkaAdmin
from chargeback.sources.prometheus import PrometheusClient


class ClusterInventory:
    """Lists one cluster; ``admin`` is its admin API, if that is the source of brokers and topics."""

    def __init__(
        self,
        settings: SelfManagedKafkaSettings,
        metrics: BrokerMetrics,
        client: PrometheusClient,
        admin: KafkaAdmin | None,
        now: Clock,
    ) -> None:
        self._settings = settings
        self._cluster_id = settings.cluster_id
        self._metrics = metrics
        self._client = client
        self._admin = admin
        self._now = now

    def gather(self) -> ListedInventory:
        """Return the present inventory. Brokers and topics that cannot be listed remain as they are stored."""
        settings, listing = self._settings, InventoryBuilder()
        listing.resources.append(self._cluster())
        listing.complete.add(KAFKA_CLUSTER)
        listing.attempt([KAFKA_BROKER, KAFKA_TOPIC], lambda: self._parts(listing))
        source = settings.identity_source
        if source.static_identities:
            list_static(listing, source, self._cluster_id)
        if source.uses_metrics:
            query = source.discovery_query or self._metrics.principals("{step}")
            list_discovered(listing, source, self._client, query, settings.principal_label, self._now)
        return listing.listed(required=[KAFKA_CLUSTER])

    def _cluster(self) -> Resource:
        settings = self._settings
        name = settings.display_name or settings.cluster_id
        metadata = {"region": settings.region, "broker_count": settings.broker_count}
        return Resource(self._cluster_id, KAFKA_CLUSTER, name, metadata=metadata)

    def _parts(self, listing: InventoryBuilder) -> None:
        if self._admin is None:
            self._by_metrics(listing)
        else:
            list_parts(listing, self._admin, self._cluster_id)

    def _by_metrics(self, listing: InventoryBuilder) -> None:
        hours = f"{self._settings.identity_source.discovery_window_hours}h"
        labels = self._settings.label_names
        brokers = self._values(self._metrics.brokers(hours), labels.broker)
        topics = self._values(self._metrics.topics(hours), labels.topic)
        listing.resources += [part(self._cluster_id, KAFKA_BROKER, name) for name in brokers]
        listing.resources += [part(self._cluster_id, KAFKA_TOPIC, name) for name in topics]

    def _values(self, query: str, label: str) -> list[str]:
        found = (sample.labels.get(label) for sample in self._client.instant(query, self._now()))
        return sorted({name for name in found if name})
