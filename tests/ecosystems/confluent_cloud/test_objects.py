"""Conversion of the provider's objects to resources, identities and grants."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from chargeback.allocation.members import Membership
from chargeback.ecosystems.confluent_cloud import objects
from chargeback.errors import SourceDataError
from chargeback.model import usage
from chargeback.model.inventory import Grant, Identity, Inventory, Resource

OWNERS = {"KEY1": "sa-1"}


def connector(config: dict[str, str], **more: Any) -> Any:
    """Return a connector with this configuration."""
    answer = {"id": {"id": "lcc-1", "id_type": "ID"}, "info": {"config": config, "type": "sink"}, **more}
    return objects.connector("orders-sink", answer, "lkc-1", OWNERS)


@pytest.mark.parametrize(
    ("config", "owner"),
    [
        ({"kafka.auth.mode": "SERVICE_ACCOUNT", "kafka.service.account.id": "sa-2"}, "sa-2"),
        ({"kafka.service.account.id": "sa-2"}, "sa-2"),
        ({"kafka.auth.mode": "KAFKA_API_KEY", "kafka.api.key": "KEY1"}, "sa-1"),
        ({"kafka.api.key": "KEY1"}, "sa-1"),
        ({"kafka.api.key": "****************"}, None),
        ({"kafka.auth.mode": "KAFKA_API_KEY", "kafka.api.key": "KEY1", "kafka.service.account.id": "sa-9"}, "sa-1"),
        ({"kafka.auth.mode": "SERVICE_ACCOUNT", "kafka.service.account.id": "****"}, None),
        ({"kafka.auth.mode": "SERVICE_ACCOUNT"}, None),
        ({"kafka.api.key": "UNKNOWN"}, None),
        ({}, None),
    ],
)
def test_who_owns_a_connector(config: dict[str, str], owner: str | None) -> None:
    """The owner is the service account, or else the owner of the API key; an undisclosed one (asterisks) is None."""
    assert connector(config).owner_id == owner


def test_a_connector_keeps_no_configuration() -> None:
    """The configuration, which may contain secrets, is not stored, except for the class and the authentication mode."""
    found = connector({"connector.class": "S3_SINK", "db.password": "hunter2", "kafka.api.key": "KEY1"})
    assert found.metadata == {"auth_mode": "KAFKA_API_KEY", "connector_class": "S3_SINK", "connector_type": "sink"}
    assert (found.resource_id, found.display_name, found.parent_id, found.active_as) == (
        "lcc-1",
        "orders-sink",
        "lkc-1",
        "lkc-1",
    )


def test_a_deleted_connector_is_none() -> None:
    """A connector that is deleted while it is listed is None."""
    assert connector({}, status={"connector": {"state": "DELETED"}}) is None


def test_a_connector_without_id_is_an_error() -> None:
    """A connector without an id is an error, because its cost could not be assigned."""
    with pytest.raises(SourceDataError):
        objects.connector("x", {"info": {}}, "lkc-1", {})


def test_a_statement_is_owned_by_its_principal_and_keeps_no_sql() -> None:
    """A statement has name, pool and owner, but not its SQL text."""
    found = objects.flink_statement(
        {
            "name": "enrich",
            "metadata": {"uid": "u1", "created_at": "2026-11-01T00:00:00Z"},
            "spec": {"statement": "SELECT secret", "principal": "sa-1", "compute_pool_id": "lfcp-1"},
            "status": {"phase": "RUNNING"},
        },
        "env-1",
    )
    assert (found.resource_id, found.display_name, found.parent_id, found.owner_id) == (
        "u1",
        "enrich",
        "lfcp-1",
        "sa-1",
    )
    assert "SELECT" not in repr(found)


def statement(phase: str | None, owner: str, **status: str) -> Resource:
    """Return a statement in a pool that began on the morning of 1 November."""
    return objects.flink_statement(
        {
            "name": f"of-{owner}",
            "metadata": {"uid": f"uid-{owner}", "created_at": "2026-11-01T06:00:00Z"},
            "spec": {"principal": owner, "compute_pool_id": "lfcp-1"},
            "status": {"phase": phase, **status},
        },
        "env-1",
    )


@pytest.mark.parametrize("phase", ["COMPLETED", "FAILED", "STOPPED"])
def test_a_statement_that_has_ended_is_over(phase: str) -> None:
    """A statement that has ended is deleted at its end time, although the provider still lists it."""
    ended = statement(phase, "sa-1", end_time="2026-11-02T03:04:05-04:00")
    assert ended.deleted_at == datetime(2026, 11, 2, 7, 4, 5, tzinfo=UTC)
    assert ended.metadata["phase"] == phase


@pytest.mark.parametrize("phase", ["RUNNING", "PENDING", "STOPPING", "FAILING", "DEGRADED", "SOMETHING_NEW", None])
def test_a_statement_that_may_still_run_is_alive(phase: str | None) -> None:
    """A statement that may still run is not deleted, even if an end time from before a resume remains."""
    assert statement(phase, "sa-1", end_time="2026-11-02T03:04:05Z").deleted_at is None


@pytest.mark.parametrize("status", [{}, {"end_time": ""}, {"end_time": "0001-01-01T00:00:00Z"}, {"end_time": "soon"}])
def test_an_end_at_an_unknown_time_is_not_guessed(status: dict[str, str]) -> None:
    """A statement without a valid end time is not deleted while it is listed."""
    assert statement("COMPLETED", "sa-1", **status).deleted_at is None


def test_whose_statement_has_ended_does_not_share_the_pool_any_more() -> None:
    """On the day of a statement's end its owner belongs to the pool; later neither to the pool nor to the period."""
    ended = statement("COMPLETED", "sa-1", end_time="2026-11-02T12:00:00Z")
    running = statement("RUNNING", "sa-2")
    accounts = [Identity(name, "service_account") for name in ("sa-1", "sa-2")]
    pool = Resource("lfcp-1", "flink_compute_pool", parent_id="env-1")
    membership = Membership(Inventory([pool, ended, running], accounts), (frozenset({"service_account"}),))

    def owners_and_period(day: date) -> tuple[set[str], set[str]]:
        rows = membership.members_on(day, usage.USAGE.empty_table(), ["lfcp-1"]).to_pylist()
        owners = {
            row["identity_id"] for row in rows if (row["resource_id"], row["relation"]) == ("lfcp-1", usage.OWNERS)
        }
        return owners, {row["identity_id"] for row in rows if row["relation"] == usage.PERIOD}

    assert owners_and_period(date(2026, 11, 2)) == ({"sa-1", "sa-2"}, {"sa-1", "sa-2"})
    assert owners_and_period(date(2026, 11, 3)) == ({"sa-2"}, {"sa-2"})


def test_a_statement_without_uid_goes_by_environment_and_name() -> None:
    """Without a uid, the id consists of environment and name, which is unique within the environment."""
    assert objects.flink_statement({"name": "a"}, "env-1").resource_id == "env-1:statement:a"


def test_ksqldb_is_owned_by_its_credential_identity() -> None:
    """The owner is the credential identity; the users are those of the Kafka cluster."""
    spec = {"credential_identity": {"id": "u-1"}, "kafka_cluster": {"id": "lkc-1"}, "csu": 4}
    found = objects.ksqldb_cluster({"id": "lksqlc-1", "spec": spec}, "env-1")
    assert (found.owner_id, found.active_as, found.parent_id) == ("u-1", "lkc-1", "env-1")


def test_a_registry_is_used_by_its_environment() -> None:
    """If no identity has a key for the registry, the identities of its environment use it."""
    assert objects.schema_registry({"id": "lsrc-1"}, "env-1").active_as == "env-1"


def key(resource: Any = None, resources: Any = None, owner: str | None = "sa-1") -> dict[str, Any]:
    """Return an API key for these resources."""
    spec = {"owner": {"id": owner}, "resource": resource, "resources": resources, "secret": ""}
    return {"id": "KEY1", "metadata": {"created_at": "2026-01-02T03:04:05Z"}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "granted"),
    [
        (key({"id": "lkc-1", "kind": "Cluster"}), ["lkc-1"]),
        (key({"id": "lkc-1"}, [{"id": "lkc-1"}, {"id": "lsrc-1"}]), ["lkc-1", "lsrc-1"]),
        (key({"id": "lksqlc-1", "kind": "ksqlDB"}), ["lksqlc-1"]),
        (key(None), []),
        (key({"id": "cloud", "kind": "Cloud"}), []),
        (key({"id": "global"}), []),
        (key({"id": "aws.us-east-1", "environment": "env-1", "kind": "Region"}), []),
        (key({"id": "lkc-1"}, owner=None), []),
    ],
)
def test_what_a_key_grants(given: dict[str, Any], granted: list[str]) -> None:
    """A key for a resource grants its owner activity there; Cloud, Global and region keys grant none."""
    assert [grant.resource_id for grant in objects.grants(given)] == granted


def test_a_grant_lives_as_long_as_its_key() -> None:
    """A grant begins when its key is created."""
    created = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert list(objects.grants(key({"id": "lkc-1"}))) == [Grant("KEY1", "lkc-1", "sa-1", created)]


def test_a_key_is_an_identity_that_tells_owner_and_resource() -> None:
    """A key is an identity with its owner and resource as metadata."""
    found = objects.api_key(key({"id": "lkc-1"}))
    assert (found.identity_type, found.metadata) == ("api_key", {"owner_id": "sa-1", "resource_id": "lkc-1"})


@pytest.mark.parametrize(
    ("text", "created"),
    [
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_creation_times(text: str | None, created: datetime | None) -> None:
    """Nanoseconds are truncated; a zero or invalid date is unknown."""
    assert objects.user({"id": "u-1", "metadata": {"created_at": text}}).created_at == created


@pytest.mark.parametrize("given", [{}, {"id": None}, {"id": ""}, {"id": 7}])
def test_an_object_without_an_id_is_an_error(given: dict[str, Any]) -> None:
    """An object without an id is an error."""
    with pytest.raises(SourceDataError):
        objects.service_account(given)


def test_only_the_id_is_needed() -> None:
    """Every other field may be missing or null in every object."""
    bare: dict[str, Any] = {"id": "x", "metadata": None, "spec": None, "status": None}
    for read in (objects.kafka_cluster, objects.schema_registry, objects.ksqldb_cluster, objects.flink_pool):
        assert read(bare, "env-1").resource_id == "x"
    for identify in (objects.user, objects.service_account, objects.identity_provider, objects.api_key):
        assert identify(bare).identity_id == "x"
    assert list(objects.grants(bare)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sa-1", "sa-1"),
        ("User:sa-1", "sa-1"),
        ("crn://confluent.cloud/organization=1/service-account=sa-1", "sa-1"),
        ("crn://confluent.cloud/organization=1/identity-provider=op-1/identity-pool=pool-Ab1", "pool-Ab1"),
        ("crn://confluent.cloud/organization=1/identity-provider=op-1/identity=bob", None),
        ("", None),
    ],
)
def test_principals(text: str, found: str | None) -> None:
    """A principal in any spelling is reduced to its id; other texts do not change."""
    assert objects.principal_id(text) == (found if found or not text else text)
