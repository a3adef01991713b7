"""The plan of a query: the only place that decides what is read, and that applies the scope of a reader.

Sums are added up from, in this order: the kept sums of a scope's visible rows, the partial aggregates of files, where
one set of these has every column that is read, and the rows. Sums of periods without suitable kept sums are made of the
sums of rows by dimension: a row's dimension determines everything that it can be filtered and grouped by, except its
environment, so that this is a scan of numbers; texts, tags and filters then concern some thousand sums. Rows that cost
categories divide are summed by their values (:mod:`~chargeback.store.queries.categorised`).

Sums in another currency are those of each UTC month, times the rate of the month. A product of a sum, DECIMAL(38, 12),
and a rate, DECIMAL(18, 8), is a DECIMAL(38, 20): nothing is rounded. Further digits are whole numbers, and are
multiplied by the rate in units of 10⁻⁸: they follow the twentieth decimal place as they followed the twelfth.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.access.scope import CATEGORY, TAG, RowScope
from chargeback.errors import StorageError
from chargeback.model.chargeback import DIMENSION_COLUMNS, USAGE_COST
from chargeback.model.currency import RATE_PLACES, Rates
from chargeback.model.dated import Period
from chargeback.model.days import ONE_DAY, DayRange, InstantRange, first_day_of
from chargeback.model.inventory import UNALLOCATED
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.facts.tables import DIMENSIONS_TABLE, USAGE_TABLE, Snapshot
from chargeback.store.queries.assignments import UsedCategory
from chargeback.store.queries.categorised import CategoryQuery, categorised, shares_of
from chargeback.store.queries.category_parts import parts_of_rows, rows_with_parts, sums_of_parts
from chargeback.store.queries.clusters import ClusterLookup
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.keys import TAG_PREFIX, ByTime, KeyLookups, KeySql, numbered
from chargeback.store.queries.lookups import CATEGORY_PREFIX, CategoryIndex, CategoryLookup, with_descendants
from chargeback.store.queries.measurements import Measured
from chargeback.store.queries.partials import (
    COUNTS,
    DISTINCT_ROWS,
    ROW_COUNT,
    TAG_VALUE,
    TIME_COLUMNS,
    SumSource,
    covering,
    sum_sources,
    sums_of,
    with_first,
)
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.selection import CategoryFilter, ColumnFilter, Selection, TagFilter
from chargeback.store.queries.sql_format import FINE, fine_rest, fine_wholes, named, one_of
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleSums

#: What decides the rows of a dimension: these, its environment and, where values have dates, the day.
_OF_DIMENSION: Final = frozenset([*DIMENSION_COLUMNS, "environment_id", "date"])
_UNOWNED: Final = f"identity_id = '{UNALLOCATED}'"
# What the sums of a dimension read.
_SUMMED: Final = frozenset({"cost_type", "identity_id"})
# The sums of a dimension, as SQL over its total and its number of rows.
_SUMS_OF_DIMENSION: Final = {
    "total": "sum(total)",
    "used": f"sum(CASE WHEN cost_type = '{USAGE_COST}' THEN total ELSE 0 END)",
    "unowned": f"sum(CASE WHEN {_UNOWNED} THEN total ELSE 0 END)",
    "unowned_rows": f"sum(CASE WHEN {_UNOWNED} THEN row_count ELSE 0 END)",
    ROW_COUNT: "sum(row_count)",
}
#: The units of time that begin with a day.
_WHOLE_DAYS: Final = ("day", "week", "month")
# The first day of the UTC month of a row, as SQL.
_MONTH: Final = "date_trunc('month', date)::DATE AS rate_month"


@dataclass(frozen=True)
class Reads:
    """The columns and the cost categories that a question reads, besides those of its filters. ``tag`` is the key by a
    tag, if it reads nothing else but times."""

    columns: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    tag: KeySql | None = None

    @classmethod
    def of(cls, keys: Sequence[KeySql]) -> Reads:
        """Return what some keys read."""
        categories = frozenset(key.category for key in keys if key.category is not None)
        other = [key for key in keys if key.tag is not None or key.category or not key.reads <= {*TIME_COLUMNS}]
        tag = other[0] if len(other) == 1 and other[0].tag is not None else None
        return cls(frozenset[str]().union(*(key.reads for key in keys)), categories, tag)


@dataclass
class QueryPlan:
    """The data of one reader, and the execution of its queries.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    cursor: Cursor
    snapshot: Callable[[str], Snapshot]
    tags: TagIndex
    clusters: ClusterLookup
    categories: CategoryLookup
    partials: PartialFiles | None
    scope: RowScope | None = None
    present_tags: TagIndex | None = None
    visible_sums: VisibleSums | None = None
    _registered: dict[str, dict[Hashable, str]] = field(default_factory=dict, repr=False)
    _dimensions: dict[Hashable, str] = field(default_factory=dict, repr=False)

    # Sums

    def sums(self, question: Sums) -> SumRelation:
        """Return the relation with the sums of a question.

        Raises:
            UnknownCategory: the tenant has no such cost category.
            ValueError: the dataset cannot be filtered or grouped by these columns.
        """
        days = None if question.periods else self.days_of(question.dataset, question.selection)
        keys = self._keys(question, days)
        used = Reads.of(keys).categories | {each.key for each in question.selection.categories}
        used |= set(self.scope_keys)
        is_fine = any(self.categories.index.category(key).share for key in used if key in self.categories.index.by_key)
        if question.periods:
            return self._sums_of_periods(question, keys, is_fine=is_fine)
        relation = partial(SumRelation, self.cursor, question, is_fine, days)
        if days is None:
            return relation(lambda use: use(_nothing(question, keys, is_fine=is_fine), {}))

        @cache
        def _sources() -> list[SumSource]:
            return self.sources(question, Reads.of(keys))

        def _run(use: Callable[[str, Mapping[str, object]], Any]) -> Any:
            def _use(source: SumSource) -> Any:
                return use(_select(source, question, keys, is_fine=is_fine), source.condition.parameters)

            return with_first(_sources(), _use)

        def _keep(most: int) -> SumRelation:
            first = _sources()[0]
            if first.are_partial and first.rows <= most:
                return relation(_run, are_few=True)  # to make a table would take longer than to read them
            table, is_whole = self._kept(question, keys, _sources(), most, is_fine=is_fine)
            return relation(lambda use: use(f"SELECT * FROM {table}", {}), is_whole=is_whole)

        return relation(_run, _keep)

    def sums_of_each(self, question: Sums) -> list[tuple[SumRelation, str]]:
        """Return for each key of a question a relation with the sums by it, maybe by others as well, and the column of
        its values. Keys that the same set of kept sums covers, or none does, are summed together."""
        groups: dict[tuple[str, ...] | None, list[int]] = {}
        is_kept = self._sums_by_tag(question.selection) is not None
        for place, key in enumerate(self._keys(question, None)):
            columns = self._covering(question.dataset, question.selection, Reads.of([key]))
            groups.setdefault(_place_of_tag(key) if key.tag and is_kept else columns, []).append(place)
        found: dict[int, tuple[SumRelation, str]] = {}
        for places in groups.values():
            sums = self.sums(replace(question, by=tuple(question.by[place] for place in places)))
            found |= {place: (sums, f"d{number}") for number, place in enumerate(places)}
        return [found[place] for place in range(len(question.by))]

    def sources(self, question: Sums, reads: Reads) -> list[SumSource]:
        """Return what a question without periods can be added up from, the fastest first, for
        :func:`~chargeback.store.queries.partials.with_first`."""
        kept = self._tagged_source(question, reads) or self._visible_source(question, reads)
        return self._stored_sources(question, reads) if kept is None else [kept]

    def _keys(self, question: Sums, days: DayRange | None) -> list[KeySql]:
        dataset = question.dataset
        known = self._registered.setdefault(dataset.table, {})
        lookups = KeyLookups(self.cursor, dataset, self.tags, self.clusters, self.categories, days, known)
        return numbered([key.on(lookups) for key in question.by])

    def _kept(
        self, question: Sums, keys: Sequence[KeySql], sources: Sequence[SumSource], most: int, *, is_fine: bool
    ) -> tuple[str, bool]:
        """Make the table of the sums; of the newest units of time alone where these have more than ``most`` groups, and
        that was to be expected."""
        table = self.cursor.new_name("sums")

        def _make(source: SumSource) -> None:
            sql = _select(source, question, keys, is_fine=is_fine)
            self.cursor.run(f"CREATE OR REPLACE TEMP TABLE {table} AS {sql}", source.condition.parameters)

        def _use(source: SumSource) -> bool:
            newest = self._since(question, source, most)
            if newest is not None:
                since = Condition(("date >= $newest",), {"newest": newest})
                _make(replace(source, condition=source.condition & since))
                later = f"SELECT count(*) FROM {table} WHERE bucket > $newest"
                if self.cursor.rows(later, {"newest": newest})[0][0] > most:
                    return False
            _make(source)
            return True

        return table, with_first(sources, _use)

    def _since(self, question: Sums, source: SumSource, most: int) -> date | None:
        """Return a UTC day since which there may be more than ``most`` groups, where those of all days would be too
        many and a day's rows are little more than its groups; else None. In other zones, units of time that begin after
        that day are complete, too."""
        unit = next((key.unit for key in question.by if isinstance(key, ByTime)), "")
        if not source.are_partial or source.rows <= most or unit not in _WHOLE_DAYS:
            return None
        window = self.visible(question.dataset, question.selection).window
        files = Scan.of(self.snapshot(question.dataset.table), window).files
        days = sorted({file.day for file in files if file.day is not None})
        # A unit has no fewer groups than a day of it. Some days have fewer than others.
        enough = most * len(days) * 10 // (source.rows * 9) + 1
        # West of Greenwich, what begins on the last day is still in the unit of the day before.
        newest = days[-1] - ONE_DAY
        for _ in range(min(enough, len(days))):
            newest = first_day_of(unit, newest) - ONE_DAY
        return newest if newest >= days[len(days) // 2] else None

    def _sums_of_periods(self, question: Sums, keys: Sequence[KeySql], *, is_fine: bool) -> SumRelation:
        """Sum each of some periods into one table. All amounts have further digits there, if only zeros."""
        self._check_dimensions(question)
        table, reads = self.cursor.new_name("sums"), Reads.of(keys)
        columns = {"period": "INTEGER", **_kinds(question, keys, is_fine=True)}
        self.cursor.run(f"CREATE TEMP TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")

        def _insert(source: SumSource, period: KeySql) -> None:
            sql = _select(source, question, [period, *keys], is_fine=True)
            self.cursor.run(f"INSERT INTO {table} BY NAME {sql}", source.condition.parameters)

        its, by_dimension = self._reads_of_dimension(question, reads), dict[int, InstantRange]()
        for number, window in enumerate(question.periods):
            of_period = replace(question, selection=replace(question.selection, window=window), periods=())
            if self.days_of(question.dataset, of_period.selection) is None:
                continue
            sources = self.sources(of_period, reads)
            if not sources[0].are_partial and its is not None:
                by_dimension[number] = window
            else:
                with_first(sources, partial(_insert, period=KeySql({"period": f"{number}"})))
        if by_dimension and its is not None:
            _insert(self._by_dimension(question, its, by_dimension), KeySql({"period": "period"}))
        return SumRelation(self.cursor, question, is_fine, None, lambda use: use(f"SELECT * FROM {table}", {}))

    @staticmethod
    def _check_dimensions(question: Sums) -> None:
        """Check that charges are filtered by what a dimension decides.

        Raises:
            ValueError: they are not.
        """
        columns = [each.column for each in question.selection.columns] if question.dataset is CHARGEBACKS else []
        unknown = [column for column in columns if column not in CHARGEBACKS.groups]
        if unknown:
            raise ValueError(f"costs cannot be filtered by {', '.join(unknown)}")

    def _reads_of_dimension(self, question: Sums, reads: Reads) -> frozenset[str] | None:
        """Return the columns that a question and its filters read; None if a row's dimension does not decide all."""
        if question.dataset is not CHARGEBACKS:
            return None
        its = reads.columns | self.condition(CHARGEBACKS, question.selection).reads
        return its if its <= _OF_DIMENSION else None

    def _by_dimension(self, question: Sums, its: frozenset[str], windows: Mapping[int, InstantRange]) -> SumSource:
        """Return the sums of rows by dimension and ``period``, from which a question that reads some columns is added
        up in place of the rows."""
        condition = self.condition(CHARGEBACKS, question.selection)
        grain = "date" if "date" in its else "date_trunc('month', date)::DATE" if question.rates is not None else None
        keys = ("dimension_id", *sorted({"environment_id"} & its), *([] if grain is None else [f"{grain} AS date"]))
        periods = (
            f"SELECT {number} AS period, * FROM {self._sums_by_dimension(window, keys)}"
            for number, window in windows.items()
        )
        sums = f"({' UNION ALL '.join(periods)})"
        known, register = self._register()
        columns = ", ".join(["dimension_id", *sorted((its | _SUMMED) & {*DIMENSION_COLUMNS})])
        once = f"SELECT DISTINCT {columns} FROM {known} WHERE dimension_id IN (SELECT dimension_id FROM {sums})"
        return SumSource(
            f"(FROM {sums} JOIN ({once}) USING (dimension_id))",
            Condition(parameters=register) & condition,
            {DISTINCT_ROWS: "sum(row_count)", **_SUMS_OF_DIMENSION},
        )

    def _sums_by_dimension(self, window: InstantRange, keys: tuple[str, ...]) -> str:
        """Return the relation with the sums of a window with rows by dimension and what else is in ``keys``. Filters,
        also those of a scope, are a matter of the sums, so that further questions about the window add up the same."""
        condition = Scan.of(self.snapshot(CHARGEBACKS.table), window).condition()
        sql = f"""SELECT {", ".join(keys)}, sum(amount) AS total, count(*) AS row_count
                  FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL"""
        made_of = (sql, *condition.parameters.values(), self.snapshot(DIMENSIONS_TABLE).files)
        if made_of not in self._dimensions:
            table = self.cursor.kept.get(made_of, partial(self._registered_sums, sql, condition.parameters))
            self._dimensions[made_of] = self.cursor.register(self.cursor.new_name("dimensions"), table)
        return self._dimensions[made_of]

    def _registered_sums(self, sql: str, parameters: Mapping[str, object]) -> pa.Table:
        """Return sums by dimension, all of which are in the register."""
        known, register = self._register()
        is_known = f"coalesce(dimension_id IN (SELECT dimension_id FROM {known}), FALSE) AS is_known"
        table = self.cursor.table(f"SELECT *, {is_known} FROM ({sql})", {**parameters, **register})
        if unknown := pc.sum(pc.invert(table["is_known"])).as_py():
            raise StorageError(f"the register of dimensions lacks {unknown} of those that were charged")
        return table.drop_columns("is_known")

    def _register(self) -> tuple[str, dict[str, object]]:
        """Return the register of dimensions as SQL after FROM, and its parameters."""
        files = [file for file in self.snapshot(DIMENSIONS_TABLE).files if file.rows]
        if files:
            return "read_parquet($register)", {"register": files}
        nothing = ", ".join(f"NULL::VARCHAR AS {name}" for name in DIMENSION_COLUMNS)
        return f"(SELECT NULL::BIGINT AS dimension_id, {nothing})", {}

    def _stored_sources(self, question: Sums, reads: Reads) -> list[SumSource]:
        """Return partial aggregates and rows or, where cost categories are read, the sums of their parts."""
        dataset, selection = question.dataset, self.visible(question.dataset, question.selection)
        scan = self.scan_of_whole_rows(dataset, selection)
        partials = self.partials if question.days is None else None
        scan = scan if question.days is None else scan.only(question.days)
        used = reads.categories | {each.key for each in selection.categories}
        if not used:
            return sum_sources(self.cursor, partials, dataset, scan, reads.columns)
        query = replace(
            self.category_query(dataset, scan, self.scope_first(used)),
            partials=partials,
            wanted=self.categories.condition(selection.categories),
            visible_sums=None if question.selection.chooses_rows else self.visible_sums,
        )
        return [categorised(self._with_shares(query), sorted(reads.columns))]

    def _visible_source(self, question: Sums, reads: Reads) -> SumSource | None:
        """Return suitable kept sums of the scope's rows for a question, if there are any."""
        dataset, selection = question.dataset, question.selection
        if self.visible_sums is None or not self._adds_up_visible_sums(selection, reads):
            return None
        columns = self._covering(dataset, selection, reads)
        if columns is None:
            return None
        key = KeySql({name: name for name in columns}, reads=frozenset(columns))
        return self._kept_source(self.visible_sums, columns, question, key)

    def _tagged_source(self, question: Sums, reads: Reads) -> SumSource | None:
        """Return the kept sums by a tag and time, if a question reads nothing else."""
        kept = self._sums_by_tag(question.selection)
        if kept is None or reads.tag is None:
            return None
        (sql,) = reads.tag.columns.values()
        key = replace(reads.tag, columns={TAG_VALUE: sql})
        found = self._kept_source(kept, _place_of_tag(reads.tag), question, key)
        return None if found is None else replace(found, has_tag=True)

    def _sums_by_tag(self, selection: Selection) -> VisibleSums | None:
        """Return where the sums of all visible rows by tags are kept; None if a selection has filters."""
        if selection.chooses_rows or selection.categories:
            return None
        return self.tags.sums if self.scope is None else self.visible_sums

    def _kept_source(self, kept: VisibleSums, place: tuple[str, ...], question: Sums, key: KeySql) -> SumSource | None:
        """Return the sums by a key and time that are kept of the files of a question; None if they are too large."""
        dataset, selection = question.dataset, question.selection
        window = self.visible(dataset, selection).window
        scan = Scan.of(self.snapshot(dataset.table), window, self._filter(dataset, selection))
        scan = scan if question.days is None else scan.only(question.days)
        table = kept.of(dataset, place, scan.files, partial(self._sum_visible, dataset, key))
        if table is None:
            return None
        relation = self.cursor.register(self.cursor.new_name("visible"), table)
        names = [name for name in table.column_names if name not in {*TIME_COLUMNS, *key.columns}]
        return SumSource(relation, scan.row_condition(), sums_of(names), are_partial=True, rows=table.num_rows)

    def _adds_up_visible_sums(self, selection: Selection, reads: Reads) -> bool:
        """Return whether sums of whole rows, or of their parts in the scope, suffice for a query."""
        by_category = selection.categories or reads.categories
        return self.visible_sums is not None and selection.min_amount is None and not by_category

    def _sum_visible(self, dataset: Dataset, key: KeySql, files: Sequence[DayFile]) -> pa.Table:
        """Return the sums of the visible rows by a key and time, of at least the days of some files, ascending by
        day."""
        days = DayRange.spanning([file.day for file in files if file.day is not None])
        columns = {**{name: name for name in TIME_COLUMNS}, **key.columns}

        def _sum(source: SumSource) -> pa.Table:
            return self.cursor.table(
                f"""SELECT {named(columns)}, {named(source.sums)} FROM {source.relation} AS stored {key.joins}
                    WHERE {source.condition.sql} GROUP BY ALL ORDER BY date""",
                source.condition.parameters,
            )

        reads = Reads(frozenset(TIME_COLUMNS) | key.reads)
        return with_first(self._stored_sources(Sums(dataset, Selection.of_days(days)), reads), _sum)

    def _covering(self, dataset: Dataset, selection: Selection, reads: Reads) -> tuple[str, ...] | None:
        """Return a set of columns whose sums suffice for a question; None if there is none."""
        if not self._adds_up_visible_sums(selection, reads):
            selection = self.visible(dataset, selection)
        keys = reads.categories | {each.key for each in selection.categories}
        of_rules = [self.categories.columns(dataset, key) for key in keys]
        return covering(dataset, reads.columns.union(self._filter(dataset, selection).reads, *of_rules))

    # Rows

    def visible(self, dataset: Dataset, selection: Selection) -> Selection:
        """Return a selection as the reader sees it: with the filters of its scope."""
        if self.scope is None:
            return selection
        return narrowed(selection, dataset, self.scope, self.categories.index)

    def days_of(self, dataset: Dataset, selection: Selection) -> DayRange | None:
        """Return the smallest range of UTC days that has all rows of the window of a selection, without its filters;
        None where there are no rows. No file of facts is opened."""
        return Scan.of(self.snapshot(dataset.table), self.visible(dataset, selection).window).days()

    def condition(self, dataset: Dataset, selection: Selection) -> Condition:
        """Return the filters of a selection by columns and tags, as SQL over the rows of a dataset.

        Raises:
            ValueError: the dataset cannot be filtered by these columns.
        """
        return self._filter(dataset, self.visible(dataset, selection))

    def scan(self, dataset: Dataset, selection: Selection) -> Scan:
        """Return the files of a dataset, and the condition that finds the rows with a selected part.

        Raises:
            UnknownCategory: it is filtered by a cost category that the tenant does not have.
            ValueError: the dataset cannot be filtered by these columns.
        """
        selection = self.visible(dataset, selection)
        scan = self.scan_of_whole_rows(dataset, selection)
        found = scan.filter
        for key in sorted({each.key for each in selection.categories}) if scan.files else ():
            filters = tuple(each for each in selection.categories if each.key == key)
            query = self.category_query(dataset, scan, [key])
            found &= rows_with_parts(replace(query, wanted=self.categories.condition(filters)))
        return replace(scan, filter=found)

    def parts(
        self, dataset: Dataset, selection: Selection, keys: Collection[str]
    ) -> tuple[Scan, tuple[str, Condition] | None]:
        """Return the files with selected rows, and the relation (SQL) and condition of their parts by some cost
        categories and those of the filters; None without a category or a file."""
        used = self.categories_of(dataset, selection, keys)
        selection = self.visible(dataset, selection)
        scan = self.scan_of_whole_rows(dataset, selection)
        if not used or not scan.files:
            return scan, None
        query = self.category_query(dataset, scan, used)
        return scan, parts_of_rows(replace(query, wanted=self.categories.condition(selection.categories)))

    def categories_of(self, dataset: Dataset, selection: Selection, keys: Collection[str]) -> list[str]:
        """Return some cost categories and those of the filters, in the order in which they divide rows."""
        return self.scope_first({*keys, *(each.key for each in self.visible(dataset, selection).categories)})

    def scope_first(self, keys: Collection[str]) -> list[str]:
        """Return cost categories in the order in which they divide rows: those of the scope before all others, so that
        what is visible of a row is the same amount for every question."""
        return sorted(keys, key=lambda key: (key not in self.scope_keys, key))

    @property
    def scope_keys(self) -> tuple[str, ...]:
        """The cost categories by which the scope chooses rows."""
        return () if self.scope is None else category_keys(self.scope)

    def values_of_scope(self) -> dict[str, dict[Period, frozenset[str]]]:
        """Return the visible values of the cost categories of the scope, with those below them, by period."""
        conditions = {} if self.scope is None else dict(self.scope.conditions)
        category = self.categories.index.category
        return {key: with_descendants(category(key), conditions[f"{CATEGORY_PREFIX}{key}"]) for key in self.scope_keys}

    def scan_of_whole_rows(self, dataset: Dataset, selection: Selection) -> Scan:
        """Return the scan of a visible selection without its filters by cost categories."""
        condition = self._filter(dataset, replace(selection, min_amount=None))
        scan = Scan.of(self.snapshot(dataset.table), selection.window, condition)
        if selection.min_amount is None or not scan.files:
            return scan
        amount = self.visible_amount(dataset, scan)
        reads = frozenset([dataset.amount])
        enough = Condition((f"{amount} >= $min_amount",), {"min_amount": selection.min_amount}, reads)
        return replace(scan, filter=condition & enough)

    def visible_amount(self, dataset: Dataset, scan: Scan) -> str:
        """Return the amount of a row of a scan, as SQL: of one that a category of the scope splits, the sum of the
        visible parts, which are then in a table."""
        if not self.scope_keys or not scan.files:
            return dataset.amount
        wanted = self.visible(dataset, Selection(scan.window)).categories
        query = self.category_query(dataset, scan, self.scope_keys)
        return sums_of_parts(replace(query, wanted=self.categories.condition(wanted)))

    def category_query(self, dataset: Dataset, scan: Scan, keys: Sequence[str]) -> CategoryQuery:
        """Return the rows of a scan with some cost categories."""
        used = tuple(
            UsedCategory(self.categories.index.place(key), self.categories.assignments(dataset, key)) for key in keys
        )
        return CategoryQuery(self.cursor, self.partials, dataset, scan, used)

    def measured(self, days: DayRange | None = None) -> Measured:
        """Return what was measured, visible or not, on some days or on all."""
        usage = self.snapshot(USAGE_TABLE)
        return Measured(usage.files if days is None else usage.within(days), self.categories.with_owners)

    def _filter(self, dataset: Dataset, selection: Selection) -> Condition:
        return selection.condition(dataset, self.tags, self.clusters, self.present_tags)

    def _with_shares(self, query: CategoryQuery) -> CategoryQuery:
        """Return a query whose categories have what their values reallocate, which is decided by whole days of the
        whole bill."""
        days = query.scan.days()
        if days is None:
            return query
        whole = Scan.of(self.snapshot(query.dataset.table), Selection.of_days(days).window)
        measured = self.measured(days)
        return replace(
            query, used=tuple(replace(each, shares=shares_of(query, each, whole, measured)) for each in query.used)
        )


def _place_of_tag(key: KeySql) -> tuple[str, ...]:
    return (f"{TAG_PREFIX}{key.tag}",)


def _kinds(question: Sums, keys: Sequence[KeySql], *, is_fine: bool) -> dict[str, str]:
    """Return the types of the columns of a question's sums, by their names."""
    kinds = {name: kind for key in keys for name, kind in zip(key.columns, key.kinds, strict=True)}
    for name in question.of:
        kinds[name] = "BIGINT" if name in COUNTS else f"DECIMAL(38, {question.places})"
    return kinds | ({f"{name}{FINE}": "HUGEINT" for name in question.amounts} if is_fine else {})


def _nothing(question: Sums, keys: Sequence[KeySql], *, is_fine: bool) -> str:
    """Return the SELECT of no sums; of everything together, there is one sum."""
    columns = {name: f"NULL::{kind}" for name, kind in _kinds(question, keys, is_fine=is_fine).items()}
    return f"SELECT {named(columns)}{' WHERE FALSE' if keys else ''}"


def _select(source: SumSource, question: Sums, keys: Sequence[KeySql], *, is_fine: bool) -> str:
    """Return the SELECT of a question's sums, by its keys, from what they are added up from; in the currency of its
    rates."""
    if source.has_tag:
        keys = [
            key if key.tag is None else replace(key, columns=dict.fromkeys(key.columns, TAG_VALUE), joins="")
            for key in keys
        ]
    columns = [f"{sql} AS {name}" for key in keys for name, sql in key.columns.items()]
    rows = f"FROM {source.relation} AS stored {' '.join(key.joins for key in keys)} WHERE {source.condition.sql}"
    sums = {DISTINCT_ROWS: source.sums[ROW_COUNT], **source.sums}
    wanted = {name: sums[name] for name in question.of}
    if is_fine:
        wanted |= {each: sums.get(each, "0::HUGEINT") for each in (f"{name}{FINE}" for name in question.amounts)}
    grouped = " GROUP BY ALL" if columns else ""
    rates = question.rates
    if not rates:
        selected = [*columns, named(wanted)] if wanted else columns
        return f"SELECT {', '.join(selected)} {rows}{grouped}"
    by_month = f"SELECT {', '.join([*columns, _MONTH, named(wanted)])} {rows} GROUP BY ALL"
    converted = {name: f"sum({name})::BIGINT" for name in question.of if name in COUNTS}
    for name in question.amounts:
        converted |= {each: f"sum({sql})" for each, sql in _times_rate(name, is_fine=is_fine).items()}
    kept = [f"* EXCLUDE (rate_month, rate, rate_units, {', '.join(converted)})"] if columns else []
    return f"""SELECT {", ".join([*kept, named(converted)])}
        FROM ({by_month}) JOIN {_rates_relation(rates)} USING (rate_month){grouped}"""


def _times_rate(name: str, *, is_fine: bool) -> dict[str, str]:
    """Return the column of a sum times the rate, as SQL over both; if it ``is_fine``, also that of its further digits.
    These are made small before, so that the product fits."""
    if not is_fine:
        return {name: f"({name} * rate)"}
    fine = f"{name}{FINE}"
    return {name: f"(({name} + {one_of(fine_wholes(fine))}) * rate)", fine: f"({fine_rest(fine)} * rate_units)"}


def _rates_relation(rates: Rates) -> str:
    """Return rates as SQL after FROM, with the columns ``rate_month``, ``rate`` and ``rate_units``: the rate in units
    of 10⁻⁸."""
    values = ", ".join(
        f"(DATE '{month}', {rate:f}::DECIMAL(18, {RATE_PLACES}), {int(rate.scaleb(RATE_PLACES))}::BIGINT)"
        for month, rate in sorted(rates.items())
    )
    return f"(VALUES {values}) AS rates(rate_month, rate, rate_units)"


def narrowed(selection: Selection, dataset: Dataset, scope: RowScope, categories: CategoryIndex) -> Selection:
    """Return the selection with the filters of a scope as well.

    Nothing is selected where the dataset cannot be filtered so, or the tenant has no such cost category.
    """
    columns, tags, by_category = selection.columns, selection.tags, selection.categories
    for name, values in scope.conditions:
        if name.startswith(TAG):
            tags += (TagFilter(name.removeprefix(TAG), values, is_present=True),)
        elif name.startswith(CATEGORY):
            key = name.removeprefix(CATEGORY)
            if key not in categories.by_key:
                return _nothing_selected(selection)
            by_category += (CategoryFilter(key, values),)
        else:
            column = dataset.filter_column(name)
            if column is None:
                return _nothing_selected(selection)
            columns += (ColumnFilter(column, values),)
    return replace(selection, columns=columns, tags=tags, categories=by_category)


def _nothing_selected(selection: Selection) -> Selection:
    start = selection.window.start
    return replace(selection, window=InstantRange(start, start))


def category_keys(scope: RowScope) -> tuple[str, ...]:
    """Return the cost categories by which a scope chooses rows, ascending."""
    return tuple(name.removeprefix(CATEGORY) for name, _ in scope.conditions if name.startswith(CATEGORY))
