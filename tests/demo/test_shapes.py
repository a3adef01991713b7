"""Every response conforms to the provider's own OpenAPI documents."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.demo.shapes import HIDDEN
from tests.demo.conftest import TODAY
from tests.demo.openapi import validator

CONNECTORS = "/connect/v1/environments/{environment_id}/clusters/{kafka_cluster_id}/connectors"
STATEMENTS = "/sql/v1/organizations/{organization_id}/environments/{environment_id}/statements"
POOLS = "/iam/v2/identity-providers/{provider_id}/identity-pools"

PLAIN = [
    ("org.openapi.yaml", "/org/v2/organizations"),
    ("org.openapi.yaml", "/org/v2/environments"),
    ("iam.openapi.yaml", "/iam/v2/users"),
    ("iam.openapi.yaml", "/iam/v2/service-accounts"),
    ("apikeys.openapi.yaml", "/iam/v2/api-keys"),
    ("identity-provider.openapi.yaml", "/iam/v2/identity-providers"),
    ("flink.openapi.yaml", "/fcpm/v2/regions"),
]
PER_ENVIRONMENT = [
    ("cmk.openapi.yaml", "/cmk/v2/clusters"),
    ("srcm.openapi.yaml", "/srcm/v3/clusters"),
    ("ksql.openapi.yaml", "/ksqldbcm/v2/clusters"),
    ("flink.openapi.yaml", "/fcpm/v2/compute-pools"),
]


def _valid(document: str, path: str, response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    body = response.json()
    errors = [f"{error.json_path}: {error.message}" for error in validator(document, path, status).iter_errors(body)]
    assert errors == []
    return body


@pytest.mark.parametrize(("document", "path"), PLAIN)
def test_lists_of_the_organisation_are_valid(client: httpx.Client, document: str, path: str) -> None:
    """A list that needs no environment conforms to the provider's schema and is not empty."""
    body = _valid(document, path, client.get(path, params={"page_size": 100}))
    assert body["data"]


@pytest.mark.parametrize(("document", "path"), PER_ENVIRONMENT)
def test_lists_of_an_environment_are_valid(
    client: httpx.Client, organisation: Organisation, document: str, path: str
) -> None:
    """A list per environment conforms to the provider's schema, and at least one is not empty."""
    found = 0
    for environment in organisation.inventory.environments:
        body = _valid(document, path, client.get(path, params={"environment": environment.id}))
        found += len(body["data"])
    assert found


def test_identity_pools_are_valid(client: httpx.Client, organisation: Organisation) -> None:
    """The pools of every provider conform to the provider's schema."""
    for provider in organisation.inventory.providers:
        path = POOLS.replace("{provider_id}", provider.id)
        assert _valid("identity-provider.openapi.yaml", POOLS, client.get(path))["data"]


def test_costs_are_valid(client: httpx.Client, organisation: Organisation) -> None:
    """Costs of all days conform to the provider's schema, although it requires ids, units and amounts."""
    spec = organisation.spec
    query = {"start_date": spec.first_day.isoformat(), "end_date": TODAY.isoformat()}
    body = _valid("billing.openapi.yaml", "/billing/v1/costs", client.get("/billing/v1/costs", params=query))
    assert len(body["data"]) == body["metadata"]["total_size"] > 0


def test_connectors_are_valid(client: httpx.Client, organisation: Organisation) -> None:
    """Connectors are names, or a map with the requested expansions, and conform to the provider's schema."""
    expanded = f"{CONNECTORS}?expand=info,status,id"
    seen: set[str] = set()
    for cluster in organisation.listed(organisation.inventory.clusters):
        path = CONNECTORS.replace("{environment_id}", cluster.environment).replace("{kafka_cluster_id}", cluster.id)
        names = _valid("connect.openapi.yaml", CONNECTORS, client.get(path))
        answer = client.get(path, params={"expand": "info,status,id"})
        full = _valid("connect.openapi.yaml", expanded, answer)
        assert sorted(full) == sorted(names)
        for value in full.values():
            assert value["info"]["config"]["kafka.api.key"] == HIDDEN
            seen.add(value["info"]["config"].get("kafka.auth.mode", "absent"))
    assert seen == {"SERVICE_ACCOUNT", "KAFKA_API_KEY", "absent"}


def test_statements_are_valid(server: DemoServer, organisation: Organisation) -> None:
    """Flink statements conform to the gateway's schema, with principals of all kinds."""
    kinds: set[str] = set()
    inventory = organisation.inventory
    for region in ("us-east-1", "eu-west-1"):
        for environment in inventory.environments:
            path = STATEMENTS.replace("{organization_id}", inventory.organization_id)
            path = path.replace("{environment_id}", environment.id)
            url, auth = server.flink_url(region) + path, server.flink_credentials(region)
            body = _valid("flink-gateway.openapi.yaml", STATEMENTS, httpx.get(url, auth=auth))
            kinds |= {str(item["spec"].get("principal")).partition("-")[0] for item in body["data"]}
    assert {"sa", "u"} <= kinds


@pytest.mark.parametrize(
    ("path", "auth", "status"),
    [("/iam/v2/users", False, 401), ("/iam/v2/users?colour=blue", True, 400), ("/cmk/v2/clusters", True, 400)],
)
def test_refusals_are_valid(client: httpx.Client, path: str, auth: bool, status: int) -> None:
    """Errors have the provider's error shape."""
    response = client.get(path) if auth else httpx.get(f"{client.base_url}{path}")
    body = _valid("iam.openapi.yaml", "/iam/v2/users", response, status)
    assert body["errors"][0]["status"] == str(status)


def test_the_schemas_are_able_to_refuse(client: httpx.Client) -> None:
    """The check detects a single wrong or missing field in a response."""
    body = client.get("/iam/v2/users").json()
    check = validator("iam.openapi.yaml", "/iam/v2/users")
    assert check.is_valid(body)
    spoilt: list[dict[str, Any]] = [{"email": None}, {"email": "nobody"}, {"metadata": {}}, {"api_version": "iam/v9"}]
    for spoil in spoilt:
        assert not check.is_valid({**body, "data": [{**body["data"][0], **spoil}]})
    assert not check.is_valid({name: value for name, value in body.items() if name != "metadata"})
