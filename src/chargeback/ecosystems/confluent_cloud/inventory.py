"""The inventory: every listing is complete, or reported as failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from urllib.parse import quote

from chargeback.ecosystems.confluent_cloud import objects
from chargeback.ecosystems.confluent_cloud.api import ControlPlane
from chargeback.ecosystems.confluent_cloud.flink import FlinkStatements
from chargeback.errors import SourceDataError, SourceError
from chargeback.model.inventory import GRANT, Grant, Identity, Inventory, ListedInventory, Resource

logger = logging.getLogger(__name__)

#: Without these types it is unknown who pays.
REQUIRED: Final = frozenset(
    {objects.ENVIRONMENT, objects.KAFKA_CLUSTER, objects.SERVICE_ACCOUNT, objects.USER, objects.API_KEY}
)
CONNECTORS: Final = "/connect/v1/environments/{environment}/clusters/{cluster}/connectors"
_WORKERS = 4

_T = TypeVar("_T")
_U = TypeVar("_U")


class _ParentFailed(SourceError):
    """The parents of a listing could not be listed; the message is the reason."""


class InventoryListing:
    """Lists everything once. If the listing of a type fails, no part of it is used, and nothing is deleted."""

    def __init__(self, control_plane: ControlPlane, statements: FlinkStatements) -> None:
        self._control_plane = control_plane
        self._statements = statements
        self._resources: dict[str, Resource] = {}
        self._identities: dict[str, Identity] = {}
        self._grants: list[Grant] = []
        self._complete: set[str] = set()
        self._partial: set[str] = set()
        self._failures: dict[str, str] = {}

    def gather(self) -> ListedInventory:
        """Return the listings, each complete or among the failures.

        Raises:
            Stopped: the work was asked to stop.
        """
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="inventory") as pool:
            # First, so that the organization's rate limit applies from now on instead of the key's.
            organizations = self._hold(
                objects.ORGANIZATION, lambda: map(objects.organization, self._control_plane.organizations())
            )
            self._people(pool)
            self._things(pool, organizations)
        inventory = Inventory(tuple(self._resources.values()), tuple(self._identities.values()), tuple(self._grants))
        return ListedInventory(
            inventory, frozenset(self._complete), frozenset(self._partial), dict(self._failures), REQUIRED
        )

    def _people(self, pool: ThreadPoolExecutor) -> None:
        list_all = self._control_plane.list
        self._identify(objects.USER, lambda: map(objects.user, list_all("/iam/v2/users")))
        self._identify(
            objects.SERVICE_ACCOUNT, lambda: map(objects.service_account, list_all("/iam/v2/service-accounts"))
        )
        providers = self._identify(
            objects.IDENTITY_PROVIDER, lambda: map(objects.identity_provider, list_all("/iam/v2/identity-providers"))
        )
        self._identify(
            objects.IDENTITY_POOL, lambda: self._each(pool, providers, self._pools_of, objects.IDENTITY_PROVIDER)
        )
        self._keys()

    def _keys(self) -> None:
        def keys() -> Iterator[Identity]:
            for each in self._control_plane.list("/iam/v2/api-keys"):
                found.extend(objects.grants(each))
                yield objects.api_key(each)

        found: list[Grant] = []
        if self._identify(objects.API_KEY, keys) is not None:
            self._grants += found
            self._complete.add(GRANT)
        else:
            self._failures[GRANT] = self._failures[objects.API_KEY]

    def _things(self, pool: ThreadPoolExecutor, organizations: Sequence[Resource] | None) -> None:
        list_all = self._control_plane.list
        only = organizations[0].resource_id if organizations and len(organizations) == 1 else None
        environments = self._hold(
            objects.ENVIRONMENT, lambda: (objects.environment(each, only) for each in list_all("/org/v2/environments"))
        )

        def everywhere(path: str, read: Callable[[objects.Object, str], Resource]) -> Callable[[], Iterable[Resource]]:
            def of(environment: Resource) -> list[Resource]:
                where = environment.resource_id
                return [read(each, where) for each in list_all(path, environment=where)]

            return lambda: self._each(pool, environments, of, objects.ENVIRONMENT)

        clusters = self._hold(objects.KAFKA_CLUSTER, everywhere("/cmk/v2/clusters", objects.kafka_cluster))
        self._hold(objects.SCHEMA_REGISTRY, everywhere("/srcm/v3/clusters", objects.schema_registry))
        self._hold(objects.KSQLDB_CLUSTER, everywhere("/ksqldbcm/v2/clusters", objects.ksqldb_cluster))
        pools = self._hold(objects.FLINK_POOL, everywhere("/fcpm/v2/compute-pools", objects.flink_pool))
        self._hold(objects.CONNECTOR, lambda: self._each(pool, clusters, self._connectors_of, objects.KAFKA_CLUSTER))
        if self._statements.configured:
            self._hold(objects.FLINK_STATEMENT, lambda: self._statements.of(self._listed(pools, objects.FLINK_POOL)))
            if self._statements.unseen and objects.FLINK_STATEMENT in self._complete:
                # Entities that were not listed may still exist; those that were listed do.
                self._complete.remove(objects.FLINK_STATEMENT)
                self._partial.add(objects.FLINK_STATEMENT)

    def _pools_of(self, provider: Identity) -> list[Identity]:
        path = f"/iam/v2/identity-providers/{quote(provider.identity_id, safe='')}/identity-pools"
        return [objects.identity_pool(each, provider.identity_id) for each in self._control_plane.list(path)]

    def _connectors_of(self, cluster: Resource) -> list[Resource]:
        path = CONNECTORS.format(
            environment=quote(cluster.parent_id or "", safe=""), cluster=quote(cluster.resource_id, safe="")
        )
        answer = self._control_plane.get(path, expand="info,status,id")
        if answer is None:
            return []
        if not isinstance(answer, dict) or not all(isinstance(each, dict) for each in answer.values()):
            address = self._control_plane.client.address_of(path)
            raise SourceDataError(f"{address}: the response is not a map of connectors", source="ccloud_api")
        owners = self._key_owners()
        found = (objects.connector(name, each, cluster.resource_id, owners) for name, each in answer.items())
        return [connector for connector in found if connector is not None]

    def _key_owners(self) -> dict[str, str]:
        return {
            identity.identity_id: owner
            for identity in self._identities.values()
            if identity.identity_type == objects.API_KEY and isinstance(owner := identity.metadata.get("owner_id"), str)
        }

    def _each(
        self, pool: ThreadPoolExecutor, within: Sequence[_T] | None, read: Callable[[_T], list[_U]], kind: str
    ) -> list[_U]:
        """Return the results of ``read`` for each object of a kind; several calls run in parallel."""
        return [found for part in pool.map(read, self._listed(within, kind)) for found in part]

    def _listed(self, within: Sequence[_T] | None, kind: str) -> Sequence[_T]:
        """Return the listed objects of a kind; if they could not be listed, raise an error with the reason."""
        if within is None:
            raise _ParentFailed(self._failures[kind])
        return within

    def _hold(self, kind: str, read: Callable[[], Iterable[Resource]]) -> list[Resource] | None:
        found = self._attempt(kind, read)
        self._resources |= {each.resource_id: each for each in found or ()}
        return found

    def _identify(self, kind: str, read: Callable[[], Iterable[Identity]]) -> list[Identity] | None:
        found = self._attempt(kind, read)
        self._identities |= {each.identity_id: each for each in found or ()}
        return found

    def _attempt(self, kind: str, read: Callable[[], Iterable[_T]]) -> list[_T] | None:
        try:
            found = list(read())
        except SourceError as error:
            logger.debug("%s cannot be listed: %s", kind, error)
            self._failures[kind] = str(error)
            return None
        self._complete.add(kind)
        return found
