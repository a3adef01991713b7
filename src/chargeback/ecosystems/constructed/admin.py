"""The brokers and topics of a cluster, listed by its admin API."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chargeback.ecosystems.constructed.identities import InventoryBuilder
from chargeback.ecosystems.constructed.settings import ResourceSource
from chargeback.ecosystems.contract import TenantContext
from chargeback.model.inventory import Resource
from chargeback.sources.kafka_admin import INTERACTIVE_TIMEOUT_SECONDS, TIMEOUT_SECONDS, KafkaAdmin, KafkaConnection

KAFKA_BROKER: Final = "kafka_broker"
KAFKA_TOPIC: Final = "kafka_topic"


def open_admin(context: TenantContext, source: ResourceSource | None) -> KafkaAdmin | None:
    """Return the cluster's admin API if it lists brokers and topics, with a short timeout if a person waits."""
    if source is None or source.source != "admin_api":
        return None
    timeout = INTERACTIVE_TIMEOUT_SECONDS if context.is_awaited else TIMEOUT_SECONDS
    return KafkaAdmin(connection(source), stop=context.stop, timeout_seconds=timeout)


def connection(source: ResourceSource) -> KafkaConnection:
    """Return the connection to the cluster's admin API."""
    password, key_password = source.sasl_password, source.ssl_key_password
    return KafkaConnection(
        bootstrap_servers=source.bootstrap_servers or "",
        security_protocol=source.security_protocol,
        sasl_mechanism=source.sasl_mechanism,
        sasl_username=source.sasl_username,
        sasl_password=password.get_secret_value() if password else None,
        ssl_ca_location=_text(source.ssl_ca_location),
        ssl_certificate_location=_text(source.ssl_certificate_location),
        ssl_key_location=_text(source.ssl_key_location),
        ssl_key_password=key_password.get_secret_value() if key_password else None,
    )


def list_parts(listing: InventoryBuilder, admin: KafkaAdmin, cluster_id: str) -> None:
    """List the brokers and topics of a cluster.

    Raises:
        SourceError: the cluster does not respond.
    """
    described = admin.describe()
    listing.resources += [
        part(cluster_id, KAFKA_BROKER, str(broker.id), host=broker.host, port=broker.port)
        for broker in described.brokers
    ]
    listing.resources += [
        part(cluster_id, KAFKA_TOPIC, topic.name, partitions=topic.partitions, replication_factor=topic.replicas)
        for topic in described.topics
    ]


def part(cluster_id: str, kind: str, name: str, **metadata: str | int) -> Resource:
    """Return a broker or topic of a cluster."""
    word = kind.removeprefix("kafka_")
    return Resource(f"{cluster_id}:{word}:{name}", kind, name, parent_id=cluster_id, metadata=metadata)


def describe(admin: KafkaAdmin) -> str:
    """Return what a check says of the admin API.

    Raises:
        SourceError: the cluster does not respond.
    """
    described = admin.describe()
    return f"cluster {described.cluster_id}: {len(described.brokers)} brokers, {len(described.topics)} topics"


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
