"""The Kafka cluster of each resource, as queries see it.

No table of facts has a cluster. The inventory knows it, because it keeps what lies in what, also of deleted resources:
a connector, for instance, lies in its cluster. So ``cluster_id`` is looked up when a query runs, as tags and names are,
and of days in the past it is what the inventory says now. Resources that serve a whole environment lie in no cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from chargeback.model.inventory import KAFKA_CLUSTER
from chargeback.store.control.inventory_lists import read_enclosing
from chargeback.store.control.revisions import read_entity_revisions
from chargeback.store.queries.revision_cache import RevisionCache
from chargeback.store.tenant import TenantStore

#: The name by which rows are filtered and grouped.
CLUSTER_ID: Final = "cluster_id"

#: Returns the id of the cluster of each resource that lies in one; called only by queries that name it.
ClusterLookup = Callable[[], Mapping[str, str]]


class ClusterCache:
    """The clusters of the most recently used tenants. Safe for use by several threads."""

    def __init__(self) -> None:
        self._clusters: RevisionCache[Mapping[str, str]] = RevisionCache(most=16)

    def load(self, store: TenantStore) -> Mapping[str, str]:
        """Return the cluster of each resource of a tenant's inventory that lies in one.

        Raises:
            StorageError: the control database cannot be read.
        """
        with store.control.read() as connection:
            _, revision = read_entity_revisions(connection)
            return self._clusters.get(store.tenant_name, revision, lambda: read_enclosing(connection, KAFKA_CLUSTER))
