"""The inventory of a cluster, from its metrics and from the cluster itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chargeback.ecosystems.constructed.admin import connection
from chargeback.ecosystems.constructed.settings import ResourceSource
from chargeback.ecosystems.contract import TenantContext
from chargeback.model.inventory import ListedInventory
from chargeback.settings import FOLDER
from tests.ecosystems.self_managed_kafka.conftest import gatherer
from tests.support.kafka import MockCluster, closed_port
from tests.support.prometheus import RealPrometheus


def listed(context: TenantContext, prometheus: RealPrometheus, **more: Any) -> ListedInventory:
    """What is listed now."""
    with gatherer(context, prometheus.url, **more) as opened:
        return opened.inventory()


@pytest.fixture(scope="module")
def cluster() -> MockCluster:
    """A cluster that speaks the Kafka protocol."""
    return MockCluster("orders", "payments")


def test_from_the_metrics(context: TenantContext, prometheus: RealPrometheus) -> None:
    """The cluster, the brokers and topics that have logs, and the principals that wrote or read."""
    found = listed(context, prometheus, display_name="Production", region="eu")
    resources = [(each.resource_id, each.resource_type, each.parent_id) for each in found.inventory.resources]
    assert resources == [
        ("kafka-prod", "kafka_cluster", None),
        ("kafka-prod:broker:b1:7071", "kafka_broker", "kafka-prod"),
        ("kafka-prod:broker:b2:7071", "kafka_broker", "kafka-prod"),
        ("kafka-prod:topic:orders", "kafka_topic", "kafka-prod"),
    ]
    assert found.inventory.resources[0].display_name == "Production"
    assert found.inventory.resources[0].metadata == {"region": "eu", "broker_count": 2}
    assert [each.identity_id for each in found.inventory.identities] == ["alice", "bob", "carol"]
    assert found.complete == {"kafka_cluster", "kafka_broker", "kafka_topic"}
    assert found.partial == {"principal"}
    assert found.failures == {}


def test_from_the_cluster_itself(context: TenantContext, prometheus: RealPrometheus, cluster: MockCluster) -> None:
    """Over the Kafka protocol brokers have their own ids, and topics their partitions and replicas."""
    source = {"source": "admin_api", "bootstrap_servers": cluster.bootstrap_servers}
    found = listed(context, prometheus, resource_source=source).inventory.resources
    assert [each.resource_id for each in found] == [
        "kafka-prod",
        *(f"kafka-prod:broker:{number}" for number in (1, 2, 3)),
        "kafka-prod:topic:orders",
        "kafka-prod:topic:payments",
    ]
    assert found[1].metadata == {"host": "127.0.0.1", "port": cluster.addresses[0][1]}
    assert found[-1].metadata == {"partitions": 4, "replication_factor": 3}


def test_a_cluster_that_does_not_answer(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Brokers and topics stay as they were known; the cluster and the principals are listed all the same."""
    source = {"source": "admin_api", "bootstrap_servers": f"127.0.0.1:{closed_port()}"}
    found = listed(context, prometheus, resource_source=source)
    assert found.failures.keys() == {"kafka_broker", "kafka_topic"}
    assert "no response within" in found.failures["kafka_topic"]
    assert found.complete == {"kafka_cluster"}
    assert found.partial == {"principal"}
    assert found.required == {"kafka_cluster"}


def test_static_and_discovered_identities(context: TenantContext, prometheus: RealPrometheus) -> None:
    """``static`` takes the configured ones only, ``both`` adds those of the metrics."""
    given = {"static_identities": [{"identity_id": "team-a", "identity_type": "team"}]}
    static = listed(context, prometheus, identity_source={"source": "static", **given})
    both = listed(context, prometheus, identity_source={"source": "both", **given})
    assert [each.identity_id for each in static.inventory.identities] == ["team-a"]
    assert [each.identity_id for each in both.inventory.identities] == ["team-a", "alice", "bob", "carol"]
    assert [each.resource_id for each in both.inventory.grants] == ["kafka-prod"]


def test_the_connection_takes_every_key() -> None:
    """What is configured reaches the library, secrets included; files are found beside the configuration."""
    source = ResourceSource.model_validate(
        {
            "source": "admin_api",
            "bootstrap_servers": "k:9093",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": "reader",
            "sasl_password": "hush",
            "ssl_ca_location": "ca.pem",
            "ssl_certificate_location": "client.pem",
            "ssl_key_location": "key.pem",
            "ssl_key_password": "quiet",
        },
        context={FOLDER: Path("/etc/chargeback")},
    )
    assert connection(source).properties() == {
        "bootstrap.servers": "k:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "reader",
        "sasl.password": "hush",
        "ssl.ca.location": "/etc/chargeback/ca.pem",
        "ssl.certificate.location": "/etc/chargeback/client.pem",
        "ssl.key.location": "/etc/chargeback/key.pem",
        "ssl.key.password": "quiet",
    }
