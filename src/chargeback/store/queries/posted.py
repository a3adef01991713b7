"""Posted amounts of months, instead of charges of days.

A month has the amounts that were known when it was closed and, as corrections, the changes of earlier months since the
month before was closed:

    posted(P) = known(P, c(P)) + Σ over earlier months M of [known(M, c(P)) − known(M, c(P−1))]

``known(M, T)`` is what a reader as of the instant T sees of the days of M; ``c(P)`` is the instant at which P was
closed or, of an open month, now. So the sum over all months is what is known now, after any history; nothing is copied,
and no row needs a key. Only days whose files differ between the two instants are read for a correction, unless tags or
cost categories of the query were changed as well. If only files matter, the data read for a correction are kept, and so
is the result: a repeated query reads nothing; after a run, it reads the month alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property, partial
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from chargeback.access.scope import CATEGORY, TAG, RowScope
from chargeback.model.accounting import AccountingPeriod, periods_of
from chargeback.model.chargeback import DIMENSION_COLUMNS
from chargeback.model.days import DayRange, InstantRange
from chargeback.store.control import cost_categories, tags
from chargeback.store.control.closings import Books, KnownMonth, read_books, state_of_books
from chargeback.store.control.database import ControlDatabase
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import DAY_TABLES
from chargeback.store.queries.clusters import CLUSTER_ID
from chargeback.store.queries.datasets import AMOUNT, CHARGEBACKS, NUMBER, TAGS, Dataset
from chargeback.store.queries.engine import CancellationToken, Cursor, KeptTables
from chargeback.store.queries.export import ExportedRows, ExportFormat, export_pieces
from chargeback.store.queries.keys import (
    CHARGE_CLASS,
    CHARGE_PERIOD,
    ENTRY,
    POSTED_PERIOD,
    POSTING,
    ByCategory,
    ByCluster,
    ByColumn,
    ByDay,
    ByPosting,
    ByRule,
    ByTag,
    ByTime,
    Key,
)
from chargeback.store.queries.lookups import CATEGORY_PREFIX, CategoryLookup, LookupCaches
from chargeback.store.queries.paging import Order, Page
from chargeback.store.queries.partials import COUNTS, REALLOCATED
from chargeback.store.queries.pinned import pinned_names
from chargeback.store.queries.question import TOTAL, Run, SumRelation, Sums
from chargeback.store.queries.reader import TenantReader, version_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import FINE, literal
from chargeback.store.queries.version import past_version
from chargeback.store.queries.visible_sums import VisibleEntities
from chargeback.store.tenant import TenantStore

REGULAR: Final = "regular"
CORRECTION: Final = "correction"
REPLACEMENT: Final = "replacement"
REVERSAL: Final = "reversal"

#: How corrections are shown: as the difference of both sides, or as both (reversal and replacement).
NET: Final = "net"
LEDGER: Final = "ledger"

#: Opens a reader of the tenant as of an instant, within a scope.
OpenPast = Callable[[datetime, RowScope | None], TenantReader]

_SIDE: Final = "is_regular"
_UTC: Final = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class _Side:
    """A part of what was posted to a month: what was known ``at`` an instant (None: at the end of the books) of whole
    months, on all of their days or on some."""

    posted: AccountingPeriod
    within: DayRange
    at: datetime | None
    entry: str
    days: frozenset[date] | None = None

    @property
    def is_regular(self) -> bool:
        return self.entry == REGULAR

    @property
    def constants(self) -> dict[str, str]:
        """How the amounts were posted, by the names of the keys."""
        charge_class = REGULAR if self.is_regular else CORRECTION
        return {POSTED_PERIOD: self.posted.id, CHARGE_CLASS: charge_class, ENTRY: self.entry}


@dataclass(frozen=True, slots=True)
class _Part:
    """A side of one of the windows of a question, by the number of the window, and the files that it is read from."""

    number: int
    side: _Side
    files: tuple[DayFile, ...]


class PostedReader(TenantReader):
    """Reads what was posted to the months of a selection, whose window must consist of whole UTC months.

    All sums are those of the months: a unit of time is ``month`` or ``all``. Everything else that a reader returns is
    what its ``base`` returns.

    Raises (everywhere): HistoryGone when rows that it needs are no longer kept; QueryTimeout when the query was
    cancelled; StorageError when the facts cannot be read; ValueError when the window is no whole months, or begins
    before the first month of the books.
    """

    def __init__(
        self, base: TenantReader, books: Books, control: ControlDatabase, open_past: OpenPast, kept: KeptTables
    ) -> None:
        """Read the ``books``; ``base`` sees the instant of the books, and ``open_past`` opens readers of others.
        ``kept`` has the data read for corrections, and results."""
        super().__init__(
            base.cursor,
            base._tables,
            base.tags,
            base._snapshots,
            base.clusters,
            base._past,
            base.categories,
            base.scope,
        )
        self._base = base
        self.books = books
        self._control = control
        self._open_past = open_past
        self._kept = kept
        self._readers: dict[datetime, TenantReader] = {}
        self._by_month: dict[AccountingPeriod, Mapping[AccountingPeriod, Decimal]] = {}
        self._edited: dict[tuple[datetime, datetime | None], bool] = {}

    def _like_this(self, categories: CategoryLookup, scope: RowScope | None) -> TenantReader:
        return self._of(self._base._like_this(categories, scope), self.books)

    def _of(self, base: TenantReader, books: Books) -> PostedReader:
        return PostedReader(base, books, self._control, self._open_past, self._kept)

    def earlier(self, at: datetime) -> PostedReader:
        """Return the reader of what was posted as of an earlier instant."""
        with self._control.read() as connection:
            books = read_books(connection, at)
        return self._of(self.known(at), books)

    def known(self, at: datetime | None) -> TenantReader:
        """Return the reader of what was known at an instant; None means the end of the books."""
        if at is None or at == self.books.at:
            return self._base
        if at not in self._readers:
            self._readers[at] = self._open_past(at, self.scope)
        return self._readers[at]

    def changed_days(self, question: Sums | None, after: KnownMonth, before: KnownMonth) -> frozenset[date]:
        """Return the days of a month whose sums may differ between two instants; without a question, those whose rows,
        tags or cost categories may."""
        return self._days_changed(question, after.period.days, before.at, after.at)

    def _days_changed(
        self, question: Sums | None, within: DayRange, since: datetime | None, until: datetime | None
    ) -> frozenset[date]:
        if since is None:  # of what is known now nothing is later
            return frozenset()
        then, now = self.known(since), self.known(until)
        if question is not None and not self._uses_entities(question):
            return _differing(then, now, within, [question.dataset.table])
        return frozenset(within) if self._was_edited(since, until) else _differing(then, now, within, DAY_TABLES)

    def _was_edited(self, since: datetime, until: datetime | None) -> bool:
        """Return whether tags or cost categories may decide otherwise at the later of two instants."""
        if (since, until) not in self._edited:
            with self._control.read() as connection:
                found = tags.changed_between(connection, since, until)
                found = found or cost_categories.changed_between(connection, since, until)
            self._edited[since, until] = found or self._matches_names
        return self._edited[since, until]

    @cached_property
    def _matches_names(self) -> bool:
        """Whether a rule looks at display names, which have no revisions."""
        return any(each.category.matches_names for each in self.categories.index.by_key.values())

    def _uses_entities(self, question: Sums) -> bool:
        """Return whether tags or cost categories decide the sums of a question."""
        by = any(isinstance(key, ByTag | ByCategory | ByRule) for key in question.by)
        scoped = self.scope is not None and any(name.startswith((TAG, CATEGORY)) for name, _ in self.scope.conditions)
        return bool(by or question.selection.tags or question.selection.categories or scoped)

    def _is_decided_by_files(self, question: Sums) -> bool:
        """Return whether the rows of files decide the sums of a question, and nothing else does."""
        names = [each.column for each in question.selection.columns]
        names += [name for name, _ in self.scope.conditions] if self.scope is not None else []
        uses_clusters = CLUSTER_ID in names or any(isinstance(key, ByCluster) for key in question.by)
        return not uses_clusters and not self._uses_entities(question)

    def _sides(self, question: Sums, window: InstantRange, *, only_corrections: bool = False) -> Iterator[_Side]:
        for posted in periods_of(window):
            if not only_corrections:
                yield _Side(posted, posted.days, self.books.regular(posted).at, REGULAR)
            # Months that are known as of the same instants, which is true of all months that are not sealed, are read
            # together; sealed months between them, to which nothing is posted any more, are left out.
            for (until, since), pairs in groupby(self.books.corrections(posted), lambda each: (each[0].at, each[1].at)):
                months = [after.period for after, _ in pairs]
                within = DayRange(months[0].start, months[-1].days.end)
                changed = self._days_changed(question, within, since, until)
                if days := frozenset(day for day in changed if AccountingPeriod.of(day) in months):
                    some = None if len(days) == len(within) else days
                    yield _Side(posted, within, until, REPLACEMENT, some)
                    yield _Side(posted, within, since, REVERSAL, some)

    @property
    def of_days(self) -> TenantReader:
        """The reader of what was charged on days, as of the same instant."""
        return self._base

    def visible_entities(self) -> VisibleEntities | None:
        """Return what occurs in the rows of the reader's scope, on any day."""
        return self._base.visible_entities()

    @property
    def smallest_unit(self) -> str:
        """The smallest unit of time of all sums."""
        return "month"

    # Sums

    def sums(self, question: Sums) -> SumRelation:
        """Return the relation with the posted sums of a question. Groups that corrections do not change are left out;
        the rows of a correction are those of both of its sides."""
        return self._posted(question)

    def corrections_of(self, question: Sums) -> SumRelation:
        """Return the relation with the sums of the corrections alone."""
        return self._posted(question, only_corrections=True)

    def corrections_by_month(self, posted: AccountingPeriod) -> Mapping[AccountingPeriod, Decimal]:
        """Return the corrections that were posted to a month, by the month that they are about; those of nothing are
        left out. They are summed once, and not by what statements are made of."""
        if posted not in self._by_month:
            sums = self.corrections_of(Sums(CHARGEBACKS, Selection(posted.window), (ByPosting(CHARGE_PERIOD),)))
            rows = sums.rows(f"SELECT d0, {sums.amount()} FROM sums")
            found = {AccountingPeriod.named(charged): amount for charged, amount in rows if amount}
            self._by_month[posted] = dict(sorted(found.items()))
        return self._by_month[posted]

    def sums_of_each(self, question: Sums) -> list[tuple[SumRelation, str]]:
        """Return for each key of a question the sums by it, with the column of its values."""
        return [(self.sums(replace(question, by=(key,))), "d0") for key in question.by]

    def _posted(self, question: Sums, *, only_corrections: bool = False, style: str = NET) -> SumRelation:
        parts = tuple(
            _Part(number, side, files)
            for number, window in enumerate(question.periods or (question.selection.window,))
            for side in self._sides(question, window, only_corrections=only_corrections)
            if (files := _files(self.known(side.at), question.dataset, side))
        )
        days = [file.day for part in parts for file in part.files if file.day is not None]
        relation = partial(SumRelation, self.cursor, question, days=DayRange.spanning(days) if days else None)
        if not self._is_decided_by_files(question):
            name, is_fine = self._netted(question, parts, style, is_kept=False)
            return relation(is_fine=is_fine, run=_all_of(name))
        made_of = (_hashable(question), self.scope_digest, style, parts)
        answer = self._kept.find(made_of)
        if answer is not None:
            name = self.cursor.register(self.cursor.new_name("posted"), answer)
        else:
            name, _ = self._netted(question, parts, style, is_kept=True)
            answer = self.cursor.table(f"SELECT * FROM {name} LIMIT {_KEPT_ROWS + 1}", {})
            if answer.num_rows <= _KEPT_ROWS:
                self._kept.keep(made_of, answer)
        return relation(is_fine=False, run=_all_of(name))

    def _netted(self, question: Sums, parts: Sequence[_Part], style: str, *, is_kept: bool) -> tuple[str, bool]:
        """Make a table of the netted sums of some parts; return its name, and whether its amounts have further digits.
        With ``is_kept``, what is read for corrections is."""
        facts = tuple(key for key in question.by if not isinstance(key, ByPosting | ByTime))
        if ByPosting(CHARGE_PERIOD) in question.by and ByDay() not in facts:
            facts = (*facts, ByTime("month", _UTC))
        asked = replace(question, by=facts, periods=())
        relations = []
        for part in parts:
            selection = replace(question.selection, window=part.side.within.window)
            relations.append(self.known(part.side.at).sums(replace(asked, selection=selection, days=part.side.days)))
        is_fine = any(sums.is_fine for sums in relations)
        read: list[tuple[SumRelation, str]] = []
        kept: list[pa.Table] = []
        for part, sums in zip(parts, relations, strict=True):
            sql = f"SELECT {_columns(question, part.side, part.number, sums, is_fine=is_fine)} FROM sums"
            if part.side.is_regular or not is_kept:
                read.append((sums, sql))
            else:
                made_of = (_hashable(sums.question), self.scope_digest, sql, part.files)
                kept.append(self._kept.get(made_of, partial(sums.arrow, sql)))
        if not read:  # something that has the right columns, and no rows
            nothing = self._base.sums(replace(asked, selection=replace(question.selection, window=_NO_TIME)))
            first = periods_of((question.periods or (question.selection.window,))[0])[0]
            columns = _columns(question, _Side(first, first.days, None, REGULAR), 0, nothing, is_fine=is_fine)
            read.append((nothing, f"SELECT {columns} FROM sums LIMIT 0"))
        # What is read last is netted while it is read.
        *before, (last, sql) = read
        fine = tuple(f"{name}{FINE}" for name in question.amounts) if is_fine else ()
        sides = " UNION ALL BY NAME ".join([f"({sql})", *_inserted(before), *_registered(self.cursor, kept)])
        return last.table("posted", _net(question, f"({sides})", style, fine)), is_fine

    # Rows

    def list_rows(
        self, dataset: Dataset, selection: Selection, page: Page, order: Order | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of what was posted, month by month: its rows, then its corrections by month and day. Each
        says how it was posted."""
        if order is not None:
            raise ValueError("what was posted has no other order")
        items: list[dict[str, Any]] = []
        before = 0
        for posted in periods_of(selection.window):
            of_month = replace(selection, window=posted.window)
            for class_ in (REGULAR, CORRECTION):
                rest = Page(max(page.offset - before, 0), page.limit - len(items))
                rows, count = self._page(dataset, of_month, class_, rest)
                items += rows[: rest.limit]
                before += count
        return items, before

    def _page(
        self, dataset: Dataset, selection: Selection, class_: str, page: Page
    ) -> tuple[list[dict[str, Any]], int]:
        posted = AccountingPeriod.of(selection.window.start.date())
        if class_ == REGULAR:
            of_month = self.known(self.books.regular(posted).at)
            rows, count = of_month.list_rows(dataset, selection, Page(page.offset, max(page.limit, 1)))
            return [{**row, **_posting(posted, posted, REGULAR)} for row in rows], count
        table = self.corrections(selection)
        ((count,),) = self.cursor.rows(f"SELECT count(*) FROM {table}")
        found = self.cursor.rows(
            f"SELECT {CHARGE_PERIOD}, {dataset.row_sql} FROM {table} ORDER BY number "
            f"LIMIT {max(page.limit, 0)} OFFSET {page.offset}"
        )
        known = self.known(self.books.regular(posted).at)
        items = []
        for charged, *row in found:
            item = dataset.item(tuple(row))
            period = AccountingPeriod.named(charged)
            day = date.fromisoformat(item["timestamp"][:10])
            item[TAGS] = known.tags.resolve(item["identity_id"], item["resource_id"], day)
            items.append({**item, **_posting(posted, period, CORRECTION)})
        return items, count

    def corrections(self, selection: Selection, keys: Sequence[str] = (), style: str = NET) -> str:
        """Return the table of the corrections that were posted to the months of a selection, each under what its rows
        have in common: their day, dimension and environment, and the values of some cost categories. It has the columns
        of chargebacks; what differs between rows of a day is null."""
        by: list[Key] = [ByPosting(POSTED_PERIOD), ByPosting(CHARGE_PERIOD), ByPosting(ENTRY), ByDay()]
        by += [ByColumn(name) for name in _KEPT] + [ByCategory(key) for key in keys]
        # Rows have what the rules of a category assign; what its values reallocate is a matter of sums.
        amount = REALLOCATED[0] if keys or selection.categories else TOTAL
        asked = Sums(CHARGEBACKS, selection, tuple(by), (amount,))
        sums = self._posted(asked, only_corrections=True, style=style)
        columns = {POSTED_PERIOD: "d0", CHARGE_PERIOD: "d1", CHARGE_CLASS: literal(CORRECTION), ENTRY: "d2"}
        columns |= {"date": "date", "timestamp": "date::TIMESTAMPTZ", "amount": amount}
        columns |= {name: f"d{number}" for number, name in enumerate(_KEPT, 3)}
        places = {key: self.categories.index.place(key) for key in keys}
        columns |= {f"category_{places[key]}": f"d{number}" for number, key in enumerate(keys, 3 + len(_KEPT))}
        for column in (*CHARGEBACKS.columns, *CHARGEBACKS.metadata):
            columns.setdefault(column.stored, f"NULL::{_TYPES.get(column.kind, 'VARCHAR')}")
        selected = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return sums.table(
            "corrections",
            f"SELECT {selected}, row_number() OVER (ORDER BY {_order(len(by) - 1)}) AS number FROM sums",
        )

    def export(
        self,
        dataset: Dataset,
        selection: Selection,
        columns: Sequence[str] = (),
        *,
        form: ExportFormat = "csv",
        per: str | None = None,
        style: str = NET,
    ) -> Iterator[memoryview]:
        """Yield what was posted as a file, in the order of the list. Each row says how it was posted, in further
        columns at the end; with the ``style`` ledger also which side of a correction it is."""
        named = [*(columns or dataset.default_export)]
        keys = sorted({name.removeprefix(CATEGORY_PREFIX) for name in named if name.startswith(CATEGORY_PREFIX)})
        more = (*POSTING, ENTRY) if style == LEDGER else POSTING
        rows = self._exported(dataset, selection, (*named, *more), keys, style)
        yield from export_pieces(rows, form)

    def _exported(
        self, dataset: Dataset, selection: Selection, named: Sequence[str], keys: Sequence[str], style: str
    ) -> Iterator[ExportedRows]:
        for posted in periods_of(selection.window):
            of_month = replace(selection, window=posted.window)
            known = self.known(self.books.regular(posted).at)
            scan, parts = known.plan.parts(dataset, of_month, set(keys))
            places = {
                key: known.categories.index.place(key) for key in known.plan.categories_of(dataset, of_month, keys)
            }
            constants = {name: literal(value) for name, value in _posting(posted, posted, REGULAR).items()}
            constants |= {ENTRY: literal(REGULAR)}
            yield ExportedRows(self.cursor, dataset, scan, named, known.tags, None, parts, places, constants)
            table = self.corrections(of_month, keys, style)
            places = {key: self.categories.index.place(key) for key in keys}
            constants = {name: name for name in (*POSTING, ENTRY)}
            yield ExportedRows(self.cursor, dataset, scan, named, known.tags, None, None, places, constants, table)


#: What the rows of a correction have in common, besides their day: all that makes a dimension, and the environment.
_KEPT: Final = ("dimension_id", *DIMENSION_COLUMNS, "environment_id")
#: A result with more rows is not kept: while it is built, all of them are in memory.
_KEPT_ROWS: Final = 20_000
_TYPES: Final[Mapping[str, str]] = {NUMBER: "BIGINT", AMOUNT: "DECIMAL(38, 12)"}
_NO_TIME: Final = InstantRange(
    datetime.fromisoformat("1970-01-01T00:00:00Z"), datetime.fromisoformat("1970-01-01T00:00:00Z")
)


def _order(keys: int) -> str:
    """Return the order of corrections: by month and day, then by what they are about; reversals come first."""
    return ", ".join(["d0", "d1", "date", *(f"d{number} NULLS FIRST" for number in range(3, keys)), "d2 DESC"])


def _posting(posted: AccountingPeriod, charged: AccountingPeriod, class_: str) -> dict[str, str]:
    return {POSTED_PERIOD: posted.id, CHARGE_CLASS: class_, CHARGE_PERIOD: charged.id}


def _files(known: TenantReader, dataset: Dataset, side: _Side) -> tuple[DayFile, ...]:
    """Return the files that had rows of a dataset on the days of a side."""
    files = known.snapshot(dataset.table).within(side.within)
    return tuple(file for file in files if side.days is None or file.day in side.days)


def _all_of(table: str) -> Run:
    return lambda use: use(f"SELECT * FROM {table}", {})


def _differing(then: TenantReader, now: TenantReader, within: DayRange, tables: Iterable[str]) -> frozenset[date]:
    """Return the days of a range whose files differ between two readers."""
    found: set[date] = set()
    for table in tables:
        before, after = ({each.path: each.day for each in side.snapshot(table).files} for side in (then, now))
        found.update(day for path in before.keys() ^ after.keys() if (day := before.get(path) or after.get(path)))
    return frozenset(day for day in found if day in within)


def _inserted(read: Sequence[tuple[SumRelation, str]]) -> list[str]:
    """Return the table of what is read of some sides, as SQL."""
    if not read:
        return []
    (first, sql), *others = read
    table = first.table("sides", sql)
    for sums, sql in others:
        sums.insert(table, sql)
    return [f"SELECT * FROM {table}"]


def _registered(cursor: Cursor, kept: Sequence[pa.Table]) -> list[str]:
    """Return the relation of what was kept of some sides, as SQL. Shares, whose sums have further digits, are those of
    cost categories; where these decide, nothing is kept."""
    if not kept:
        return []
    return [f"SELECT * FROM {cursor.register(cursor.new_name('corrections'), pa.concat_tables(kept))}"]


def _hashable(question: Sums) -> Hashable:
    rates = None if question.rates is None else tuple(question.rates.items())
    return replace(question, rates=None), rates


def _columns(question: Sums, side: _Side, number: int, sums: SumRelation, *, is_fine: bool) -> str:
    """Return the columns of a side, as SQL: its keys under the names that the question gives them, and its sums
    with their signs."""
    charged = "date" if ByDay() in question.by else "bucket"
    found = [f"{number} AS period"] if question.periods else []
    overall = of_side = 0
    for key in question.by:
        match key:
            case ByDay():
                found.append("date")
            case ByTime(unit="month"):
                found.append(f"DATE '{side.posted.start}' AS bucket")
            case ByTime(unit="all"):
                found.append(f"DATE '{question.selection.window.start.date()}' AS bucket")
            case ByTime():
                raise ValueError("what was posted has no other units of time than month and all")
            case ByPosting(name=name):
                month = f"strftime({charged}, '%Y-%m')"
                found.append(f"{month if name == CHARGE_PERIOD else literal(side.constants[name])} AS d{overall}")
                overall += 1
            case _:
                found.append(f"d{of_side} AS d{overall}")
                overall, of_side = overall + 1, of_side + 1
    sign = "-" if side.entry == REVERSAL else ""
    # Of the same types for any summands.
    amount = f"DECIMAL(38, {question.places})"
    signed = {name: f"({name})::BIGINT" if name in COUNTS else f"({sign}{name})::{amount}" for name in question.of}
    if is_fine:
        fine = {name: f"({sign}{name}{FINE})" if sums.is_fine else "0" for name in question.amounts}
        signed |= {f"{name}{FINE}": f"{sql}::HUGEINT" for name, sql in fine.items()}
    found += [f"{sql} AS {name}" for name, sql in signed.items()]
    return ", ".join([*found, f"{str(side.is_regular).upper()} AS {_SIDE}"])


def _net(question: Sums, table: str, style: str, fine: Sequence[str]) -> str:
    """Return the SELECT of the sums of all sides; of corrections, those whose sides differ."""
    keys, overall = (["period"] if question.periods else []), 0
    entry = None
    for key in question.by:
        if isinstance(key, ByDay):
            keys.append("date")
        elif isinstance(key, ByTime):
            keys.append("bucket")
        else:
            if isinstance(key, ByPosting) and key.name == ENTRY:
                entry = f"d{overall}"
            keys.append(f"d{overall}")
            overall += 1
    amounts = (*question.amounts, *fine)
    sums = [f"sum({name}) AS {name}" for name in amounts]
    sums += [f"sum({name})::BIGINT AS {name}" for name in question.of if name in COUNTS]
    differs = " OR ".join(f"sum({name}) <> 0" for name in amounts) or "TRUE"
    groups, chosen = "ALL", f"HAVING {differs}"
    if entry is None:
        chosen = f"HAVING bool_or({_SIDE}) OR {differs}"
    elif style == LEDGER:  # both sides of corrections, where they differ
        of_both = ", ".join(key for key in keys if key != entry)
        groups = ", ".join(keys)
        chosen = "QUALIFY " + " OR ".join(f"sum(sum({name})) OVER (PARTITION BY {of_both}) <> 0" for name in amounts)
    else:
        keys = [f"{literal(NET)} AS {entry}" if key == entry else key for key in keys]
    return f"SELECT {', '.join([*keys, *sums])} FROM {table} GROUP BY {groups} {chosen}"


def open_posted(
    base: TenantReader, store: TenantStore, token: CancellationToken, caches: LookupCaches, as_of: datetime | None
) -> PostedReader:
    """Return the reader of what was posted, as the books were at an instant (None: now), which is that of ``base``.

    Raises:
        StorageError: the control database cannot be read.
    """
    with store.control.read() as connection:
        revision = state_of_books(connection)
        books = caches.books.get(f"{store.tenant_name} {as_of}", revision, partial(read_books, connection, as_of))

    def _open(at: datetime, scope: RowScope | None) -> TenantReader:
        version = past_version(store, token, caches, at, revision)
        return version_reader(base.cursor, store, version, caches, scope, pinned_names(store, caches, books, at))

    return PostedReader(base, books, store.control, _open, caches.posted)
