"""Tags as queries see them: all tags of a tenant in memory, as of one revision.

Tags are in the control database, rows in files; a row's tags are resolved when it is read. Every write of a tag raises
the tenant's ``tags_revision``, so that an index that is still current is not loaded again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Final

from sqlalchemy import Connection

from chargeback.model.dated import FOREVER, DatedValue
from chargeback.store.control import tags as control
from chargeback.store.queries.revision_cache import RevisionCache
from chargeback.store.queries.visible_sums import VisibleSums

_Tags = Mapping[str, Mapping[str, Sequence[DatedValue]]]
_NONE: Final[Mapping[str, Sequence[DatedValue]]] = {}


@dataclass(frozen=True)
class TagIndex:
    """All tags of a tenant: entity id → key → values, of identities and of resources.

    The values of a key hold on different days; a row has those of its UTC day. ``sums`` are the kept sums by tag.
    """

    identities: _Tags = field(default_factory=dict)
    resources: _Tags = field(default_factory=dict)
    sums: VisibleSums = field(default_factory=VisibleSums, compare=False, repr=False)

    @classmethod
    def undated(
        cls, identities: Mapping[str, Mapping[str, str]], resources: Mapping[str, Mapping[str, str]]
    ) -> TagIndex:
        """Return the index of tags that hold for ever."""
        of_identities, of_resources = (
            {entity: {key: (DatedValue(value),) for key, value in tags.items()} for entity, tags in entities.items()}
            for entities in (identities, resources)
        )
        return cls(of_identities, of_resources)

    @property
    def is_empty(self) -> bool:
        """Whether the tenant has no tag at all."""
        return not self.identities and not self.resources

    def resolve(self, identity_id: str, resource_id: str, day: date) -> dict[str, str]:
        """Return the tags of a row of a UTC day by key: its resource's and its identity's. On the same key the
        identity's wins: it is the one that pays."""
        of_identity = self.identities.get(identity_id, _NONE)
        of_resource = self.resources.get(resource_id, _NONE)
        if not of_identity and not of_resource:
            return {}
        return dict(sorted({**_on(of_resource, day), **_on(of_identity, day)}.items()))

    def among(self, identities: Collection[str], resources: Collection[str]) -> TagIndex:
        """Return the tags of some identities and resources."""
        return TagIndex(
            {entity: tags for entity, tags in self.identities.items() if entity in identities},
            {entity: tags for entity, tags in self.resources.items() if entity in resources},
        )

    def with_values(self, values: Iterable[tuple[str, str, str, str | None]]) -> TagIndex:
        """Return the same tags with others of some entities, on all days: (entity type, entity id, key, value); None
        takes the tag away."""
        changed = {control.IDENTITY: dict(self.identities), control.RESOURCE: dict(self.resources)}
        for kind, entity, key, value in values:
            tags = {name: each for name, each in changed[kind].get(entity, _NONE).items() if name != key}
            changed[kind][entity] = tags if value is None else {**tags, key: (DatedValue(value, FOREVER),)}
        return TagIndex(changed[control.IDENTITY], changed[control.RESOURCE])

    def keys(self) -> list[str]:
        """Return every key in use, ascending."""
        return sorted({key for tags in self._entities for key in tags})

    def pairs(self) -> set[tuple[str, str]]:
        """Return every key with each of its values, on any day."""
        return {(key, each.value) for tags in self._entities for key, values in tags.items() for each in values}

    def holders(self, entity_type: str, key: str) -> dict[str, Sequence[DatedValue]]:
        """Return the ids of the identities, or resources, that have the tag ``key``, with its values."""
        entities = self.identities if entity_type == control.IDENTITY else self.resources
        return {entity: tags[key] for entity, tags in entities.items() if key in tags}

    @cached_property
    def dated_keys(self) -> tuple[str, ...]:
        """The keys with a value that holds for some days only, ascending."""
        return tuple(
            sorted({key for tags in self._entities for key, values in tags.items() if not all_undated(values)})
        )

    @cached_property
    def changes(self) -> tuple[date, ...]:
        """The days from which on some row may have other tags than on the day before, ascending."""
        periods = [each.during for tags in self._entities for values in tags.values() for each in values]
        ends = {day for period in periods for day in (period.first, period.end) if day is not None}
        return tuple(sorted(ends))

    def era(self, day: date) -> int:
        """Return a number that is the same for days on which every row has the same tags."""
        return bisect_right(self.changes, day)

    @property
    def _entities(self) -> Sequence[Mapping[str, Sequence[DatedValue]]]:
        return (*self.identities.values(), *self.resources.values())


def all_undated(values: Sequence[DatedValue]) -> bool:
    """Return whether all of some values hold for ever."""
    return all(each.during == FOREVER for each in values)


def _on(tags: Mapping[str, Sequence[DatedValue]], day: date) -> dict[str, str]:
    return {key: each.value for key, values in tags.items() for each in values if day in each.during}


class TagCache:
    """The latest tag index of each tenant. Safe for use by several threads."""

    def __init__(self) -> None:
        self._indexes: RevisionCache[TagIndex] = RevisionCache()

    def load(self, tenant_name: str, connection: Connection, revision: int | None = None) -> TagIndex:
        """Return the tenant's tags as its control database has them now; ``revision`` is theirs, if it was read.

        Raises:
            StorageError: the database cannot be read.
        """
        if revision is None:
            revision = control.revision(connection)
        return self._indexes.get(tenant_name, revision, lambda: _made(control.every_tag(connection)))


def read_tags(connection: Connection) -> TagIndex:
    """Return a tenant's tags as a transaction sees them.

    Raises:
        StorageError: the database cannot be read.
    """
    return _made(control.every_tag(connection))


def tags_as_of(connection: Connection, at: datetime) -> TagIndex:
    """Return a tenant's tags as they were known at an instant.

    Raises:
        StorageError: the database cannot be read.
    """
    return _made(control.every_tag_as_of(connection, at))


def _made(found: Iterable[tuple[str, str, str, DatedValue]]) -> TagIndex:
    by_type: dict[str, dict[str, dict[str, tuple[DatedValue, ...]]]] = defaultdict(lambda: defaultdict(dict))
    for entity_type, entity_id, key, held in found:
        tags = by_type[entity_type][entity_id]
        tags[key] = (*tags[key], held) if key in tags else (held,)
    return TagIndex(dict(by_type[control.IDENTITY]), dict(by_type[control.RESOURCE]))
