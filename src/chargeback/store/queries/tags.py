"""Tags as questions see them: all tags of a tenant in memory, as of one revision.

Tags lie in the control database, rows in files; a row's tags are resolved when it is asked for. Every write of a tag
raises the tenant's ``tags_revision``, so that a book that is still right is not loaded again.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from chargeback.store.control import tags as control

_Tags = Mapping[str, Mapping[str, str]]
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True)
class TagBook:
    """All tags of a tenant: entity id → key → value, of identities and of resources."""

    identities: _Tags = field(default_factory=dict)
    resources: _Tags = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether the tenant has no tag at all."""
        return not self.identities and not self.resources

    def resolved(self, identity_id: str, resource_id: str) -> dict[str, str]:
        """The tags of a row, by key: its resource's and its identity's; on the same key the identity's wins, for it
        is the one that pays."""
        of_identity = self.identities.get(identity_id, _NONE)
        of_resource = self.resources.get(resource_id, _NONE)
        if not of_identity and not of_resource:
            return {}
        return dict(sorted({**of_resource, **of_identity}.items()))

    def holders(self, key: str) -> tuple[dict[str, str], dict[str, str]]:
        """Who has tag ``key``, with which value: (identities, resources)."""
        identities = {entity: tags[key] for entity, tags in self.identities.items() if key in tags}
        resources = {entity: tags[key] for entity, tags in self.resources.items() if key in tags}
        return identities, resources


class TagBooks:
    """The latest book of each tenant. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: dict[str, tuple[int, TagBook]] = {}

    def of(self, tenant_name: str, connection: Connection) -> TagBook:
        """The tenant's tags as its control database has them now.

        Raises:
            StorageError: the database cannot be read.
        """
        revision = control.revision(connection)
        with self._lock:
            known = self._books.get(tenant_name)
        if known is not None and known[0] == revision:
            return known[1]
        book = _load(connection)
        with self._lock:
            self._books[tenant_name] = (revision, book)
        return book


def _load(connection: Connection) -> TagBook:
    by_type: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for entity_type, entity_id, key, value in control.every_tag(connection):
        by_type[entity_type][entity_id][key] = value
    return TagBook(dict(by_type[control.IDENTITY]), dict(by_type[control.RESOURCE]))
