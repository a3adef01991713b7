"""The inventory: each listing is complete, or fails and changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Timer
from typing import Any

import pytest

from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud.api import ControlPlane
from chargeback.ecosystems.confluent_cloud.flink import FlinkStatements
from chargeback.ecosystems.confluent_cloud.inventory import REQUIRED, InventoryListing
from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import Stopped
from chargeback.model.inventory import GRANT, ListedInventory
from tests.ecosystems.confluent_cloud.conftest import settings_for

TYPES = {
    "organization",
    "environment",
    "kafka_cluster",
    "schema_registry",
    "connector",
    "ksqldb_cluster",
    "flink_compute_pool",
    "flink_statement",
    "user",
    "service_account",
    "identity_provider",
    "identity_pool",
    "api_key",
    GRANT,
}


def gather(server: DemoServer, plane: ControlPlane, **settings: Any) -> ListedInventory:
    """Return the inventory."""
    return InventoryListing(plane, FlinkStatements(plane, settings_for(server, **settings).flink)).gather()


def of(listed: ListedInventory, kind: str) -> set[str]:
    """Return the ids of one type."""
    resources = {each.resource_id for each in listed.inventory.resources if each.resource_type == kind}
    return resources | {each.identity_id for each in listed.inventory.identities if each.identity_type == kind}


def ids(organisation: Organisation, things: Callable[[Organisation], Sequence[Any]]) -> set[str]:
    """Return the ids of the objects that are listed today."""
    return {thing.id for thing in organisation.listed(things(organisation))}


def test_everything_is_found(server: DemoServer, plane: ControlPlane, organisation: Organisation) -> None:
    """Every listing is complete and equal to what the provider lists."""
    listed = gather(server, plane)
    inventory = organisation.inventory
    assert listed.complete == TYPES
    assert not listed.failures
    assert listed.required == REQUIRED
    expected = {
        "organization": {inventory.organization_id},
        "environment": ids(organisation, lambda o: o.inventory.environments),
        "kafka_cluster": ids(organisation, lambda o: o.inventory.clusters),
        "schema_registry": ids(organisation, lambda o: o.inventory.registries),
        "ksqldb_cluster": ids(organisation, lambda o: o.inventory.ksql_clusters),
        "flink_compute_pool": ids(organisation, lambda o: o.inventory.compute_pools),
        "connector": ids(organisation, lambda o: o.inventory.connectors),
        "user": ids(organisation, lambda o: o.inventory.users),
        "service_account": ids(organisation, lambda o: o.inventory.service_accounts),
        "identity_provider": ids(organisation, lambda o: o.inventory.providers),
        "identity_pool": ids(organisation, lambda o: o.inventory.pools),
        "api_key": ids(organisation, lambda o: o.inventory.api_keys),
    }
    assert {kind: of(listed, kind) for kind in expected} == expected


def test_what_contains_what_and_who_owns_it(
    server: DemoServer, plane: ControlPlane, organisation: Organisation
) -> None:
    """Parents, owners and substitutes for activity are those of the organization."""
    found = {each.resource_id: each for each in gather(server, plane).inventory.resources}
    inventory = organisation.inventory
    for cluster in organisation.listed(inventory.clusters):
        assert found[cluster.id].parent_id == cluster.environment
    for registry in organisation.listed(inventory.registries):
        assert found[registry.id].active_as == registry.environment
    for ksql in organisation.listed(inventory.ksql_clusters):
        assert (found[ksql.id].owner_id, found[ksql.id].active_as) == (ksql.owner, ksql.cluster)
    for connector in organisation.listed(inventory.connectors):
        owner = connector.owner if connector.auth == "service_account" else None
        assert found[connector.id].owner_id == owner, connector
        assert found[connector.id].parent_id == found[connector.id].active_as == connector.cluster


def test_grants_are_the_keys_of_resources(server: DemoServer, plane: ControlPlane, organisation: Organisation) -> None:
    """Keys of clusters, registries and ksqlDB make their owners active; others do not."""
    keys = organisation.listed(organisation.inventory.api_keys)
    expected = {
        (key.id, key.resource, key.owner)
        for key in keys
        if key.resource_kind in {"Cluster", "SchemaRegistry", "ksqlDB"}
    }
    grants = gather(server, plane).inventory.grants
    assert {(grant.grant_id, grant.resource_id, grant.identity_id) for grant in grants} == expected


@pytest.mark.parametrize(
    ("path", "failing"),
    [
        ("/org/v2/organizations", {"organization", "flink_statement"}),
        ("/srcm/v3/clusters", {"schema_registry"}),
        ("/ksqldbcm/v2/clusters", {"ksqldb_cluster"}),
        ("/fcpm/v2/compute-pools", {"flink_compute_pool", "flink_statement"}),
        ("/fcpm/v2/regions", {"flink_statement"}),
        ("/connect/v1/", {"connector"}),
        ("/flink/", {"flink_statement"}),
        ("/iam/v2/identity-providers", {"identity_provider", "identity_pool"}),
        ("/iam/v2/users", {"user"}),
        ("/iam/v2/service-accounts", {"service_account"}),
        ("/iam/v2/api-keys", {"api_key", GRANT}),
        ("/cmk/v2/clusters", {"kafka_cluster", "connector"}),
        (
            "/org/v2/environments",
            {
                "environment",
                "kafka_cluster",
                "schema_registry",
                "connector",
                "ksqldb_cluster",
                "flink_compute_pool",
                "flink_statement",
            },
        ),
    ],
)
@pytest.mark.parametrize("status", [403, 404])
def test_a_listing_that_fails_takes_only_what_depends_on_it(
    path: str, failing: set[str], status: int, server: DemoServer, plane: ControlPlane
) -> None:
    """A listing that fails affects only types that depend on it; those are empty, with the reason."""
    server.faults.add(path, Fault(status=status, times=None))
    listed = gather(server, plane)
    assert set(listed.failures) == failing
    assert listed.complete == TYPES - failing
    for kind in failing:
        assert not of(listed, kind)
    assert any(str(status) in reason for reason in listed.failures.values())


def test_one_environment_that_fails_fails_the_type(server: DemoServer, plane: ControlPlane) -> None:
    """If one environment fails, its type is empty, so that nothing is deleted."""
    server.faults.add("/cmk/v2/clusters", Fault(status=403, skip=1, times=1))
    listed = gather(server, plane)
    assert "kafka_cluster" in listed.failures
    assert not of(listed, "kafka_cluster")


@pytest.mark.parametrize("kind", ["truncated", "html", "endless_paging"])
def test_odd_answers_fail_the_type(kind: str, server: DemoServer, plane: ControlPlane) -> None:
    """An invalid response fails the type; it is not an empty listing."""
    server.faults.add("/iam/v2/service-accounts", Fault(kind, times=None))  # type: ignore[arg-type]
    listed = gather(server, plane)
    assert set(listed.failures) == {"service_account"}


def test_without_flink_keys_nobody_expects_statements(server: DemoServer, plane: ControlPlane) -> None:
    """Without any Flink key, statements are neither complete nor a failure."""
    listed = gather(server, plane, flink=[])
    assert "flink_statement" not in listed.complete
    assert not listed.failures


def test_a_region_without_key_deletes_nothing(
    server: DemoServer, plane: ControlPlane, organisation: Organisation
) -> None:
    """If a region has no key, statements of other regions are used, and none is deleted."""
    regions = {pool.region for pool in organisation.inventory.compute_pools}
    access = next(each for each in server.info.flink if each.region_id in regions)
    flink = [{"region_id": access.region_id, "key": access.key, "secret": access.secret, "url": access.url}]
    listed = gather(server, plane, flink=flink)
    complete = len(regions) == 1
    assert ("flink_statement" in listed.complete) is complete
    assert ("flink_statement" in listed.partial) is not complete  # listed statements are used
    assert not listed.failures


def test_stop_ends_the_listing(server: DemoServer, context: TenantContext, plane: ControlPlane) -> None:
    """A stop while the provider limits requests ends the listing soon."""
    server.faults.add("/", Fault(status=429, retry_after=5, times=None))
    started = time.monotonic()
    timer = Timer(0.3, context.stop.set)
    timer.start()
    with pytest.raises(Stopped):
        gather(server, plane)
    assert time.monotonic() - started < 5
    timer.join()


def test_a_key_that_is_not_known_stops_every_listing(server: DemoServer, context: TenantContext) -> None:
    """A key that is rejected by the first request is not tried again; every type fails with that reason."""
    api = {"key": server.key, "secret": "wrong", "url": server.url}
    plane = ControlPlane(context, settings_for(server, ccloud_api=api))
    listed = InventoryListing(plane, FlinkStatements(plane, settings_for(server).flink)).gather()
    plane.close()
    assert listed.failures.keys() == TYPES
    (reason,) = set(listed.failures.values())
    assert f"GET {server.url}/org/v2/organizations: HTTP 401" in reason
    assert sum(server.requests.values()) == 1
