"""One tenant's stored data, as one request or use case sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa

from chargeback.access.scope import RowScope
from chargeback.categories.resolve import Names
from chargeback.model.days import DayRange
from chargeback.model.money import parse_decimal, render
from chargeback.store.control.days import DayState
from chargeback.store.control.tags import RESOURCE
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import FactTables, Snapshot
from chargeback.store.queries.aggregate import Aggregate, Grouping, aggregate
from chargeback.store.queries.category_parts import add_values
from chargeback.store.queries.clusters import ClusterLookup
from chargeback.store.queries.datasets import DATASETS, TAGS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.engine import CancellationToken, Cursor, QueryEngine, interruptible
from chargeback.store.queries.export import ExportedRows, ExportFormat, export_pieces
from chargeback.store.queries.keys import ByColumn, ByTagHolder, Key
from chargeback.store.queries.lookups import CATEGORY_PREFIX, CategoryLookup, LookupCaches
from chargeback.store.queries.measurements import Measured
from chargeback.store.queries.paging import Listed, Order, Page, read_page, read_sorted_page
from chargeback.store.queries.partials import SumSource, sum_sources, with_first
from chargeback.store.queries.plan import QueryPlan
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.version import DataVersion, Past, read_version
from chargeback.store.queries.visible_sums import VisibleEntities, VisibleSums
from chargeback.store.tenant import TenantStore

_IDENTITY: Final = "identity_id"


class TenantReader:
    """Reads the datasets of one tenant: list, aggregate, export, dates.

    Every query of one reader sees the same version of each table and the same tags. With a ``scope`` it sees some rows
    only: its plan adds the scope's filters to every selection (:mod:`~chargeback.store.queries.plan`), and nothing else
    does. What is read through :meth:`snapshot` is not narrowed.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    def __init__(
        self,
        cursor: Cursor,
        tables: FactTables,
        tags: TagIndex,
        snapshots: Mapping[str, Snapshot] | None = None,
        clusters: ClusterLookup = dict,
        past: Past | None = None,
        categories: CategoryLookup | None = None,
        scope: RowScope | None = None,
    ) -> None:
        """Read ``tables``; with a ``past``, ``snapshots`` and ``tags`` are those of an earlier instant: kept partial
        aggregates are used for it, but none are made in their place. Conditions of a scope on tags use the present
        tags: a caller who may no longer see something may not see its past."""
        self.cursor = cursor
        self.tags = tags
        self.clusters = clusters
        self.categories = categories or CategoryLookup()
        self._tables = tables
        self._snapshots = dict(snapshots or {})
        self._past = past
        self.scope = scope
        self._keep_entities: Callable[[Callable[[], VisibleEntities]], VisibleEntities] | None = None
        partials = tables.partials if past is None else tables.partials.read_only()
        present_tags = tags if past is None else past.present_tags
        known = (self.snapshot, tags, clusters, self.categories, partials, scope, present_tags)
        self.plan = QueryPlan(cursor, *known)

    def with_categories(self, categories: CategoryLookup) -> TenantReader:
        """Return the same reader with other cost categories."""
        return self._like_this(categories, self.scope)

    def with_entities(self, tags: TagIndex, categories: CategoryLookup) -> TenantReader:
        """Return the same reader with other tags and cost categories."""
        known = (self._tables, tags, self._snapshots, self.clusters, self._past)
        return TenantReader(self.cursor, *known, categories, self.scope)

    def with_files(self, table: str, files: Sequence[DayFile]) -> TenantReader:
        """Return the same reader with other files of a table, without partial aggregates."""
        snapshots = {**self._snapshots, table: Snapshot(self.snapshot(table).version, tuple(files))}
        past = self._past or Past({}, self.tags)
        known = (self._tables, self.tags, snapshots, self.clusters, past)
        return TenantReader(self.cursor, *known, self.categories, self.scope)

    def unscoped(self) -> TenantReader:
        """Return the same reader without its scope, for what is decided by the whole bill and shows no row of it."""
        return self._like_this(self.categories, None)

    def _like_this(self, categories: CategoryLookup, scope: RowScope | None) -> TenantReader:
        known = (self._tables, self.tags, self._snapshots, self.clusters, self._past)
        return TenantReader(self.cursor, *known, categories, scope)

    def keeping(
        self, entities: Callable[[Callable[[], VisibleEntities]], VisibleEntities], sums: VisibleSums
    ) -> TenantReader:
        """Return this reader with caches: ``entities`` for the entities of its rows, and ``sums`` of them; each may
        have the value, or have the rows read."""
        self._keep_entities = entities
        self.plan.visible_sums = sums
        return self

    def visible_entities(self) -> VisibleEntities | None:
        """Return what occurs in the rows of the reader's scope, on any day; without a scope None, which is everything.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        if self.sees_everything:
            return None
        return self._entities() if self._keep_entities is None else self._keep_entities(self._entities)

    def visible_tags(self) -> TagIndex:
        """Return the tags of what occurs in the rows of the reader's scope; without a scope all of them.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        seen = self.visible_entities()
        return self.tags if seen is None else self.tags.among(seen.identities, seen.resources)

    def snapshot(self, table: str) -> Snapshot:
        """Return a table at the version at which this reader first saw it."""
        if table not in self._snapshots:
            self._snapshots[table] = self._tables.snapshot(table)
        return self._snapshots[table]

    @property
    def place(self) -> Place:
        """Where the facts lie."""
        return self._tables.place

    @property
    def past_states(self) -> Mapping[date, DayState] | None:
        """The states of the days at the earlier instant that the reader sees; None if it sees the present."""
        return None if self._past is None else self._past.states

    @property
    def of_days(self) -> TenantReader:
        """The reader of what was charged on days, as of the same instant."""
        return self

    @property
    def smallest_unit(self) -> str:
        """The smallest unit of time of all sums, in any zone."""
        return "day"

    @property
    def sees_everything(self) -> bool:
        """Whether the reader sees all rows."""
        return self.scope is None

    @property
    def scope_digest(self) -> str:
        """A key of the reader's scope; empty without one."""
        return "" if self.scope is None else self.scope.digest

    def scan(self, dataset: Dataset, selection: Selection) -> Scan:
        """Return the files of a dataset, and the condition that finds the rows with a selected part.

        Raises:
            UnknownCategory: it is filtered by a cost category that the tenant does not have.
            ValueError: the dataset cannot be filtered by these columns.
        """
        return self.plan.scan(dataset, selection)

    def days_of(self, dataset: Dataset, selection: Selection) -> DayRange | None:
        """Return the smallest range of UTC days that has all rows of the window of a selection, without its filters;
        None where there are no rows. No file of facts is opened."""
        return self.plan.days_of(dataset, selection)

    def sums(self, question: Sums) -> SumRelation:
        """Return the relation with the sums of a question.

        Raises:
            UnknownCategory: the tenant has no such cost category.
            ValueError: the dataset cannot be filtered or grouped by these columns.
        """
        return self.plan.sums(question)

    def read(
        self, dataset: Dataset, scan: Scan, reads: Collection[str], sql: Callable[[SumSource], str]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query of the partial aggregates of a scan, if these have the columns that it ``reads``,
        else of its rows; ``sql`` is written over either. Without a file there are none. Without a filter, which may be
        about other tables, the engine keeps them."""
        if not scan.files:
            return []

        def _read() -> pa.Table:
            is_whole = scan.files == Scan.of(self.snapshot(dataset.table), scan.window).files
            sources = sum_sources(self.cursor, self.plan.partials if is_whole else None, dataset, scan, reads)
            return with_first(sources, lambda each: self.cursor.table(sql(each), each.condition.parameters))

        (rows,) = sum_sources(self.cursor, None, dataset, scan, reads)
        made_of = (sql(rows), *rows.condition.parameters.values())
        table = _read() if scan.filter.clauses else self.cursor.kept.get(made_of, _read)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def sums_of_each(self, question: Sums) -> list[tuple[SumRelation, str]]:
        """Return for each key of a question the sums by it, maybe by others as well, and the column of its values.

        Raises:
            UnknownCategory: the tenant has no such cost category.
            ValueError: the dataset cannot be filtered or grouped by these columns.
        """
        return self.plan.sums_of_each(question)

    def list_rows(
        self, dataset: Dataset, selection: Selection, page: Page, order: Order | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of the selected rows by time and ids, or in another ``order``, as the API shows them, and how
        many rows there are. With the tags of a row come its values of the tenant's cost categories. Of a row that a
        category of the scope splits, the amount is the sum of the visible parts."""
        scan = self.scan(dataset, selection)
        columns = f"date, {dataset.row_sql}"
        if order is not None and order.column == dataset.amount:
            order = replace(order, column=self.plan.visible_amount(dataset, scan))
        listed = Listed(self.cursor, dataset, scan, self.plan.partials)
        if order is None:
            rows, total = read_page(listed, columns, page)
        else:
            rows, total = read_sorted_page(listed, columns, page, order)
        items = [dataset.item(row[1:]) for row in rows]
        if dataset.shows_tags:
            identity, resource = dataset.tag_columns
            for (day, *_), item in zip(rows, items, strict=True):
                item[TAGS] = self.tags.resolve(item[identity], item[resource], day)
        shown = sorted(self.categories.index.by_key) if dataset.shows_categories else []
        keys = self.plan.scope_first({*shown, *self.plan.scope_keys})
        if items and keys:
            query = self.plan.category_query(dataset, scan.only({row[0] for row in rows}), keys)
            add_values(query, items, [row[0] for row in rows], keys, shown, self.plan.values_of_scope())
        return items, total

    def visible_parts(
        self, dataset: Dataset, selection: Selection, row: Mapping[str, Any], amounts: Sequence[Decimal]
    ) -> list[Decimal]:
        """Return what the scope shows of a visible row, one of those of the ``selection``, if its amount was each of
        ``amounts``: of what a category of the scope splits, the sum of the visible parts."""
        keys = self.plan.scope_keys
        if not keys:
            return list(amounts)
        query = self.plan.category_query(dataset, self.scan(dataset, selection), keys)
        items = [{**row, dataset.amount: render(amount)} for amount in amounts]
        add_values(query, items, [row["date"]] * len(items), keys, (), self.plan.values_of_scope())
        return [parse_decimal(item[dataset.amount]) for item in items]

    def aggregate(self, dataset: Dataset, selection: Selection, grouping: Grouping) -> Aggregate:
        """Return the sums of the selected rows by columns, tags, cost categories and time, see
        :func:`~chargeback.store.queries.aggregate.aggregate`."""
        return aggregate(self.sums, dataset, selection, grouping)

    def export(
        self,
        dataset: Dataset,
        selection: Selection,
        columns: Sequence[str] = (),
        *,
        form: ExportFormat = "csv",
        per: str | None = None,
    ) -> Iterator[memoryview]:
        """Yield the selected rows as a file, see :class:`~chargeback.store.queries.export.ExportedRows`.

        Without ``columns`` the file has the dataset's ``default_export``. With cost categories among the columns or the
        filters, a split row becomes one row for each of its parts. Nothing is read before the first piece is needed.
        """
        named = columns or dataset.default_export
        keys = {name.removeprefix(CATEGORY_PREFIX) for name in named if name.startswith(CATEGORY_PREFIX)}
        scan, parts = self.plan.parts(dataset, selection, keys)
        places = {
            key: self.categories.index.place(key) for key in sorted(self.plan.categories_of(dataset, selection, keys))
        }
        yield from export_pieces([ExportedRows(self.cursor, dataset, scan, named, self.tags, per, parts, places)], form)

    def parts(self, dataset: Dataset, selection: Selection, keys: Sequence[str] = ()) -> tuple[str, Condition] | None:
        """Return the selected rows in their order as a relation (SQL) and its condition, None if there are none. With
        cost categories (``keys``) they have their columns, and what is split is one row for each of its parts.

        Raises:
            UnknownCategory: the tenant has no such cost category.
        """
        scan, parts = self.plan.parts(dataset, selection, keys)
        if not scan.files:
            return None
        return parts or (f"{SOURCE} AS stored", scan.condition())

    def measured(self, days: DayRange | None = None) -> Measured:
        """Return what was measured, visible or not, on some days or on all."""
        return self.plan.measured(days)

    def dates(self, dataset: Dataset) -> list[date]:
        """Return the UTC days that have rows, visible or not, ascending; no file of facts is opened."""
        return self.snapshot(dataset.table).days

    def _entities(self) -> VisibleEntities:
        """Return what occurs in the rows that the reader sees, on any day, with the clusters that it lies in."""
        found = VisibleEntities()
        for dataset in DATASETS:
            days = self.dates(dataset)
            if not days:
                continue
            keys = _ids_in(dataset)
            sums = self.sums(Sums(dataset, Selection.of_days(DayRange.spanning(days)), tuple(keys.values()), of=()))
            columns = ", ".join(f"d{number}" for number in range(len(keys)))
            rows = sums.rows(f"SELECT {columns} FROM sums")
            by_name = dict(zip(keys, map(frozenset, zip(*rows, strict=True)), strict=False))
            identities: frozenset[str] = by_name.pop(_IDENTITY, frozenset())
            found |= VisibleEntities(identities, frozenset[str]().union(*by_name.values()) - {None})
        clusters: Mapping[str, str] = self.clusters() if found.resources else {}
        return found | VisibleEntities(
            resources=frozenset(clusters[each] for each in found.resources & clusters.keys())
        )


def _ids_in(dataset: Dataset) -> dict[str, Key]:
    """Return the columns of a dataset with ids of identities, resources and environments."""
    names = [name for name in ("resource_id", "environment_id", _IDENTITY) if name in dataset.subjects]
    keys: dict[str, Key] = {name: ByColumn(dataset.subjects[name]) for name in names}
    return keys | ({"topic": ByTagHolder(RESOURCE)} if dataset is TOPIC_ATTRIBUTIONS else {})


@contextmanager
def open_reader(
    engine: QueryEngine,
    store: TenantStore,
    token: CancellationToken,
    caches: LookupCaches,
    slot: AbstractContextManager[None] | None = None,
    as_of: datetime | None = None,
    scope: RowScope | None = None,
) -> Iterator[TenantReader]:
    """Open a reader of a tenant for the length of the ``with``; ``token`` cancels what it runs.

    The query engine is used inside ``slot``, where there is one; tags and cost categories are read before it. With
    ``as_of`` the reader sees the tables, and the cost categories, of that instant; with a ``scope`` only its rows.

    Raises:
        QueryTimeout: the token is cancelled already.
        StorageError: the tenant's control database cannot be read.
    """
    token.check()
    if as_of is None and scope is None:
        with store.control.read() as connection, interruptible(token, connection):
            index = caches.tags.load(store.tenant_name, connection)
            documents = caches.documents_of(store.tenant_name, connection)
            snapshots = store.facts.load(connection)
        with slot or nullcontext(), engine.cursor(token) as cursor:
            clusters, categories = partial(caches.clusters.load, store), caches.categories(store, documents, index)
            yield TenantReader(cursor, store.facts, index, snapshots, clusters, categories=categories)
        return
    version = read_version(store, token, caches, as_of)
    with slot or nullcontext(), engine.cursor(token) as cursor:
        yield version_reader(cursor, store, version, caches, scope)


def version_reader(
    cursor: Cursor,
    store: TenantStore,
    version: DataVersion,
    caches: LookupCaches,
    scope: RowScope | None = None,
    pinned: Names | None = None,
) -> TenantReader:
    """Return the reader of one version of a tenant's data, or of the rows of a ``scope``; ``pinned`` are the display
    names that the rules of cost categories see, where they are not the present ones."""
    at = None if version.past is None else version.past.at
    reader = TenantReader(
        cursor,
        store.facts,
        version.tags,
        version.snapshots,
        partial(caches.clusters.load, store),
        version.past,
        caches.categories(store, version.categories, version.tags, pinned, at),
        scope,
    )
    if scope is None or version.past is not None:
        return reader
    place = f"{store.tenant_name} {scope.digest}"
    decided_by = (version.control.tags, version.control.inventory, version.control.categories)
    return reader.keeping(
        partial(caches.entities.get, place, version.digest), caches.visible_sums.get(place, decided_by)
    )
