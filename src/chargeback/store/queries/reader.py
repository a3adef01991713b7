"""One tenant's stored data, as one request or use case sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date, datetime
from typing import Any, TypeVar

from chargeback.store.control.days import DayState
from chargeback.store.facts.tables import FactTables, Snapshot
from chargeback.store.queries.aggregate import Aggregate, Grouping, aggregate
from chargeback.store.queries.cancellation import CancellationToken, interruptible
from chargeback.store.queries.clusters import ClusterCache, ClusterLookup
from chargeback.store.queries.datasets import TAGS, Dataset
from chargeback.store.queries.engine import Cursor, QueryEngine
from chargeback.store.queries.export import csv_chunks
from chargeback.store.queries.paging import Order, Page, read_page, read_sorted_page
from chargeback.store.queries.partials import Addends, add_up
from chargeback.store.queries.scan import Condition, Scan
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagCache, TagIndex
from chargeback.store.queries.version import DataVersion, read_version
from chargeback.store.tenant import TenantStore

T = TypeVar("T")


class TenantReader:
    """Reads the datasets of one tenant: list, aggregate, export, dates.

    Every query of one reader sees the same version of each table and the same tags. All of them find their rows
    through :meth:`scan` (or :meth:`snapshot`, where a table is no dataset): a condition that is added there holds for
    everything that is read.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    def __init__(
        self,
        cursor: Cursor,
        tables: FactTables,
        tags: TagIndex,
        snapshots: Mapping[str, Snapshot] | None = None,
        clusters: ClusterLookup = dict,
        past_states: Mapping[date, DayState] | None = None,
    ) -> None:
        """Read ``tables``; with ``past_states``, ``snapshots`` are those of an earlier instant: kept partial aggregates
        are used for it, but none are made in their place."""
        self.cursor = cursor
        self.tags = tags
        self.clusters = clusters
        self._tables = tables
        self._snapshots = dict(snapshots or {})
        self.past_states = past_states
        self._partials = tables.partials if past_states is None else tables.partials.read_only()

    def snapshot(self, table: str) -> Snapshot:
        """Return a table at the version at which this reader first saw it."""
        if table not in self._snapshots:
            self._snapshots[table] = self._tables.snapshot(table)
        return self._snapshots[table]

    def scan(self, dataset: Dataset, selection: Selection) -> Scan:
        """Return the files and the condition by which the selected rows of a dataset are read.

        Raises:
            ValueError: the dataset cannot be filtered so.
        """
        return Scan.of(self.snapshot(dataset.table), selection.window, self.condition(dataset, selection))

    def condition(self, dataset: Dataset, selection: Selection) -> Condition:
        """Return the filters of a selection as SQL over the rows of a dataset.

        Raises:
            ValueError: the dataset cannot be filtered so.
        """
        return selection.condition(dataset, self.tags, self.clusters)

    def list_rows(
        self, dataset: Dataset, selection: Selection, page: Page, order: Order | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of the selected rows by time and ids, or in another ``order``, as the API shows them, and how
        many rows there are."""
        scan = self.scan(dataset, selection)
        if order is None:
            rows, total = read_page(self.cursor, scan, dataset.row_sql, page)
        else:
            rows, total = read_sorted_page(self.cursor, scan, dataset.row_sql, page, order)
        items = [dataset.item(row) for row in rows]
        if dataset.shows_tags:
            identity, resource = dataset.tag_columns
            for item in items:
                item[TAGS] = self.tags.resolve(item[identity], item[resource])
        return items, total

    def aggregate(self, dataset: Dataset, selection: Selection, grouping: Grouping) -> Aggregate:
        """Return the sums of the selected rows by columns, tags and time."""
        scan = self.scan(dataset, selection)
        return aggregate(self.cursor, dataset, scan, grouping, self.tags, self._partials, self.clusters)

    def add_up(self, dataset: Dataset, selection: Selection, sql: str, query: Callable[[Addends], T]) -> T:
        """Return what ``query`` makes of the selected rows or, where these answer it, of their partial aggregates, see
        :func:`~chargeback.store.queries.partials.add_up`."""
        return add_up(self.cursor, self._partials, dataset, self.scan(dataset, selection), sql, query)

    def export_csv(
        self, dataset: Dataset, selection: Selection, columns: Sequence[str] = (), *, per: str | None = None
    ) -> Iterator[memoryview]:
        """Yield the selected rows as CSV, see :func:`~chargeback.store.queries.export.csv_chunks`.

        Without ``columns`` the file has the dataset's ``default_export``. Nothing is read before the first piece is
        asked for.
        """
        scan = self.scan(dataset, selection)
        yield from csv_chunks(self.cursor, dataset, scan, columns or dataset.default_export, self.tags, per=per)

    def dates(self, dataset: Dataset) -> list[date]:
        """Return the UTC days that have rows, ascending; no file of facts is opened."""
        return self.snapshot(dataset.table).days


@contextmanager
def open_reader(
    engine: QueryEngine,
    store: TenantStore,
    token: CancellationToken,
    tags: TagCache,
    slot: AbstractContextManager[None] | None = None,
    clusters: ClusterCache | None = None,
    as_of: datetime | None = None,
) -> Iterator[TenantReader]:
    """Open a reader of a tenant for the length of the ``with``; ``token`` cancels what it runs.

    The query engine is used inside ``slot``, where there is one; the tags are read before it. With ``as_of`` the reader
    sees the tables of that instant.

    Raises:
        QueryTimeout: the token is cancelled already.
        StorageError: the tenant's control database cannot be read.
    """
    token.check()
    known = clusters or ClusterCache()

    def _clusters() -> Mapping[str, str]:
        return known.load(store)

    if as_of is None:
        with store.control.read() as connection, interruptible(token, connection):
            index = tags.load(store.tenant_name, connection)
        with slot or nullcontext(), engine.cursor(token) as cursor:
            yield TenantReader(cursor, store.facts, index, clusters=_clusters)
        return
    version = read_version(store, token, tags, as_of)
    with slot or nullcontext(), engine.cursor(token) as cursor:
        yield version_reader(cursor, store, version, _clusters)


def version_reader(
    cursor: Cursor, store: TenantStore, version: DataVersion, clusters: ClusterLookup = dict
) -> TenantReader:
    """Return the reader of one version of a tenant's data."""
    return TenantReader(cursor, store.facts, version.tags, version.snapshots, clusters, version.past_states)
