"""The version of a tenant's data: whatever is made of the same version, in the same way, is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property

from chargeback.store.control.days import DayState
from chargeback.store.control.revisions import ControlRevisions, read_revisions
from chargeback.store.facts.tables import DAY_TABLES, DIMENSIONS_TABLE, Snapshot
from chargeback.store.queries.as_of import KnownRevisions, days_as_of
from chargeback.store.queries.cancellation import CancellationToken, interruptible
from chargeback.store.queries.category_lookup import CategoryIndex
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.tenant import TenantStore

# Also the evidence: an amount may get another explanation.
_TABLES = (*DAY_TABLES, DIMENSIONS_TABLE)


@dataclass(frozen=True)
class DataVersion:
    """A tenant's tags, cost categories, the revisions of its control database, and its tables, at one moment. If the
    tables are those of an earlier instant, ``past_states`` has the days as they were then."""

    tags: TagIndex
    control: ControlRevisions
    snapshots: Mapping[str, Snapshot]
    past_states: Mapping[date, DayState] | None = None
    categories: CategoryIndex = field(default_factory=CategoryIndex)

    @cached_property
    def digest(self) -> str:
        """One text for all that the answers are made of."""
        versions = {name: (snapshot.version, snapshot.gone) for name, snapshot in self.snapshots.items()}
        return hashlib.blake2b(f"{self.control}{versions}".encode(), digest_size=16).hexdigest()


def read_version(
    store: TenantStore, token: CancellationToken, caches: LookupCaches, as_of: datetime | None = None
) -> DataVersion:
    """Return the present version or, ``as_of`` an earlier instant, the present tags and names with the tables of then;
    no file of facts is opened.

    Raises:
        QueryTimeout: the token is cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    token.check()
    with store.control.read() as connection, interruptible(token, connection):
        control = read_revisions(connection)
        index = caches.tags.load(store.tenant_name, connection)
        categories = caches.documents_of(store.tenant_name, connection, as_of)
        known = KnownRevisions.read(connection) if as_of is not None else None
        facts_revision = store.facts_revision(connection)
    snapshots = store.snapshots(_TABLES, facts_revision)
    if known is None or as_of is None:
        return DataVersion(index, control, snapshots, categories=categories)
    past = days_as_of(store, known, snapshots, as_of)
    last = max((day for day, state in past.states.items() if state.was_calculated), default=None)
    return DataVersion(index, replace(control, last_calculated=last), past.snapshots, past.states, categories)
