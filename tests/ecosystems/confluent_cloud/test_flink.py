"""Flink statements: addresses, keys and owners."""

from __future__ import annotations

from typing import Any

import pytest

from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud.api import ControlPlane
from chargeback.ecosystems.confluent_cloud.flink import FlinkStatements, Region
from chargeback.ecosystems.confluent_cloud.objects import flink_pool
from chargeback.ecosystems.confluent_cloud.settings import FlinkRegion
from chargeback.errors import SourceDataError, SourceRejected
from chargeback.model.inventory import Resource
from tests.ecosystems.confluent_cloud.conftest import settings_for


def pools(plane: ControlPlane, organisation: Organisation) -> list[Resource]:
    """Return the compute pools that the provider lists."""
    return [
        flink_pool(each, environment.id)
        for environment in organisation.inventory.environments
        for each in plane.list("/fcpm/v2/compute-pools", environment=environment.id)
    ]


def key(region: str = "us-east-1", **more: Any) -> FlinkRegion:
    """Return a key of a region."""
    return FlinkRegion.model_validate({"region_id": region, "key": "K", "secret": "S", **more})


def test_statements_and_their_owners(server: DemoServer, plane: ControlPlane, organisation: Organisation) -> None:
    """Every listed statement is returned with its pool and, as owner, its principal."""
    found = list(FlinkStatements(plane, settings_for(server).flink).of(pools(plane, organisation)))
    listed = [each for each in organisation.listed(organisation.inventory.statements) if each.listed]
    assert {(each.display_name, each.parent_id, each.owner_id) for each in found} == {
        (each.name, each.pool, each.principal) for each in listed
    }


def test_a_key_of_another_environment_is_passed_over(
    server: DemoServer, plane: ControlPlane, organisation: Organisation
) -> None:
    """If one of several keys of a region is rejected, another one is used."""
    right = settings_for(server).flink
    wrong = [each.model_copy(update={"key": "OTHER"}) for each in right]
    found = list(FlinkStatements(plane, [*wrong, *right]).of(pools(plane, organisation)))
    assert found


def test_refused_with_every_key_is_a_failure(
    server: DemoServer, plane: ControlPlane, organisation: Organisation
) -> None:
    """If no key may access an environment, the listing fails."""
    server.faults.add("/flink/", Fault(status=403, times=None))
    with pytest.raises(SourceRejected):
        list(FlinkStatements(plane, settings_for(server).flink).of(pools(plane, organisation)))


def test_a_region_goes_by_name_or_id(plane: ControlPlane) -> None:
    """us-east-1 and aws.us-east-1 are the same region."""
    region = Region("aws.us-east-1", "AWS", "us-east-1", None)
    names = FlinkStatements(plane, [key("us-east-1"), key("AWS.us-east-1"), key("eu-west-1")])
    assert [each.region_id for each in names.keys_of(region)] == ["us-east-1", "AWS.us-east-1"]


def test_a_configured_address_wins(plane: ControlPlane) -> None:
    """A configured address takes precedence, for private networks."""
    region = Region("aws.us-east-1", "AWS", "us-east-1", "https://flink.us-east-1.aws.confluent.cloud")
    statements = FlinkStatements(plane, [])
    assert statements.address(key(url="https://flink.internal"), region) == "https://flink.internal"
    assert statements.address(key(), region) == "https://flink.us-east-1.aws.confluent.cloud"


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "https://flink.evil.example",
        "https://xconfluent.cloud",
        "http://flink.us-east-1.aws.confluent.cloud",
        "https://[x",
    ],
)
def test_a_listed_address_elsewhere_never_gets_the_key(plane: ControlPlane, address: str | None) -> None:
    """A key is sent only to the provider's own domain over https, unless an address is configured."""
    region = Region("aws.us-east-1", "AWS", "us-east-1", address)
    with pytest.raises(SourceDataError, match="url"):
        FlinkStatements(plane, []).address(key(), region)


def test_without_pools_nothing_is_asked(server: DemoServer, plane: ControlPlane) -> None:
    """Without compute pools, no request is sent."""
    assert list(FlinkStatements(plane, settings_for(server).flink).of([])) == []
    assert not server.requests
