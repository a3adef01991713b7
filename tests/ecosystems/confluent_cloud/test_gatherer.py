"""All together: what is asked for exists at the provider, and nothing secret is told to anybody."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml

from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud import ConfluentCloudSettings, ecosystem
from chargeback.ecosystems.confluent_cloud.gatherer import ConfluentCloudGatherer
from chargeback.ecosystems.contract import Ecosystem, Gatherer, TenantContext
from chargeback.errors import SourceError
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, Resource
from tests.demo.openapi import folder
from tests.ecosystems.confluent_cloud.conftest import TODAY, settings_for

DAYS = DayRange(TODAY - timedelta(days=12), TODAY - timedelta(days=8))


def test_it_is_an_ecosystem() -> None:
    """The plugin has everything that the contract asks for."""
    plugin: Ecosystem = ecosystem
    assert plugin.name == "confluent_cloud"
    assert plugin.capabilities.topic_overlay
    assert not plugin.capabilities.constructs_costs
    assert plugin.capabilities.billing_history_days == 364
    assert plugin.capabilities.payer_tiers == (frozenset({"service_account", "identity_pool"}), frozenset({"user"}))
    assert plugin.tenant_catalogue(ConfluentCloudSettings.model_validate({"ccloud_api": {"key": "A", "secret": "B"}}))


def everything(gatherer: Gatherer) -> None:
    """Gather all there is."""
    list(gatherer.billing(DAYS))
    listed = gatherer.inventory()
    gatherer.usage(DAYS.start, listed.inventory)
    gatherer.topics(DAYS.start)
    list(gatherer.check())


def _templates() -> list[tuple[re.Pattern[str], set[str], set[str]]]:
    """Path, parameters and required parameters of each GET that the provider documents."""
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
    """Path, method and parameters of all that is asked for are in the provider's OpenAPI documents."""
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
    """Neither logs nor errors, findings or reprs hold a secret, whatever goes wrong."""
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
    """A tenant without a metrics source measures nothing and fails nothing."""
    with ecosystem.open(context, settings_for(server, metrics=None)) as gatherer:
        inventory = Inventory((Resource("lkc-1", "kafka_cluster"),))
        assert gatherer.usage(DAYS.start, inventory).table.num_rows == 0
        assert gatherer.topics(DAYS.start).table.num_rows == 0


def test_topics_that_are_not_wanted_are_not_asked_for(server: DemoServer, context: TenantContext) -> None:
    """With the overlay off, or wrongly configured, no topic is measured."""
    for topics in ({"enabled": False}, {"enabled": True, "retention_days": 0}):
        with ecosystem.open(context, settings_for(server, topic_attribution=topics)) as gatherer:
            assert gatherer.topics(DAYS.start).table.num_rows == 0
    assert not server.requests
