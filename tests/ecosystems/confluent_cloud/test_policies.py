"""The policies of Confluent Cloud."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.allocation.policies import Policy
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue, tenant_catalogue
from chargeback.ecosystems.confluent_cloud.settings import MEASURES, ConfluentCloudSettings

#: Every line type the provider documents (billing/v1, schema Cost), and the older spellings.
LINE_TYPES = [
    "KAFKA_STORAGE",
    "KAFKA_PARTITION",
    "KAFKA_NETWORK_READ",
    "KAFKA_NETWORK_WRITE",
    "KAFKA_BASE",
    "KAFKA_NUM_CKUS",
    "KAFKA_REST_PRODUCE",
    "KSQL_NUM_CSUS",
    "CONNECT_CAPACITY",
    "CONNECT_NUM_TASKS",
    "CONNECT_THROUGHPUT",
    "CONNECT_NUM_RECORDS",
    "SUPPORT",
    "CLUSTER_LINKING_PER_LINK",
    "CLUSTER_LINKING_WRITE",
    "CLUSTER_LINKING_READ",
    "AUDIT_LOG_READ",
    "GOVERNANCE_BASE",
    "SCHEMA_REGISTRY",
    "PROMO_CREDIT",
    "CUSTOM_CONNECT_NUM_TASKS",
    "CUSTOM_CONNECT_THROUGHPUT",
    "NUM_RULES",
    "FLINK_NUM_CFUS",
    "TABLEFLOW_DATA_PROCESSED",
    "TABLEFLOW_NUM_TOPICS",
    "TABLEFLOW_STORAGE",
    "USM_CONNECTED_NODE",
    "KAFKA_STREAMS",
    "KAFKA_NUM_CKU",
    "KSQL_NUM_CSU",
    "FLINK_NUM_CFU",
]


def tenant(**fields: Any) -> ConfluentCloudSettings:
    """Settings of a tenant."""
    return ConfluentCloudSettings.model_validate({"ccloud_api": {"key": "A", "secret": "B"}, **fields})


def chain(policy: Policy | None, portion: int = 0) -> str:
    """A portion's chain as it is written."""
    assert policy is not None
    return ", ".join(map(str, policy.portions[portion].methods))


@pytest.mark.parametrize("line_type", LINE_TYPES)
def test_every_documented_line_type_has_a_policy(line_type: str) -> None:
    """Nothing that the provider documents goes to UNALLOCATED for want of a policy, and every chain ends there."""
    policy = catalogue().find(line_type)
    assert policy is not None
    for portion in range(len(policy.portions)):
        assert chain(policy, portion).endswith("even(period), unallocated")


def test_an_undocumented_type_has_none() -> None:
    """The provider bills things that no list names."""
    assert catalogue().find("CONTEXT_ENGINE_TABLES") is None


@pytest.mark.parametrize(
    ("line_type", "expected"),
    [
        ("KAFKA_NETWORK_WRITE", "usage(bytes_in), even(active), even(period), unallocated"),
        ("KAFKA_NETWORK_READ", "usage(bytes_out), even(active), even(period), unallocated"),
        ("KAFKA_REST_PRODUCE", "usage(bytes_in), even(active), even(period), unallocated"),
        ("KAFKA_STREAMS", "usage(bytes_in + bytes_out), even(active), even(period), unallocated"),
        ("TABLEFLOW_STORAGE", "even(active), even(period), unallocated"),
        ("NUM_RULES", "even(active), even(period), unallocated"),
        ("CUSTOM_CONNECT_THROUGHPUT", "owner, even(active), even(period), unallocated"),
        ("KSQL_NUM_CSU", "owner, even(active), even(period), unallocated"),
        ("FLINK_NUM_CFUS", "usage(flink_cfu_minutes), even(owners), even(active), even(period), unallocated"),
        ("SUPPORT", "proportional, even(period), unallocated"),
        ("PROMO_CREDIT", "proportional, even(period), unallocated"),
        ("AUDIT_LOG_READ", "even(period), unallocated"),
    ],
)
def test_chains(line_type: str, expected: str) -> None:
    """The chains are those of the documentation's table."""
    assert chain(catalogue().find(line_type)) == expected


def test_ckus_are_split_in_two() -> None:
    """CKUs go 70 % by usage and 30 % evenly, under both spellings."""
    policy = catalogue().find("KAFKA_NUM_CKU")
    assert policy is not None
    assert [portion.share for portion in policy.portions] == [Decimal("0.70"), Decimal("0.30")]
    assert chain(policy, 0).startswith("usage(bytes_in + bytes_out)")
    assert chain(policy, 1).startswith("even(active)")


def test_measures_are_those_that_can_be_measured() -> None:
    """What the policies ask for is what the metrics give."""
    assert catalogue().measures == MEASURES


def test_the_short_form_changes_the_ratio() -> None:
    """allocator_params changes the shares of CKUs and nothing else."""
    ratios = {"kafka_cku_usage_ratio": "0.6", "kafka_cku_shared_ratio": "0.4"}
    own = tenant_catalogue(tenant(allocator_params=ratios))
    policy = own.find("KAFKA_NUM_CKUS")
    assert policy is not None
    assert [portion.share for portion in policy.portions] == [Decimal("0.6"), Decimal("0.4")]
    assert own.find("KAFKA_BASE") == catalogue().find("KAFKA_BASE")


def test_a_ratio_of_one_leaves_one_portion() -> None:
    """Wholly by usage there is no second portion."""
    ratios = {"kafka_cku_usage_ratio": "1", "kafka_cku_shared_ratio": "0"}
    policy = tenant_catalogue(tenant(allocator_params=ratios)).find("KAFKA_NUM_CKUS")
    assert policy is not None
    assert len(policy.portions) == 1


def test_a_written_policy_wins() -> None:
    """allocation_policies replaces any policy, under an alias too, and adds new ones."""
    written = {"portions": [{"share": "1", "try": ["even(period)"]}]}
    own = tenant_catalogue(tenant(allocation_policies={"KAFKA_NUM_CKU": written, "CONTEXT_ENGINE_TABLES": written}))
    assert chain(own.find("KAFKA_NUM_CKUS")) == "even(period), unallocated"
    assert chain(own.find("CONTEXT_ENGINE_TABLES")) == "even(period), unallocated"


def test_the_documented_split_is_the_shipped_one() -> None:
    """The table of the documentation has one row for each portion of each shipped policy, and no other."""
    page = (Path(__file__).parents[3] / "docs" / "confluent-cloud.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| product type | share | methods, in this order |\n|---|---|---|\n")
    documented = table.partition("\n\n")[0].splitlines()
    assert documented == [
        f"| `{name}` | {portion.share} | {', '.join(f'`{method}`' for method in portion.methods)} |"
        for name, policy in catalogue().policies.items()
        for portion in policy.portions
    ]
