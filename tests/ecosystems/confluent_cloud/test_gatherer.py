"""The parts together: requests are documented by the provider, and no output contains a secret."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml

from chargeback.allocation.policies import Policy
from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud import ecosystem
from chargeback.ecosystems.confluent_cloud.gatherer import ConfluentCloudGatherer, catalogue, tenant_catalogue
from chargeback.ecosystems.confluent_cloud.settings import MEASURES, ConfluentCloudSettings
from chargeback.ecosystems.contract import Ecosystem, Gatherer, TenantContext
from chargeback.errors import SourceError
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, Resource
from tests.demo.openapi import folder
from tests.ecosystems.confluent_cloud.conftest import TODAY, settings_for

DAYS = DayRange(TODAY - timedelta(days=12), TODAY - timedelta(days=8))


def test_it_is_an_ecosystem() -> None:
    """The plugin implements the contract."""
    plugin: Ecosystem = ecosystem
    assert plugin.name == "confluent_cloud"
    assert plugin.capabilities.topic_overlay
    assert not plugin.capabilities.constructs_costs
    assert plugin.capabilities.billing_history_days == 364
    assert plugin.capabilities.payer_tiers == (frozenset({"service_account", "identity_pool"}), frozenset({"user"}))
    assert plugin.tenant_catalogue(ConfluentCloudSettings.model_validate({"ccloud_api": {"key": "A", "secret": "B"}}))


def everything(gatherer: Gatherer) -> None:
    """Gather everything."""
    list(gatherer.billing(DAYS))
    listed = gatherer.inventory()
    gatherer.usage(DAYS.start, listed.inventory)
    gatherer.topics(DAYS.start)
    list(gatherer.check())


def _templates() -> list[tuple[re.Pattern[str], set[str], set[str]]]:
    """Return path, parameters and required parameters of each GET that the provider documents."""
    found = []
    for file in sorted(folder().glob("*.openapi.yaml")):
        document = yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for path, operations in document["paths"].items():
            if "get" not in operations:
                continue
            # Connect documents its expanded list as a path with a query.
            pattern = re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path.partition("?")[0].replace(".", r"\.")))
            parameters = [_resolved(each, document) for each in operations["get"].get("parameters", ())]
            queries = [each for each in parameters if each["in"] == "query"]
            names = {each["name"] for each in queries}
            found.append((pattern, names, {each["name"] for each in queries if each.get("required")}))
    return found


def _resolved(parameter: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    for part in parameter.get("$ref", "").removeprefix("#/").split("/"):
        if part:
            document = document[part]
    return document if "$ref" in parameter else parameter


@pytest.mark.extensive
def test_every_request_exists_at_the_provider(server: DemoServer, gatherer: ConfluentCloudGatherer) -> None:
    """Path, method and parameters of all requests are in the provider's OpenAPI documents."""
    documented = _templates()
    everything(gatherer)
    requests = [(path, query) for path, query in server.log if not path.startswith("/prometheus")]
    assert len({path for path, _ in requests}) > 10
    for path, query in requests:
        plain = re.sub(r"^/flink/[^/]+", "", path)  # the served organization has its regional hosts under a path
        asked = dict(parse_qsl(query))
        fitting = [
            names
            for pattern, names, required in documented
            if pattern.fullmatch(plain) and asked.keys() <= names and required <= asked.keys()
        ]
        assert fitting, f"the provider documents no GET {plain}?{query}"


def test_no_secret_is_told_to_anybody(
    server: DemoServer, context: TenantContext, caplog: pytest.LogCaptureFixture
) -> None:
    """No log, error, finding or repr contains a secret."""
    settings = settings_for(
        server,
        metrics={
            "url": server.prometheus_url,
            "auth_type": "basic",
            "username": "reader",
            "password": "metrics-pass-word",
        },
    )
    shown = [repr(settings), str(settings), repr(context)]
    with caplog.at_level(logging.DEBUG), ecosystem.open(context, settings) as gatherer:
        everything(gatherer)
        server.faults.add("/", Fault(status=403, times=None))
        shown += [repr(gatherer), repr(vars(gatherer)), str(gatherer.inventory().failures), *map(str, gatherer.check())]
        with pytest.raises(SourceError) as caught:
            list(gatherer.billing(DAYS))
        shown += [str(caught.value), repr(caught.value)]
    text = caplog.text + "".join(shown)
    for secret in (server.secret, "metrics-pass-word", *(access.secret for access in server.info.flink)):
        assert secret not in text


def test_without_metrics_there_is_no_usage(server: DemoServer, context: TenantContext) -> None:
    """Without a metrics source, usage is empty and nothing fails."""
    with ecosystem.open(context, settings_for(server, metrics=None)) as gatherer:
        inventory = Inventory((Resource("lkc-1", "kafka_cluster"),))
        assert gatherer.usage(DAYS.start, inventory).table.num_rows == 0
        assert gatherer.topics(DAYS.start).table.num_rows == 0


def test_topics_that_are_not_wanted_are_not_asked_for(server: DemoServer, context: TenantContext) -> None:
    """If the overlay is off or invalid, topics are not measured."""
    for topics in ({"enabled": False}, {"enabled": True, "retention_days": 0}):
        with ecosystem.open(context, settings_for(server, topic_attribution=topics)) as gatherer:
            assert gatherer.topics(DAYS.start).table.num_rows == 0
    assert not server.requests


#: Every line type that the provider documents (billing/v1, schema Cost), and the older spellings.
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
    """Return settings of a tenant."""
    return ConfluentCloudSettings.model_validate({"ccloud_api": {"key": "A", "secret": "B"}, **fields})


def chain(policy: Policy | None, portion: int = 0) -> str:
    """Return the chain of a portion as text."""
    assert policy is not None
    return ", ".join(map(str, policy.portions[portion].methods))


@pytest.mark.parametrize("line_type", LINE_TYPES)
def test_every_documented_line_type_has_a_policy(line_type: str) -> None:
    """Every documented line type has a policy, and each of its chains ends with UNALLOCATED."""
    policy = catalogue().find(line_type)
    assert policy is not None
    for portion in range(len(policy.portions)):
        assert chain(policy, portion).endswith("even(period), unallocated")


def test_an_undocumented_type_has_none() -> None:
    """A line type that is not documented has no policy."""
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
    """The chains are those in the table of the documentation."""
    assert chain(catalogue().find(line_type)) == expected


def test_ckus_are_split_in_two() -> None:
    """CKUs are split 70 % by usage and 30 % evenly, under both spellings."""
    policy = catalogue().find("KAFKA_NUM_CKU")
    assert policy is not None
    assert [portion.share for portion in policy.portions] == [Decimal("0.70"), Decimal("0.30")]
    assert chain(policy, 0).startswith("usage(bytes_in + bytes_out)")
    assert chain(policy, 1).startswith("even(active)")


def test_measures_are_those_that_can_be_measured() -> None:
    """The policies use exactly the measures that the metrics have."""
    assert catalogue().measures == MEASURES


def test_the_short_form_changes_the_ratio() -> None:
    """allocator_params changes only the shares of CKUs."""
    ratios = {"kafka_cku_usage_ratio": "0.6", "kafka_cku_shared_ratio": "0.4"}
    own = tenant_catalogue(tenant(allocator_params=ratios))
    policy = own.find("KAFKA_NUM_CKUS")
    assert policy is not None
    assert [portion.share for portion in policy.portions] == [Decimal("0.6"), Decimal("0.4")]
    assert own.find("KAFKA_BASE") == catalogue().find("KAFKA_BASE")


def test_a_ratio_of_one_leaves_one_portion() -> None:
    """With a usage ratio of one, there is one portion."""
    ratios = {"kafka_cku_usage_ratio": "1", "kafka_cku_shared_ratio": "0"}
    policy = tenant_catalogue(tenant(allocator_params=ratios)).find("KAFKA_NUM_CKUS")
    assert policy is not None
    assert len(policy.portions) == 1


def test_a_written_policy_wins() -> None:
    """allocation_policies replaces a policy, also under an alias, and adds new ones."""
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
