"""Manifests of Strimzi."""

from __future__ import annotations

from pathlib import Path

from chargeback.category_sources.strimzi import source

MANIFESTS = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: orders, labels: {team: shop}, annotations: {chargeback/value: retail}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: pay-orders, labels: {chargeback/cost_center: payments, team: b}}
spec: {topicName: pay.orders}
---
apiVersion: v1
kind: List
items:
  - apiVersion: kafka.strimzi.io/v1beta2
    kind: KafkaUser
    metadata: {name: alice, labels: {team: shop}}
    spec: {authentication: {type: tls}}
  - apiVersion: kafka.strimzi.io/v1beta2
    kind: KafkaUser
    metadata: {name: bob, labels: {team: shop}}
    spec: {authentication: {type: scram-sha-512}}
  - apiVersion: kafka.strimzi.io/v1beta2
    kind: KafkaUser
    metadata: {name: carol, labels: {team: shop}, annotations: {chargeback/identity: "User:CN=carol,"}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: cluster, labels: {team: shop}}
---
apiVersion: other/v1
kind: KafkaTopic
metadata: {name: foreign, labels: {team: shop}}
"""


def entries(folder: Path, key: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the entries for a category, and the notes."""
    (folder / "topics.yml").write_text(MANIFESTS, encoding="utf-8")
    found = source.read(folder, key)
    return [(each.value, each.entity_type, each.entity_id) for each in found.entries], list(found.notes)


def test_labels_and_annotations(tmp_path: Path) -> None:
    """The value for the category has priority over the general one; the rest is listed in notes."""
    assert entries(tmp_path, "cost_center") == (
        [("payments", "topic", "pay.orders"), ("retail", "topic", "orders")],
        [
            f"left out, because it has no value: KafkaUser {name} (topics.yml, document 3)"
            for name in ("alice", "bob", "carol")
        ],
    )


def test_a_label_called_as_the_category(tmp_path: Path) -> None:
    """A plain label works; users are identified by their principals."""
    assert entries(tmp_path, "team") == (
        [
            ("b", "topic", "pay.orders"),
            ("retail", "topic", "orders"),
            ("shop", "identity", "CN=alice"),
            ("shop", "identity", "User:CN=alice"),
            ("shop", "identity", "User:CN=carol"),
            ("shop", "identity", "User:bob"),
            ("shop", "identity", "bob"),
        ],
        [],
    )
