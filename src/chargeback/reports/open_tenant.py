"""The storage of a configured tenant, opened for one use case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime

from chargeback.config import Tenant
from chargeback.errors import NothingGathered
from chargeback.recompute.rules import AllocationRules, RulesInForce, present_tenant
from chargeback.reports.tenant_view import TenantView
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.posted import PostedReader, open_posted
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.tenant import open_store


@contextmanager
def open_tenant(
    tenant: Tenant, as_of: datetime | None = None
) -> Iterator[tuple[TenantView, TenantReader, PostedReader]]:
    """Open the storage of a tenant: its view, a reader, and one of what was posted, as of an instant (None: now).

    Raises:
        NothingGathered: there is none yet.
        StorageError: it cannot be used.
    """
    database = tenant.storage.database_file
    if database is not None and not database.exists():
        raise NothingGathered(f"tenant {tenant.name}: no data has been gathered yet")
    token, caches = CancellationToken(), LookupCaches()
    with closing(open_store(tenant)) as store, QueryEngine() as engine:
        present = present_tenant(tenant, store.control)
        in_force = RulesInForce(tenant, store.control, AllocationRules.of(tenant))
        view = TenantView.of(present, store, AllocationRules.of(present), in_force=in_force)
        with open_reader(engine, store, token, caches, as_of=as_of) as reader:
            yield view, reader, open_posted(reader, store, token, caches, as_of)
