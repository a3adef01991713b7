"""Converts the provider's objects to resources, identities and grants.

Facts: the provider's OpenAPI (``org/v2``, ``cmk/v2``, ``srcm/v3``, ``connect/v1``, ``ksqldbcm/v2``, ``fcpm/v2``,
``iam/v2``, ``sql/v1``). Every field but the id may be missing. Fields that can have secrets or business data (connector
configurations, SQL) are read but not stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from chargeback.ecosystems.confluent_cloud.api import optional, required
from chargeback.model.days import parse_instant
from chargeback.model.inventory import Grant, Identity, Resource

Object = Mapping[str, Any]

ORGANIZATION: Final = "organization"
ENVIRONMENT: Final = "environment"
KAFKA_CLUSTER: Final = "kafka_cluster"
KAFKA_TOPIC: Final = "kafka_topic"
SCHEMA_REGISTRY: Final = "schema_registry"
CONNECTOR: Final = "connector"
KSQLDB_CLUSTER: Final = "ksqldb_cluster"
FLINK_POOL: Final = "flink_compute_pool"
FLINK_STATEMENT: Final = "flink_statement"

USER: Final = "user"
SERVICE_ACCOUNT: Final = "service_account"
API_KEY: Final = "api_key"
IDENTITY_PROVIDER: Final = "identity_provider"
IDENTITY_POOL: Final = "identity_pool"
PRINCIPAL: Final = "principal"

#: The phases of a statement that has ended.
_ENDED = frozenset({"COMPLETED", "FAILED", "STOPPED"})
_FIRST_YEAR = 2000  # a zero date means that there is no date
_PRINCIPAL = re.compile(r"(?:^|[/:=])((?:u|sa|pool)-[A-Za-z0-9]+)$")


def organization(each: Object) -> Resource:
    """``org.v2.Organization``."""
    return _resource(each, ORGANIZATION, display_name=optional(each, "display_name"))


def environment(each: Object, organization_id: str | None) -> Resource:
    """``org.v2.Environment``."""
    package = optional(each, "stream_governance_config", "package")
    return _resource(
        each,
        ENVIRONMENT,
        display_name=optional(each, "display_name"),
        parent_id=organization_id,
        metadata=_known(stream_governance=package),
    )


def kafka_cluster(each: Object, environment_id: str) -> Resource:
    """``cmk.v2.Cluster``."""
    config = _part(each, "spec", "config")
    cku = config.get("cku")
    return _resource(
        each,
        KAFKA_CLUSTER,
        display_name=optional(each, "spec", "display_name"),
        parent_id=environment_id,
        metadata=_known(
            kind=optional(config, "kind"),
            cku=cku if isinstance(cku, int) else None,
            cloud=optional(each, "spec", "cloud"),
            region=optional(each, "spec", "region"),
            availability=optional(each, "spec", "availability"),
            phase=optional(each, "status", "phase"),
        ),
    )


def schema_registry(each: Object, environment_id: str) -> Resource:
    """``srcm.v3.Cluster``: if no identity has a key for it, the identities active in its environment use it."""
    return _resource(
        each,
        SCHEMA_REGISTRY,
        display_name=optional(each, "spec", "display_name"),
        parent_id=environment_id,
        active_as=environment_id,
        metadata=_known(
            package=optional(each, "spec", "package"),
            cloud=optional(each, "spec", "cloud"),
            region=optional(each, "spec", "region"),
        ),
    )


def ksqldb_cluster(each: Object, environment_id: str) -> Resource:
    """``ksqldbcm.v2.Cluster``: its credential identity owns it."""
    csu = _part(each, "spec").get("csu")
    return _resource(
        each,
        KSQLDB_CLUSTER,
        display_name=optional(each, "spec", "display_name"),
        parent_id=environment_id,
        owner_id=optional(each, "spec", "credential_identity", "id"),
        active_as=optional(each, "spec", "kafka_cluster", "id"),
        metadata=_known(csu=csu if isinstance(csu, int) else None, phase=optional(each, "status", "phase")),
    )


def flink_pool(each: Object, environment_id: str) -> Resource:
    """``fcpm.v2.ComputePool``; ``metadata`` has ``cloud`` and ``region``, where its statements are listed."""
    most = _part(each, "spec").get("max_cfu")
    return _resource(
        each,
        FLINK_POOL,
        display_name=optional(each, "spec", "display_name"),
        parent_id=environment_id,
        metadata=_known(
            cloud=optional(each, "spec", "cloud"),
            region=optional(each, "spec", "region"),
            max_cfu=most if isinstance(most, int) else None,
            phase=optional(each, "status", "phase"),
        ),
    )


def flink_statement(each: Object, environment_id: str) -> Resource:
    """``sql.v1.Statement``: owned by its principal, contained in its pool; its SQL is not stored.

    Names are reused, so the id is the statement's uid; if that is missing, environment and name.

    The provider still lists a statement that has ended. Its owner no longer uses the pool, so it ends (``deleted_at``)
    at ``status.end_time``, which the provider sets when the phase is COMPLETED, FAILED or STOPPED. A resumed statement
    has another phase, and exists again. If that time is missing (it is in early access), the end is unknown, and the
    statement exists until it is no longer listed: with an earlier end, measured usage would lose its owner.
    """
    name, phase = required(each, "name"), optional(each, "status", "phase")
    ended_at = _instant(each, "end_time", of="status") if phase in _ENDED else None
    return Resource(
        resource_id=optional(each, "metadata", "uid") or f"{environment_id}:statement:{name}",
        resource_type=FLINK_STATEMENT,
        display_name=name,
        parent_id=optional(each, "spec", "compute_pool_id") or environment_id,
        owner_id=principal_id(optional(each, "spec", "principal")),
        created_at=_instant(each, "created_at"),
        deleted_at=ended_at or _instant(each, "deleted_at"),
        metadata=_known(environment_id=environment_id, phase=phase),
    )


def connector(name: str, each: Object, cluster_id: str, key_owners: Mapping[str, str]) -> Resource | None:
    """``connect.v1.ConnectorExpansion``, or None if it is deleted already.

    With ``kafka.auth.mode`` SERVICE_ACCOUNT the owner is ``kafka.service.account.id``. With KAFKA_API_KEY, which is
    the default, it is the owner of ``kafka.api.key``; if the provider shows asterisks there, the owner is unknown.
    ``key_owners`` maps API keys to their owners.
    """
    config = _part(each, "info", "config")
    state = optional(each, "status", "connector", "state")
    if state == "DELETED":
        return None
    account, key = optional(config, "kafka.service.account.id"), optional(config, "kafka.api.key")
    mode = optional(config, "kafka.auth.mode")
    if mode is None:
        mode = "SERVICE_ACCOUNT" if account else "KAFKA_API_KEY"
    owner = None
    if mode == "SERVICE_ACCOUNT":
        owner = account if account and account.strip("*") else None
    elif key:
        owner = key_owners.get(key)
    kind = optional(each, "info", "type")
    return Resource(
        resource_id=required(each, "id", "id"),
        resource_type=CONNECTOR,
        display_name=name,
        parent_id=cluster_id,
        owner_id=owner,
        active_as=cluster_id,
        metadata=_known(
            auth_mode=mode,
            connector_class=optional(config, "connector.class"),
            connector_type=kind if kind != "unknown" else None,
            custom=True if optional(config, "confluent.connector.type") == "CUSTOM" else None,
            state=state,
        ),
    )


def user(each: Object) -> Identity:
    """``iam.v2.User``."""
    email = optional(each, "email")
    return _identity(
        each,
        USER,
        optional(each, "full_name") or email,
        _known(email=email, auth_type=optional(each, "auth_type")),
    )


def service_account(each: Object) -> Identity:
    """``iam.v2.ServiceAccount``."""
    return _identity(
        each, SERVICE_ACCOUNT, optional(each, "display_name"), _known(description=optional(each, "description"))
    )


def identity_provider(each: Object) -> Identity:
    """``iam.v2.IdentityProvider``."""
    return _identity(
        each,
        IDENTITY_PROVIDER,
        optional(each, "display_name"),
        _known(description=optional(each, "description"), issuer=optional(each, "issuer")),
    )


def identity_pool(each: Object, provider_id: str) -> Identity:
    """``iam.v2.IdentityPool``."""
    return _identity(
        each,
        IDENTITY_POOL,
        optional(each, "display_name"),
        _known(description=optional(each, "description"), provider_id=provider_id, state=optional(each, "state")),
    )


def api_key(each: Object) -> Identity:
    """``iam.v2.ApiKey``: part of the inventory, but it never pays. Lists do not have its secret."""
    resources = [found for found, _ in _key_resources(each)]
    return _identity(
        each,
        API_KEY,
        optional(each, "spec", "display_name") or optional(each, "spec", "description"),
        _known(owner_id=optional(each, "spec", "owner", "id"), resource_id=",".join(resources) or None),
    )


def grants(each: Object) -> Iterator[Grant]:
    """Yield one grant per resource that an API key gives access to. Keys for the cloud's own API, for everything
    (Global) and for a whole Flink region make no identity active on a resource."""
    key, owner = required(each, "id"), optional(each, "spec", "owner", "id")
    for resource_id, kind in _key_resources(each):
        if owner and resource_id.lower() not in {"cloud", "global"} and kind not in {"Cloud", "Global", "Region"}:
            yield Grant(key, resource_id, owner, _instant(each, "created_at"), _instant(each, "deleted_at"))


def principal_id(text: str | None) -> str | None:
    """Return the identity that a principal names: an id, ``User:sa-…``, or the end of a CRN; else the text itself.

    >>> principal_id("crn://confluent.cloud/organization=o/identity-provider=op-1/identity-pool=pool-7")
    'pool-7'
    >>> principal_id("User:sa-123"), principal_id("u-9"), principal_id("alice")
    ('sa-123', 'u-9', 'alice')
    """
    if not text:
        return None
    match = _PRINCIPAL.search(text)
    return match[1] if match else text


def _key_resources(each: Object) -> list[tuple[str, str | None]]:
    spec = _part(each, "spec")
    listed = spec.get("resources")
    objects = [spec.get("resource"), *(listed if isinstance(listed, list) else ())]
    found = {optional(each, "id"): optional(each, "kind") for each in objects}
    return [(resource_id, kind) for resource_id, kind in found.items() if resource_id]


def _resource(
    each: Object,
    kind: str,
    *,
    display_name: str | None,
    parent_id: str | None = None,
    owner_id: str | None = None,
    active_as: str | None = None,
    metadata: Mapping[str, str | int | bool | None] | None = None,
) -> Resource:
    return Resource(
        resource_id=required(each, "id"),
        resource_type=kind,
        display_name=display_name,
        parent_id=parent_id,
        owner_id=owner_id,
        active_as=active_as,
        created_at=_instant(each, "created_at"),
        deleted_at=_instant(each, "deleted_at"),
        metadata=metadata or {},
    )


def _identity(
    each: Object, kind: str, display_name: str | None, metadata: Mapping[str, str | int | bool | None]
) -> Identity:
    return Identity(
        identity_id=required(each, "id"),
        identity_type=kind,
        display_name=display_name,
        created_at=_instant(each, "created_at"),
        deleted_at=_instant(each, "deleted_at"),
        metadata=metadata,
    )


def _instant(each: Object, name: str, *, of: str = "metadata") -> datetime | None:
    text = optional(each, of, name)
    if text is None:
        return None
    try:
        instant = parse_instant(text)
    except (ValueError, OverflowError):
        return None
    return instant if instant.year >= _FIRST_YEAR else None


def _part(each: Any, *path: str) -> Mapping[str, Any]:
    for key in path:
        each = each.get(key) if isinstance(each, dict) else None
    return each if isinstance(each, dict) else {}


def _known(**values: str | int | bool | None) -> dict[str, str | int | bool | None]:
    return {name: value for name, value in values.items() if value is not None}
