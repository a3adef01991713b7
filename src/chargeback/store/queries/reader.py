"""One tenant's stored data, as one request or use case sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from chargeback.access.scope import RowScope
from chargeback.model.days import DayRange
from chargeback.model.money import parse_decimal, render
from chargeback.store.control.days import DayState
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.seen import ReadableTables
from chargeback.store.facts.tables import USAGE_TABLE, Snapshot
from chargeback.store.queries.aggregate import Aggregate, Grouping, GroupKey, aggregate, group_keys
from chargeback.store.queries.cancellation import CancellationToken, interruptible
from chargeback.store.queries.categorised import CategoryQuery, categorised
from chargeback.store.queries.category_index import CATEGORY_PREFIX, with_descendants
from chargeback.store.queries.category_join import UsedCategory
from chargeback.store.queries.category_lookup import CategoryLookup
from chargeback.store.queries.category_parts import add_values, parts_of_rows, rows_with_parts, sums_of_parts
from chargeback.store.queries.clusters import ClusterLookup
from chargeback.store.queries.datasets import TAGS, Dataset
from chargeback.store.queries.engine import Cursor, QueryEngine
from chargeback.store.queries.export import ExportFormat, export_pieces
from chargeback.store.queries.exported_rows import ExportedRows
from chargeback.store.queries.handovers import shares_of
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.measurements import Measured
from chargeback.store.queries.narrowing import category_keys, narrowed
from chargeback.store.queries.paging import Order, Page, read_page, read_sorted_page
from chargeback.store.queries.partials import ALWAYS, Addends, add_up, columns_named, covering, sums_of
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import named
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.version import DataVersion, read_version
from chargeback.store.queries.visible_entities import VisibleEntities, entities_seen
from chargeback.store.queries.visible_sums import VisibleSums
from chargeback.store.tenant import TenantStore

T = TypeVar("T")


class TenantReader:
    """Reads the datasets of one tenant: list, aggregate, export, dates.

    Every query of one reader sees the same version of each table and the same tags. With a ``scope`` it sees some rows
    only: every method that takes a selection adds the scope's filters to it (:meth:`_visible`), and nothing else does.
    What is read through :meth:`snapshot` is not narrowed.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    def __init__(
        self,
        cursor: Cursor,
        tables: ReadableTables,
        tags: TagIndex,
        snapshots: Mapping[str, Snapshot] | None = None,
        clusters: ClusterLookup = dict,
        past_states: Mapping[date, DayState] | None = None,
        categories: CategoryLookup | None = None,
        scope: RowScope | None = None,
    ) -> None:
        """Read ``tables``; with ``past_states``, ``snapshots`` are those of an earlier instant: kept partial aggregates
        are used for it, but none are made in their place."""
        self.cursor = cursor
        self.tags = tags
        self.clusters = clusters
        self.categories = categories or CategoryLookup()
        self._tables = tables
        self._snapshots = dict(snapshots or {})
        self.past_states = past_states
        self.scope = scope
        self._keep_entities: Callable[[Callable[[], VisibleEntities]], VisibleEntities] | None = None
        self._visible_sums: VisibleSums | None = None
        self._partials = tables.partials if past_states is None else tables.partials.read_only()

    def with_categories(self, categories: CategoryLookup) -> TenantReader:
        """Return the same reader with other cost categories."""
        return self._like_this(categories, self.scope)

    def unscoped(self) -> TenantReader:
        """Return the same reader without its scope, for what is decided by the whole bill and shows no row of it."""
        return self._like_this(self.categories, None)

    def _like_this(self, categories: CategoryLookup, scope: RowScope | None) -> TenantReader:
        known = (self._tables, self.tags, self._snapshots, self.clusters, self.past_states)
        return TenantReader(self.cursor, *known, categories, scope)

    def keeping(
        self, entities: Callable[[Callable[[], VisibleEntities]], VisibleEntities], sums: VisibleSums
    ) -> TenantReader:
        """Return this reader, which asks ``entities`` for what occurs in its rows, and adds up ``sums`` of them; both
        may know them, or have the rows read."""
        self._keep_entities = entities
        self._visible_sums = sums
        return self

    def visible_entities(self) -> VisibleEntities | None:
        """Return what occurs in the rows of the reader's scope, on any day; without a scope None, which is everything.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        if self.scope is None:
            return None
        return entities_seen(self) if self._keep_entities is None else self._keep_entities(lambda: entities_seen(self))

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

    def scan(self, dataset: Dataset, selection: Selection) -> Scan:
        """Return the files and the condition by which the rows of a dataset are read of which some part is selected.

        Raises:
            UnknownCategory: it is filtered by a cost category that the tenant does not have.
            ValueError: the dataset cannot be filtered so.
        """
        selection = self._visible(dataset, selection)
        scan = self._scan_of_whole_rows(dataset, selection)
        found = scan.filter
        for key in sorted({each.key for each in selection.categories}) if scan.files else ():
            filters = tuple(each for each in selection.categories if each.key == key)
            asked = self._category_query(dataset, scan, [key])
            found &= rows_with_parts(replace(asked, wanted=self.categories.condition(filters)))
        return replace(scan, filter=found)

    def days_of(self, dataset: Dataset, selection: Selection) -> DayRange | None:
        """Return the smallest range of UTC days that has all rows of the window of a selection, whatever its filters;
        None where there are no rows. No file of facts is opened."""
        return Scan.of(self.snapshot(dataset.table), self._visible(dataset, selection).window).days()

    def condition(self, dataset: Dataset, selection: Selection) -> Condition:
        """Return the filters of a selection by columns and tags, as SQL over the rows of a dataset.

        Raises:
            ValueError: the dataset cannot be filtered so.
        """
        return self._condition(dataset, self._visible(dataset, selection))

    def group_keys(self, dataset: Dataset, by: Sequence[str]) -> list[GroupKey]:
        """Return what the rows of a dataset are grouped by, see :func:`~chargeback.store.queries.aggregate.group_keys`.

        Raises:
            UnknownCategory: the tenant has no such cost category.
            ValueError: the dataset cannot be grouped by one of the columns.
        """
        return group_keys(self.cursor, by, dataset, self.tags, self.clusters, self.categories)

    def covering(self, dataset: Dataset, selection: Selection, sql: str) -> tuple[str, ...] | None:
        """Return the set of columns whose sums answer a query, see :func:`~chargeback.store.queries.partials.covering`;
        ``sql`` names the columns that it reads beside those of its filters.

        Raises:
            ValueError: the dataset cannot be filtered so.
        """
        if not self._adds_up_visible_sums(selection, sql):
            selection = self._visible(dataset, selection)
        keys = [each.key for each in selection.categories]
        names = [sql, *(name for key in keys for name in self.categories.columns(dataset, key))]
        return covering(dataset, f"{' '.join(names)} {self._condition(dataset, selection).sql}")

    def list_rows(
        self, dataset: Dataset, selection: Selection, page: Page, order: Order | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of the selected rows by time and ids, or in another ``order``, as the API shows them, and how
        many rows there are. With the tags of a row come its values of the tenant's cost categories. Of a row that a
        category of the scope splits, the amount is the sum of the visible parts."""
        scan = self.scan(dataset, selection)
        columns = f"date, {dataset.row_sql}"
        if order is not None and order.column == dataset.amount:
            order = replace(order, column=self._visible_amount(dataset, scan, "ordered"))
        if order is None:
            rows, total = read_page(self.cursor, scan, columns, page)
        else:
            rows, total = read_sorted_page(self.cursor, scan, columns, page, order)
        items = [dataset.item(row[1:]) for row in rows]
        if dataset.shows_tags:
            identity, resource = dataset.tag_columns
            for (day, *_), item in zip(rows, items, strict=True):
                item[TAGS] = self.tags.resolve(item[identity], item[resource], day)
        shown = sorted(self.categories.index.by_key) if dataset.shows_categories else []
        keys = self._scope_first({*shown, *self._scope_keys})
        if items and keys:
            asked = self._category_query(dataset, scan.only({row[0] for row in rows}), keys)
            add_values(asked, items, [row[0] for row in rows], keys, shown, self._values_of_scope())
        return items, total

    def visible_parts(
        self, dataset: Dataset, selection: Selection, row: Mapping[str, Any], amounts: Sequence[Decimal]
    ) -> list[Decimal]:
        """Return what the scope shows of a visible row, one of those of the ``selection``, if its amount was each of
        ``amounts``: of what a category of the scope splits, the sum of the visible parts."""
        if not self._scope_keys:
            return list(amounts)
        scan = self.scan(dataset, selection)
        asked = self._category_query(dataset, scan, self._scope_keys)
        items = [{**row, dataset.amount: render(amount)} for amount in amounts]
        add_values(asked, items, [row["date"]] * len(items), self._scope_keys, (), self._values_of_scope())
        return [parse_decimal(item[dataset.amount]) for item in items]

    def aggregate(self, dataset: Dataset, selection: Selection, grouping: Grouping) -> Aggregate:
        """Return the sums of the selected rows by columns, tags, cost categories and time."""
        by = self.group_keys(dataset, grouping.by)
        scan = Scan.of(self.snapshot(dataset.table), self._visible(dataset, selection).window)
        return aggregate(self.cursor, dataset, scan, grouping, by, partial(self.add_up, dataset, selection))

    def add_up(
        self,
        dataset: Dataset,
        selection: Selection,
        sql: str,
        query: Callable[[Addends], T],
        days: Collection[date] | None = None,
    ) -> T:
        """Return what ``query`` makes of the selected rows or, where these answer it, of their partial aggregates, see
        :func:`~chargeback.store.queries.partials.add_up`; of what cost categories divide, it gets the parts. With
        ``days`` only their files are read."""
        kept = self._kept_addends(dataset, selection, sql, days)
        return query(kept) if kept is not None else self._add_up_rows(dataset, selection, sql, query, days)

    def _add_up_rows(
        self,
        dataset: Dataset,
        selection: Selection,
        sql: str,
        query: Callable[[Addends], T],
        days: Collection[date] | None = None,
    ) -> T:
        selection = self._visible(dataset, selection)
        scan = self._scan_of_whole_rows(dataset, selection)
        partials = self._partials if days is None else None
        scan = scan if days is None else scan.only(days)
        wanted = self.categories.condition(selection.categories)
        used = self.categories.index.used_in(f"{sql} {wanted.sql}")
        if not used:
            return add_up(self.cursor, partials, dataset, scan, sql, query)
        asked = self._category_query(dataset, scan, self._scope_first({key for _, key in used}))
        asked = replace(asked, partials=partials, wanted=wanted, used=self._with_shares(asked))
        return query(categorised(asked, sorted(columns_named(dataset, sql))))

    def _kept_addends(
        self, dataset: Dataset, selection: Selection, sql: str, days: Collection[date] | None
    ) -> Addends | None:
        """Return the kept sums of the scope's rows that answer a query, if there are any."""
        if self._visible_sums is None or not self._adds_up_visible_sums(selection, sql):
            return None
        columns = self.covering(dataset, selection, sql)
        if columns is None:
            return None
        visible = self._visible(dataset, selection)
        scan = Scan.of(self.snapshot(dataset.table), visible.window, self._condition(dataset, selection))
        scan = scan if days is None else scan.only(days)
        table = self._visible_sums.of(dataset, columns, scan.files, partial(self._sum_visible, dataset, columns))
        if table is None:
            return None
        relation = f"visible_{dataset.table}"
        self.cursor.register(relation, table)
        names = [name for name in table.column_names if name not in {*ALWAYS, *columns}]
        return Addends(relation, scan.row_condition(), sums_of(names), are_partial=True, rows=table.num_rows)

    def _adds_up_visible_sums(self, selection: Selection, sql: str) -> bool:
        """Return whether a query can be answered by sums of whole rows, or of their parts in the scope."""
        by_category = selection.categories or self.categories.index.used_in(sql)
        return self._visible_sums is not None and selection.min_amount is None and not by_category

    def _sum_visible(self, dataset: Dataset, columns: Sequence[str], files: Sequence[DayFile]) -> pa.Table:
        """Return the sums of the scope's rows by some columns, of at least the days of some files, ascending by day."""
        days = DayRange.spanning([file.day for file in files if file.day is not None])
        keys = ", ".join([*ALWAYS, *columns])

        def _sum(source: Addends) -> pa.Table:
            return self.cursor.table(
                f"""SELECT {keys}, {named(source.sums)} FROM {source.relation} AS facts
                    WHERE {source.condition.sql} GROUP BY ALL ORDER BY date""",
                source.condition.parameters,
            )

        return self._add_up_rows(dataset, Selection.of_days(days), keys, _sum)

    def export(
        self,
        dataset: Dataset,
        selection: Selection,
        columns: Sequence[str] = (),
        *,
        form: ExportFormat = "csv",
        per: str | None = None,
    ) -> Iterator[memoryview]:
        """Yield the selected rows as a file, see :class:`~chargeback.store.queries.exported_rows.ExportedRows`.

        Without ``columns`` the file has the dataset's ``default_export``. With cost categories among the columns or the
        filters, what is split is one row for each of its parts. Nothing is read before the first piece is asked for.
        """
        selection = self._visible(dataset, selection)
        named = columns or dataset.default_export
        keys = [name.removeprefix(CATEGORY_PREFIX) for name in named if name.startswith(CATEGORY_PREFIX)]
        keys = self._scope_first({*keys, *(each.key for each in selection.categories)})
        scan = self._scan_of_whole_rows(dataset, selection)
        places = {key: self.categories.index.place(key) for key in sorted(keys)}
        parts = None
        if keys and scan.files:
            asked = self._category_query(dataset, scan, keys)
            parts = parts_of_rows(replace(asked, wanted=self.categories.condition(selection.categories)))
        yield from export_pieces(ExportedRows(self.cursor, dataset, scan, named, self.tags, per, parts, places), form)

    def parts(self, dataset: Dataset, selection: Selection, keys: Sequence[str] = ()) -> tuple[str, Condition] | None:
        """Return the selected rows in their order as a relation (SQL) and its condition, None if there are none. With
        cost categories (``keys``) they have their columns, and what is split is one row for each of its parts.

        Raises:
            UnknownCategory: the tenant has no such cost category.
        """
        selection = self._visible(dataset, selection)
        scan = self._scan_of_whole_rows(dataset, selection)
        if not scan.files:
            return None
        if not keys:
            return f"{SOURCE} AS facts", scan.condition()
        asked = self._category_query(dataset, scan, self._scope_first(keys))
        return parts_of_rows(replace(asked, wanted=self.categories.condition(selection.categories)))

    def measured(self, days: DayRange | None = None) -> Measured:
        """Return what was measured, whoever may see it, on some days or on all."""
        usage = self.snapshot(USAGE_TABLE)
        return Measured(usage.files if days is None else usage.within(days), self.categories.with_owners)

    def dates(self, dataset: Dataset) -> list[date]:
        """Return the UTC days that have rows, whoever may see them, ascending; no file of facts is opened."""
        return self.snapshot(dataset.table).days

    def _visible(self, dataset: Dataset, selection: Selection) -> Selection:
        """Return a selection as this reader sees it: with the filters of its scope."""
        if self.scope is None:
            return selection
        return narrowed(selection, dataset, self.scope, self.categories.index)

    @property
    def _scope_keys(self) -> tuple[str, ...]:
        return () if self.scope is None else category_keys(self.scope)

    def _scope_first(self, keys: Collection[str]) -> list[str]:
        """Return cost categories in the order in which they divide rows: those of the scope before all others, so that
        what is visible of a row is the same amount for every question."""
        return sorted(keys, key=lambda key: (key not in self._scope_keys, key))

    def _values_of_scope(self) -> dict[str, frozenset[str]]:
        """Return the visible values of the cost categories of the scope, with those below them."""
        conditions = {} if self.scope is None else dict(self.scope.conditions)
        category = self.categories.index.category
        return {key: with_descendants(category(key), conditions[f"{CATEGORY_PREFIX}{key}"]) for key in self._scope_keys}

    def _condition(self, dataset: Dataset, selection: Selection) -> Condition:
        return selection.condition(dataset, self.tags, self.clusters)

    def _scan_of_whole_rows(self, dataset: Dataset, selection: Selection) -> Scan:
        """Return the scan of a visible selection without its filters by cost categories."""
        condition = self._condition(dataset, replace(selection, min_amount=None))
        scan = Scan.of(self.snapshot(dataset.table), selection.window, condition)
        if selection.min_amount is None or not scan.files:
            return scan
        amount = self._visible_amount(dataset, scan, "large_enough")
        enough = Condition((f"{amount} >= $min_amount",), {"min_amount": selection.min_amount})
        return replace(scan, filter=condition & enough)

    def _visible_amount(self, dataset: Dataset, scan: Scan, table: str) -> str:
        """Return the amount of a row of a scan, as SQL: of one that a category of the scope splits, the sum of the
        visible parts, which are then in a ``table``."""
        if not self._scope_keys or not scan.files:
            return dataset.amount
        wanted = self._visible(dataset, Selection(scan.window)).categories
        asked = self._category_query(dataset, scan, self._scope_keys)
        return sums_of_parts(replace(asked, wanted=self.categories.condition(wanted)), table)

    def _category_query(self, dataset: Dataset, scan: Scan, keys: Sequence[str]) -> CategoryQuery:
        used = tuple(
            UsedCategory(self.categories.index.place(key), self.categories.assignments(dataset, key)) for key in keys
        )
        return CategoryQuery(self.cursor, self._partials, dataset, scan, used)

    def _with_shares(self, query: CategoryQuery) -> tuple[UsedCategory, ...]:
        """Return the categories of a query with what their values hand on, which is decided by whole days of the whole
        bill."""
        days = query.scan.days()
        if days is None:
            return query.used
        whole = Scan.of(self.snapshot(query.dataset.table), Selection.of_days(days).window)
        measured = self.measured(days)
        return tuple(replace(each, shares=shares_of(query, each, whole, measured)) for each in query.used)


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
        with slot or nullcontext(), engine.cursor(token) as cursor:
            clusters, categories = partial(caches.clusters.load, store), caches.categories(store, documents, index)
            yield TenantReader(cursor, store, index, clusters=clusters, categories=categories)
        return
    version = read_version(store, token, caches, as_of)
    with slot or nullcontext(), engine.cursor(token) as cursor:
        yield version_reader(cursor, store, version, caches, scope)


def version_reader(
    cursor: Cursor, store: TenantStore, version: DataVersion, caches: LookupCaches, scope: RowScope | None = None
) -> TenantReader:
    """Return the reader of one version of a tenant's data, or of the rows of a ``scope``."""
    reader = TenantReader(
        cursor,
        store,
        version.tags,
        version.snapshots,
        partial(caches.clusters.load, store),
        version.past_states,
        caches.categories(store, version.categories, version.tags),
        scope,
    )
    if scope is None or version.past_states is not None:
        return reader
    place = f"{store.tenant_name} {scope.digest}"
    decided_by = (version.control.tags, version.control.inventory, version.control.categories)
    return reader.keeping(
        partial(caches.entities.get, place, version.digest), caches.visible_sums.get(place, decided_by)
    )
