"""Tags as queries see them: all tags of a tenant in memory, as of one revision.

Tags are in the control database, rows in files; a row's tags are resolved when it is read. Every write of a tag raises
the tenant's ``tags_revision``, so that an index that is still current is not loaded again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from chargeback.store.control import tags as control
from chargeback.store.queries.revision_cache import RevisionCache

_Tags = Mapping[str, Mapping[str, str]]
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True)
class TagIndex:
    """All tags of a tenant: entity id → key → value, of identities and of resources."""

    identities: _Tags = field(default_factory=dict)
    resources: _Tags = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the tenant has no tag at all."""
        return not self.identities and not self.resources

    def resolve(self, identity_id: str, resource_id: str) -> dict[str, str]:
        """Return the tags of a row by key: its resource's and its identity's. On the same key the identity's wins:
        it is the one that pays."""
        of_identity = self.identities.get(identity_id, _NONE)
        of_resource = self.resources.get(resource_id, _NONE)
        if not of_identity and not of_resource:
            return {}
        return dict(sorted({**of_resource, **of_identity}.items()))

    def keys(self) -> list[str]:
        """Return every key in use, ascending."""
        entities = (*self.identities.values(), *self.resources.values())
        return sorted({key for tags in entities for key in tags})

    def holders(self, entity_type: str, key: str) -> dict[str, str]:
        """Return the ids of the identities, or resources, that have the tag ``key``, with its value."""
        entities = self.identities if entity_type == control.IDENTITY else self.resources
        return {entity: tags[key] for entity, tags in entities.items() if key in tags}


class TagCache:
    """The latest tag index of each tenant. Safe for use by several threads."""

    def __init__(self) -> None:
        self._indexes: RevisionCache[TagIndex] = RevisionCache()

    def load(self, tenant_name: str, connection: Connection) -> TagIndex:
        """Return the tenant's tags as its control database has them now.

        Raises:
            StorageError: the database cannot be read.
        """
        return self._indexes.get(tenant_name, control.revision(connection), lambda: _load(connection))


def _load(connection: Connection) -> TagIndex:
    by_type: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for entity_type, entity_id, key, value in control.every_tag(connection):
        by_type[entity_type][entity_id][key] = value
    return TagIndex(dict(by_type[control.IDENTITY]), dict(by_type[control.RESOURCE]))
