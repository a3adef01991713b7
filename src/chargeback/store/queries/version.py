"""The version of a tenant's data: what is made from the same version in the same way is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property

from chargeback.store.control.days import DayState
from chargeback.store.control.revisions import ControlRevisions, read_revisions
from chargeback.store.facts.tables import Snapshot
from chargeback.store.queries.as_of import days_as_of
from chargeback.store.queries.engine import CancellationToken, interruptible
from chargeback.store.queries.lookups import CategoryIndex, LookupCaches
from chargeback.store.queries.tag_index import TagIndex, tags_as_of
from chargeback.store.tenant import TenantStore


@dataclass(frozen=True)
class Past:
    """What goes with the tables and tags of an earlier instant: the ``states`` of the days then, and the tags now."""

    states: Mapping[date, DayState]
    present_tags: TagIndex
    at: datetime | None = None


@dataclass(frozen=True)
class DataVersion:
    """A tenant's tags, cost categories, the revisions of its control database, and its tables, at one moment: that of
    ``past``, if that is an earlier one."""

    tags: TagIndex
    control: ControlRevisions
    snapshots: Mapping[str, Snapshot]
    past: Past | None = None
    categories: CategoryIndex = field(default_factory=CategoryIndex)

    @cached_property
    def digest(self) -> str:
        """Return one text for all data that results are made of."""
        versions = {name: (snapshot.version, snapshot.gone) for name, snapshot in self.snapshots.items()}
        return hashlib.blake2b(f"{self.control}{versions}".encode(), digest_size=16).hexdigest()


def read_version(
    store: TenantStore, token: CancellationToken, caches: LookupCaches, as_of: datetime | None = None
) -> DataVersion:
    """Return the present version or, ``as_of`` an earlier instant, the tags, cost categories and tables of then with
    the present names; no file of facts is opened.

    Raises:
        QueryTimeout: the token is cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    token.check()
    with store.control.read() as connection, interruptible(token, connection):
        control = read_revisions(connection)
        index = caches.tags.load(store.tenant_name, connection, control.tags)
        categories = caches.documents_of(store.tenant_name, connection, as_of, control.categories)
        if as_of is None:
            return DataVersion(index, control, store.facts.load(connection), categories=categories)
        past, then = days_as_of(connection, store.facts, as_of), tags_as_of(connection, as_of)
    last = max((day for day, state in past.states.items() if state.was_calculated), default=None)
    control = replace(control, last_calculated=last)
    return DataVersion(then, control, past.snapshots, Past(past.states, index, as_of), categories)


def past_version(
    store: TenantStore, token: CancellationToken, caches: LookupCaches, at: datetime, revision: object
) -> DataVersion:
    """Return the version of a frequently used instant: that of a closing. It is read once for each ``revision`` of
    pasts.

    Raises:
        QueryTimeout: the token is cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    token.check()
    name = f"{store.tenant_name} {at.isoformat()}"
    found: DataVersion = caches.pasts.get(name, revision, lambda: read_version(store, token, caches, at))
    return found
