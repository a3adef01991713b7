"""The version of a tenant's data: whatever is made of the same version, in the same way, is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from chargeback.store.control.revisions import ControlRevisions, read_revisions
from chargeback.store.facts.tables import DIMENSIONS_TABLE, TOPIC_USAGE_TABLE, Snapshot
from chargeback.store.queries.cancellation import CancellationToken, interruptible
from chargeback.store.queries.datasets import DATASETS
from chargeback.store.queries.tag_index import TagCache, TagIndex
from chargeback.store.tenant import TenantStore

_TABLES = (*(dataset.table for dataset in DATASETS), DIMENSIONS_TABLE, TOPIC_USAGE_TABLE)


@dataclass(frozen=True)
class DataVersion:
    """A tenant's tags, the revisions of its control database, and its tables, at one moment."""

    tags: TagIndex
    control: ControlRevisions
    snapshots: Mapping[str, Snapshot]

    @cached_property
    def digest(self) -> str:
        """One text for all that the answers are made of."""
        versions = {name: snapshot.version for name, snapshot in self.snapshots.items()}
        return hashlib.blake2b(f"{self.control}{versions}".encode(), digest_size=16).hexdigest()


def read_version(store: TenantStore, token: CancellationToken, tags: TagCache) -> DataVersion:
    """Return the present version; no file of facts is opened.

    Raises:
        QueryTimeout: the token is cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    token.check()
    with store.control.read() as connection, interruptible(token, connection):
        control = read_revisions(connection)
        index = tags.load(store.tenant_name, connection)
    return DataVersion(index, control, {name: store.facts.snapshot(name) for name in _TABLES})
