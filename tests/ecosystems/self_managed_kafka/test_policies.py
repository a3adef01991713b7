"""The policies of a self-managed cluster."""

from __future__ import annotations

from chargeback.ecosystems.self_managed_kafka.gatherer import catalogue, tenant_catalogue
from tests.ecosystems.self_managed_kafka.conftest import RATES, settings_for

EVEN = "even(active), even(period), unallocated"


def chain(product_type: str) -> str:
    """The one chain of a product type, as it is written."""
    policy = catalogue().find(product_type)
    assert policy is not None
    (portion,) = policy.portions
    assert portion.share == 1
    return ", ".join(map(str, portion.methods))


def test_compute_and_storage_are_shared_evenly() -> None:
    """What the cluster costs by being there falls on those who use it."""
    assert chain("SELF_KAFKA_COMPUTE") == chain("SELF_KAFKA_STORAGE") == EVEN


def test_traffic_follows_usage() -> None:
    """What came in is split by who wrote it, what went out by who read it, and evenly where nobody knows."""
    assert chain("SELF_KAFKA_NETWORK_INGRESS") == f"usage(bytes_in), {EVEN}"
    assert chain("SELF_KAFKA_NETWORK_EGRESS") == f"usage(bytes_out), {EVEN}"


def test_kinds_of_topics_are_split_by_their_traffic() -> None:
    """Each product type of a kind has the policy of all topics, with the measures of the kind."""
    kinds = {"label": "kind", "rates": {"tiered": {}}}
    settings = settings_for("http://p", cost_model={**RATES, "topic_kinds": kinds})
    expected = {
        "SELF_KAFKA_COMPUTE": "",
        "SELF_KAFKA_STORAGE": "",
        "SELF_KAFKA_STORAGE_TIERED": "",
        "SELF_KAFKA_NETWORK_INGRESS": "usage(bytes_in_other), ",
        "SELF_KAFKA_NETWORK_INGRESS_TIERED": "usage(bytes_in_tiered), ",
        "SELF_KAFKA_NETWORK_EGRESS_TIERED": "usage(bytes_out_tiered), ",
    }
    for product_type, usage in expected.items():
        policy = tenant_catalogue(settings).find(product_type)
        assert policy is not None
        assert ", ".join(map(str, policy.portions[0].methods)) == f"{usage}{EVEN}"


def test_a_tenant_may_have_its_own() -> None:
    """``allocation_policies`` replaces a policy and leaves the others."""
    own = {"SELF_KAFKA_COMPUTE": {"portions": [{"share": "1", "try": ["usage(bytes_in)"]}]}}
    changed = tenant_catalogue(settings_for("http://p", allocation_policies=own))
    policy = changed.find("SELF_KAFKA_COMPUTE")
    assert policy is not None
    assert [str(method) for method in policy.portions[0].methods] == ["usage(bytes_in)", "unallocated"]
    assert changed.find("SELF_KAFKA_STORAGE") == catalogue().find("SELF_KAFKA_STORAGE")
