"""The bill in the FinOps Open Cost and Usage Specification (FOCUS): one row for each share of a billing line.

Each query reads a few days: it joins their lines, the shares of these, and small tables of names, tags and products,
and divides prices and quantities in the same proportions as amounts. Memory does not grow with the number of days.

With posted costs, the rows of a month are followed by its corrections of earlier months: the former rows of the changed
days, reversed, and the present ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Final, Literal, Self

import pyarrow as pa

from chargeback.ecosystems.focus import PROGRAMME
from chargeback.errors import StorageError
from chargeback.model.accounting import AccountingPeriod, periods_of
from chargeback.model.billing import BILL_NAME_SQL
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.focus import IDENTITIES, TOPICS, UNITS
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.topics import BYTES_RATIO, RETAINED_BYTES_RATIO, TOPIC_RESOURCE_SQL, UNATTRIBUTED
from chargeback.reports.focus.applied import CONTRACT_APPLIED, NOTHING_APPLIED, AppliedToLines
from chargeback.reports.focus.columns import (
    INSTANT,
    MONEY,
    NUMBER,
    QUANTITY,
    TEXT,
    USAGE,
    FocusColumn,
    FocusLayout,
    all_columns,
    csv_line,
    trimmed,
)
from chargeback.reports.focus.lookups import (
    FocusTenant,
    Lookups,
    Occurring,
    kept_lookups,
    lookup_tables,
    read_lookups,
    tag_table,
)
from chargeback.reports.reconciliation import states_seen
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.export import parquet_file, text_of
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import END_OF_LINE, named

#: The maximum number of digits of a product.
_DIGITS: Final = 37


def positions(shares: str, order: Sequence[str]) -> str:
    """Return a query that adds ``weight``, ``upto`` and ``total`` to the rows of ``shares``, which have a ``line_id``
    and ``units``; ``order`` are the columns that distinguish the rows of a line.

    If a line costs nothing, its first row has the whole weight.
    """
    return f"""
        SELECT *, sum(weight) OVER (PARTITION BY line_id ORDER BY place)::HUGEINT AS upto,
               sum(weight) OVER (PARTITION BY line_id)::HUGEINT AS total
        FROM (SELECT *, CASE WHEN charged = 0 THEN (place = 1)::HUGEINT ELSE abs(units) END AS weight
        FROM (SELECT *, row_number() OVER (PARTITION BY line_id ORDER BY {", ".join(order)}) AS place,
                     sum(abs(units)) OVER (PARTITION BY line_id) AS charged FROM {shares}))"""


def divisor(*wholes: str) -> str:
    """Return the divisor of ``upto`` and ``total`` with which no product with one of some whole numbers is too large.
    Numbers that are shared with the same divisor are shared in the same proportions."""
    longest = f"greatest({', '.join(f'length(coalesce(abs({whole}), 0)::VARCHAR)' for whole in wholes)})"
    digits = "length(total::VARCHAR)"
    return f"('1' || repeat('0', least(greatest({digits} + {longest} - {_DIGITS}, 0), {digits} - 1)))::HUGEINT"


def shared(whole: str, divided_by: str) -> str:
    """Return the share of a row in a whole number; null if that is null."""
    upto, before, total = (f"({each} // {divided_by})" for each in ("upto", "(upto - weight)", "total"))
    return f"(sign({whole}) * ((abs({whole}) * {upto}) // {total} - (abs({whole}) * {before}) // {total}))"


def decimal_of(units: str, places: int) -> str:
    """Return the DECIMAL of a whole number of 10⁻ᵖˡᵃᶜᵉˢ."""
    return f"({units}::DECIMAL(38, 0) * 0.{'0' * (places - 1)}1::DECIMAL({places}, {places}))"


def units_of(number: str) -> str:
    """Return a DECIMAL(38, 12) as a whole number of 10⁻¹²."""
    return f"replace(({number})::VARCHAR, '.', '')::HUGEINT"


#: Whether a line has a price, and a quantity whose shares fit 18 places; otherwise it is one unit at its whole price.
_IS_PRICED: Final = "unit_price IS NOT NULL AND quantity IS NOT NULL AND abs(quantity) < 100000000000000000000"
_WHOLE_PRICE: Final = "coalesce(original_amount, total_cost)"
#: A refund is a negative quantity at a positive price, regardless of where the provider has put the sign.
_SIGN: Final = "CASE WHEN coalesce(nullif(original_amount, 0), total_cost) < 0 THEN -1 ELSE 1 END"
#: The list cost in 10⁻¹², rounded half up: price and quantity have twelve places each.
_PRODUCT: Final = f"(abs({units_of('unit_price')}) * abs({units_of('quantity')}) + 500000000000) // 1000000000000"
_ONE: Final = f"1{'0' * 18}::HUGEINT"

#: The values that are calculated for each line, as whole numbers of 10⁻¹² or 10⁻¹⁸. Credits only have an amount.
_PRICES: Final = {
    "list_units": f"CASE WHEN NOT is_credit THEN CASE WHEN {_IS_PRICED} THEN {_SIGN} * ({_PRODUCT}) "
    f"ELSE {units_of(_WHOLE_PRICE)} END END",
    "quantity_units": f"CASE WHEN NOT is_credit THEN {_SIGN} * CASE WHEN {_IS_PRICED} "
    f"THEN abs({units_of('quantity')}) * 1000000 ELSE {_ONE} END END",
    "list_unit_price": f"CASE WHEN NOT is_credit THEN abs(CASE WHEN {_IS_PRICED} THEN unit_price "
    f"ELSE {_WHOLE_PRICE} END) END",
    "pricing_unit": f"CASE WHEN {_IS_PRICED} THEN coalesce(focus_unit, '{UNITS}') ELSE '{UNITS}' END",
}
_DIVISOR: Final = divisor("list_units", "quantity_units")
# Each share has the same part of the applied commitments as of the line.
_APPLIED_UNITS: Final = "applied.units::HUGEINT"
_APPLIED_PART: Final = f"CASE WHEN is_reversal THEN -1 ELSE 1 END * {shared(_APPLIED_UNITS, divisor(_APPLIED_UNITS))}"
_APPLIED_KIND: Final = "ContractCommitmentApplied"
_APPLIED_ELEMENT: Final = f"""concat(
    '{{"ContractId":', to_json(applied.contract), ',"ContractCommitmentId":', to_json(applied.commitment),
    CASE WHEN applied.unit IS NULL THEN ',"{_APPLIED_KIND}Cost":' ELSE ',"{_APPLIED_KIND}Quantity":' END,
    {trimmed(decimal_of(_APPLIED_PART, 12))},
    CASE WHEN applied.unit IS NULL THEN '' ELSE concat(',"{_APPLIED_KIND}Unit":', to_json(applied.unit)) END, '}}')"""
_CONTRACT_APPLIED: Final = f"""(
    SELECT '{{"Elements":[' || nullif(array_to_string([{_APPLIED_ELEMENT} FOR applied IN line_applied.elements
                                               IF {_APPLIED_PART} <> 0], ','), '') || ']}}')"""
#: The values that are calculated for each share.
_SHARED: Final = {
    "list_cost": f"CASE WHEN is_credit THEN amount ELSE {decimal_of(shared('list_units', _DIVISOR), 12)} END",
    "quantity": decimal_of(shared("quantity_units", _DIVISOR), 18),
    "ratio": decimal_of(shared(_ONE, divisor(_ONE)), 18),
    "usage_unit": "coalesce(placed.usage_unit, measure.unit)",
    "payer_name": "CASE WHEN payer_id IS NOT NULL THEN coalesce(placed.payer_name, named.name, payer_id) END",
    "contract_applied": _CONTRACT_APPLIED,
}


def category_columns(keys: Sequence[str]) -> list[str]:
    """Return the columns of shares with the values of cost categories."""
    return [f"category_{place}" for place in range(len(keys))]


def focus_query(fields: str, categories: Sequence[str], tables: str) -> str:
    """Return the query of ``fields`` (SQL over the relations in :mod:`~chargeback.reports.focus.columns`), in the order
    of lines, portions and payers. ``categories`` are the keys of the tenant's cost categories, and ``tables`` is the
    prefix of the names of tables."""
    shares = f"(SELECT *, {units_of('amount')} AS units FROM {tables}_shares)"
    order = ["portion", "payer", *category_columns(categories)]
    return f"""
        WITH lines AS (
            SELECT *, {named(_PRICES)} FROM (
                SELECT bill.*, product.is_credit, units.focus_unit FROM {tables}_lines AS bill
                JOIN {tables}_products AS product ON product.bill = bill.bill_name
                    AND product.category = product_category AND product.type = product_type
                LEFT JOIN {tables}_units AS units ON units.unit = bill.unit)
        ), shares AS (
            SELECT placed.* EXCLUDE (usage_unit, payer_name), {named(_SHARED)}
            FROM ({positions(shares, order)}) AS placed
            JOIN lines ON lines.line_id = placed.line_id
            CROSS JOIN (SELECT is_reversal FROM {tables}_posting)
            LEFT JOIN {tables}_applied AS line_applied ON line_applied.line_id = placed.line_id
            LEFT JOIN {tables}_measures AS measure ON measure.policy_hash = placed.policy_hash
                AND measure.portion = placed.portion AND measure.chain_position = placed.chain_position
            LEFT JOIN {tables}_payers AS named ON named.id = payer_id
        )
        SELECT {fields}
        FROM lines AS line JOIN shares AS share ON share.line_id = line.line_id
        JOIN {tables}_products AS product ON product.bill = line.bill_name
            AND product.category = line.product_category AND product.type = line.product_type
        CROSS JOIN {tables}_account AS account
        CROSS JOIN {tables}_posting AS posting
        LEFT JOIN {tables}_resources AS resource ON resource.id = line.resource_id
        LEFT JOIN {tables}_resources AS environment ON environment.id = line.environment_id
        LEFT JOIN {tables}_payers AS payer ON payer.id = share.payer_id
        LEFT JOIN {tables}_tags AS its ON its.id = line.resource_id
        LEFT JOIN {tables}_payer_tags AS theirs ON theirs.id = share.payer
        ORDER BY line.timestamp, line.resource_id, line.product_type, line.line_id, share.place"""


#: The formats of files in FOCUS.
FocusFormat = Literal["csv", "parquet"]

_BATCH: Final = 20_000
#: The maximum number of shares of one query, unless a single day has more.
_PIECE: Final = 100_000

#: The SQL of the columns of shares, for rows of chargebacks, of topics, and for whole lines.
_SHARES: Final[Mapping[str, Mapping[str, str]]] = {
    CHARGEBACKS.table: {
        "payer": "identity_id",
        "payer_id": f"nullif(identity_id, '{UNALLOCATED}')",
        "portion": "portion",
        "method": "allocation_method",
        "detail": "allocation_detail",
        "cost_type": "cost_type",
        "chain_position": "chain_position",
        "used": "identity_usage",
        "total_usage": "total_usage",
        "policy_hash": "policy_hash",
    },
    TOPIC_ATTRIBUTIONS.table: {
        "payer": TOPIC_RESOURCE_SQL,
        "payer_id": f"CASE WHEN topic_name <> '{UNATTRIBUTED}' THEN {TOPIC_RESOURCE_SQL} END",
        "payer_name": "topic_name",
        "method": "attribution_method",
        "used": "topic_usage",
        "total_usage": "total_usage",
        "usage_unit": f"CASE WHEN attribution_method IN ('{BYTES_RATIO}', '{RETAINED_BYTES_RATIO}') THEN 'B' END",
    },
    BILLING_LINES.table: {},
}
_SHARE_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("line_id", "payer", "payer_id", "payer_name", "method", "detail", "cost_type"), "VARCHAR"),
    **dict.fromkeys(("policy_hash", "usage_unit"), "VARCHAR"),
    **dict.fromkeys(("portion", "chain_position"), "SMALLINT"),
    **dict.fromkeys(("used", "total_usage"), "DECIMAL(38, 6)"),
    "amount": "DECIMAL(38, 12)",
}
_SPLIT: Final = {IDENTITIES: CHARGEBACKS, TOPICS: TOPIC_ATTRIBUTIONS}


@dataclass(frozen=True)
class FocusSource:
    """The source of FOCUS data: the facts of a reader without a scope, the control database, and the tenant."""

    reader: TenantReader
    control: ControlDatabase
    tenant: FocusTenant

    @classmethod
    def of(cls, tenant: TenantView, reader: TenantReader) -> Self:
        """Return the source of a tenant."""
        return cls(reader, tenant.store.control, FocusTenant.of_view(tenant))

    @cached_property
    def categories(self) -> list[str]:
        """Return the keys of the tenant's cost categories, in their order."""
        return sorted(self.reader.categories.index.by_key)

    def columns(self, layout: FocusLayout) -> tuple[FocusColumn, ...]:
        """Return the columns of a layout, in its order.

        Raises:
            ValueError: the version has no such column.
        """
        has_programme = self.tenant.profile.discount == PROGRAMME
        has_contracts = bool(self.tenant.contracts)
        columns = all_columns(layout.version, self.categories, has_programme=has_programme, has_contracts=has_contracts)
        by_name = {column.name: column for column in columns}
        unknown = [name for name in layout.columns if name not in by_name]
        if unknown:
            raise ValueError(f"FOCUS {layout.version} has no column {', '.join(unknown)}; it has {', '.join(by_name)}")
        return tuple(by_name[name] for name in layout.columns) or columns

    def states(self, days: DayRange) -> list[DayState]:
        """Return the states of the UTC days of a range that have any, ascending.

        Raises:
            StorageError: the storage cannot be read.
        """
        for dataset in (BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS):
            self.reader.snapshot(dataset.table)  # before the states: a day that is calculated later is not yet in it
        with self.control.read() as connection:
            return [state for _, state in sorted(states_seen(self.reader, connection, days).items())]

    def regular(self, days: DayRange) -> Iterator[tuple[FocusSource, DayRange, datetime | None]]:
        """Yield sources with the days that they are for and their instant (None: the present): one for all days or,
        with posted costs, one for each month as it was closed.

        Raises:
            ValueError: posted costs are not requested by whole months, or for a month before the books.
        """
        if not isinstance(self.reader, PostedReader):
            yield self, days, None
            return
        for posted in periods_of(days.window):
            at = self.reader.books.regular(posted).at
            yield self.seen_by(self.reader.known(at)), posted.days, at

    def seen_by(self, reader: TenantReader) -> FocusSource:
        """Return the same source with another reader."""
        return replace(self, reader=reader)


@dataclass(frozen=True)
class Posting:
    """How rows were posted: the ``month`` (None: that of their day), the ``charge_class``, and whether they reverse
    former rows."""

    month: AccountingPeriod | None = None
    charge_class: str | None = None
    is_reversal: bool = False

    @property
    def table(self) -> pa.Table:
        """Return the posting as a table of one row."""
        month = None if self.month is None else self.month.window.start
        return pa.Table.from_pylist([{**vars(self), "month": month}], _POSTING)


_POSTING: Final = pa.schema([("month", INSTANT), ("charge_class", TEXT), ("is_reversal", pa.bool_())])
_CORRECTION: Final = "Correction"


def focus_schema(columns: Sequence[FocusColumn]) -> pa.Schema:
    """Return the schema of batches with some columns."""
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def focus_batches(source: FocusSource, layout: FocusLayout, days: DayRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the calculated UTC days of a range by day, line, portion and payer; the schema is that of the
    layout's columns.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read, or the bill changes while it is read.
        ValueError: the version has no such column.
    """
    schema = focus_schema(source.columns(layout))
    for batch in _read(source, layout, days, _fields):
        yield batch.cast(schema)


def focus_csv(source: FocusSource, layout: FocusLayout, days: DayRange) -> Iterator[memoryview]:
    """Yield the rows of :func:`focus_batches` as CSV (RFC 4180, UTF-8), the header first. Texts are not altered, also
    if a spreadsheet would take them for formulas.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read, or the bill changes while it is read.
        ValueError: the version has no such column.
    """
    columns = source.columns(layout)
    yield memoryview(f"{','.join(column.name for column in columns)}{END_OF_LINE}".encode())
    for batch in _read(source, layout, days, csv_line):
        yield text_of(batch.column(0))


def focus_file(source: FocusSource, layout: FocusLayout, days: DayRange, form: FocusFormat) -> Iterator[memoryview]:
    """Yield the rows of :func:`focus_batches` as a file of some format.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read, or the bill changes while it is read.
        ValueError: the version has no such column.
    """
    if form == "csv":
        return focus_csv(source, layout, days)
    return parquet_file(focus_schema(source.columns(layout)), focus_batches(source, layout, days))


def focus_lookups(source: FocusSource, reader: PostedReader, posted: AccountingPeriod) -> Lookups:
    """Return the present lookups of the rows of a month and of its corrections, to be stored when it is closed;
    ``reader`` is that of the source.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the storage cannot be read.
    """
    found = Occurring.nothing()
    for seen, within, _ in source.regular(posted.days):
        found |= _occurring(seen, within)
    for part in _sides(source, reader, posted):
        found |= _occurring(part.source, part.days)
    return _lookups(source, found)


def in_the_books(source: FocusSource, posted: PostedReader, month: AccountingPeriod) -> FocusSource:
    """Return the default source of the file of a month: posted costs for a month of the books, else the charges of its
    days."""
    start = posted.books.start
    return source if start is None or month < start else source.seen_by(posted)


#: Returns the SQL of the selected fields of some columns.
_Render = Callable[[Sequence[FocusColumn]], str]


def _fields(columns: Sequence[FocusColumn]) -> str:
    return named({column.name: column.sql for column in columns})


def _read(source: FocusSource, layout: FocusLayout, days: DayRange, render: _Render) -> Iterator[pa.RecordBatch]:
    reader, fields = source.reader, render(source.columns(layout))
    if not isinstance(reader, PostedReader):
        yield from _rows(source, layout, _FilePart(source, days), fields, _lookups(source, _occurring(source, days)))
        return
    for seen, within, _ in source.regular(days):
        posted = AccountingPeriod.of(within.start)
        lookups = _kept_lookups(source, reader, posted) or focus_lookups(source, reader, posted)
        yield from _rows(source, layout, _FilePart(seen, within, Posting(posted)), fields, lookups)
        yield from _corrections(source, layout, list(_sides(source, reader, posted)), render, lookups)


def _rows(
    source: FocusSource, layout: FocusLayout, part: _FilePart, fields: str, lookups: Lookups
) -> Iterator[pa.RecordBatch]:
    for prefix in _loaded(source, layout, part, lookups):
        query = focus_query(fields, source.categories, prefix)
        yield from source.reader.cursor.batches(query, {}, size=_BATCH)


def _corrections(
    source: FocusSource, layout: FocusLayout, parts: Sequence[_FilePart], render: _Render, lookups: Lookups
) -> Iterator[pa.RecordBatch]:
    """Yield both sides of the changes of earlier months, if they differ by more than ids or the division into lines."""
    cursor, every = source.reader.cursor, replace(layout, columns=())
    columns = source.columns(every)
    if not parts:
        return
    table = cursor.new_name("focus_corrections")
    cursor.run(f"CREATE TEMP TABLE {table} ({', '.join(f'{each.name} {_STORED[each.type]}' for each in columns)})")
    cursor.run(f"ALTER TABLE {table} ADD COLUMN is_reversal BOOLEAN")
    for part in parts:
        fields = f"{_fields(columns)}, posting.is_reversal"
        for prefix in _loaded(source, every, part, lookups):
            cursor.run(f"INSERT INTO {table} {focus_query(fields, source.categories, prefix)}")
    of_line = ["is_reversal DESC", "x_LineId", "x_Portion"]
    keys = [each.name for each in columns if each.name not in _OF_LINES]
    order = ["ChargePeriodStart", *(f"{name} NULLS FIRST" for name in keys), *of_line]
    chosen = render([replace(each, sql=each.name) for each in source.columns(layout)])
    yield from cursor.batches(
        f"""SELECT {chosen} FROM (
                SELECT *, sum(BilledCost) OVER (PARTITION BY ChargePeriodStart::DATE, {", ".join(keys)}) AS moved
                FROM {table}) WHERE moved <> 0 ORDER BY {", ".join(order)}""",
        {},
        size=_BATCH,
    )


#: The columns that distinguish the rows of one line, or of two lines that differ only by their amounts.
_OF_LINES: Final = frozenset(
    {
        *("AllocatedMethodDetails", "AllocatedMethodId", "x_AllocatedMethodId", "x_AllocationDetail"),
        *("BilledCost", "ContractedCost", "EffectiveCost", "ListCost", "x_OriginCost", "x_OriginalAmount"),
        *("ChargeDescription", "ChargePeriodStart", "ChargePeriodEnd", "ContractedUnitPrice", "ListUnitPrice"),
        *("ConsumedQuantity", "ConsumedUnit", "PricingQuantity", "PricingUnit", "x_IdentityUsage", "x_TotalUsage"),
        *("x_ChainPosition", "x_CostType", "x_LineId", "x_PolicyHash", "x_Portion", "x_ProviderLineId"),
        CONTRACT_APPLIED,
    }
)
_STORED: Final = {
    TEXT: "VARCHAR",
    MONEY: "DECIMAL(38, 12)",
    QUANTITY: "DECIMAL(38, 18)",
    USAGE: "DECIMAL(38, 6)",
    NUMBER: "SMALLINT",
    INSTANT: "TIMESTAMPTZ",
}


@dataclass(frozen=True)
class _FilePart:
    """A part of a file: some days of a source, and how they were posted."""

    source: FocusSource
    days: DayRange
    posting: Posting = Posting()
    only: Collection[date] | None = None


def _sides(source: FocusSource, reader: PostedReader, posted: AccountingPeriod) -> Iterator[_FilePart]:
    """Yield the former and the present rows of the changed days of earlier months."""
    for after, before in reader.books.corrections(posted):
        days = reader.changed_days(None, after, before)
        if days:
            for known in (before, after):
                posting = Posting(posted, _CORRECTION, is_reversal=known is before)
                side = source.seen_by(reader.known(known.at))
                yield _FilePart(side, DayRange.spanning(sorted(days)), posting, days)


def _lookups(source: FocusSource, found: Occurring) -> Lookups:
    with source.control.read() as connection:
        return read_lookups(connection, source.tenant, found)


def _kept_lookups(source: FocusSource, reader: PostedReader, posted: AccountingPeriod) -> Lookups | None:
    closed = reader.books.find(posted)
    if closed is None:
        return None
    with source.control.read() as connection:
        return kept_lookups(reader.place, connection, closed)


def _loaded(source: FocusSource, layout: FocusLayout, part: _FilePart, lookups: Lookups) -> Iterator[str]:
    """Make the tables of the queries, each for some days; yield the prefixes of their names. The columns of cost
    categories are those of ``source``."""
    cursor, states = source.reader.cursor, part.source.states(part.days)
    if part.only is not None:
        states = [each for each in states if each.tracking_date in part.only]
    pieces = list(_pieces(part.source, states))
    if not pieces:
        return
    prefix = cursor.new_name("focus")
    for name, table in {**lookup_tables(lookups), "posting": part.posting.table}.items():
        cursor.register(f"{prefix}_{name}", table)
    applied = _applied(source, layout, part, [each.tracking_date for piece in pieces for each in piece])
    for piece in pieces:
        days = DayRange(piece[0].tracking_date, piece[-1].tracking_date + ONE_DAY)
        cursor.register(f"{prefix}_applied", NOTHING_APPLIED if applied is None else applied.table(days))
        _register_tags(part.source, layout, piece[0].tracking_date, prefix)
        _load(part.source, layout, piece, prefix, source.categories)
        yield prefix


def _applied(source: FocusSource, layout: FocusLayout, part: _FilePart, days: Sequence[date]) -> AppliedToLines | None:
    """Return the parts of the lines of some days that were applied to commitments; None if no column shows them."""
    if not any(column.name == CONTRACT_APPLIED for column in source.columns(layout)):
        return None
    with source.control.read() as connection:
        states = states_seen(part.source.reader, connection)
    return AppliedToLines.of(part.source.reader, states, source.tenant.contracts, days)


def _pieces(source: FocusSource, states: Sequence[DayState]) -> Iterator[list[DayState]]:
    """Yield the calculated days, which have the rows of the present bill, in pieces of consecutive days that have the
    same tags and are alike in whether topics are attributed."""
    has_lines = {file.day for file in source.reader.snapshot(BILLING_LINES.table).files if file.rows}
    piece: list[DayState] = []
    for state in states:
        if not state.chargebacks.is_current or state.tracking_date not in has_lines:
            continue
        if piece and not (_are_alike(source, piece[-1], state) and sum(map(_size, piece)) < _PIECE):
            yield piece
            piece = []
        piece.append(state)
    if piece:
        yield piece


def _are_alike(source: FocusSource, before: DayState, after: DayState) -> bool:
    return (
        after.tracking_date == before.tracking_date + ONE_DAY
        and source.reader.tags.era(after.tracking_date) == source.reader.tags.era(before.tracking_date)
        and after.topics.is_current == before.topics.is_current
    )


def _size(state: DayState) -> int:
    return max(state.chargebacks.rows, state.topics.rows)


def _occurring(source: FocusSource, days: DayRange) -> Occurring:
    bill = ("resource_id", "environment_id", BILL_NAME_SQL, "product_category", "product_type", "unit")
    lines = _distinct(source, BILLING_LINES, days, bill)
    payers = _distinct(source, CHARGEBACKS, days, ("identity_id",))
    return Occurring(
        {resource for resource, *_ in lines},
        {environment for _, environment, *_ in lines if environment is not None},
        {identity for (identity,) in payers},
        {(name, category, product_type) for _, _, name, category, product_type, _ in lines},
        {unit for *_, unit in lines if unit is not None},
    )


def _distinct(source: FocusSource, dataset: Dataset, days: DayRange, columns: Sequence[str]) -> set[tuple[str, ...]]:
    found = source.reader.parts(dataset, Selection.of_days(days))
    if found is None:
        return set()
    relation, condition = found
    sql = f"SELECT DISTINCT {', '.join(columns)} FROM {relation} WHERE {condition.sql}"
    return set(source.reader.cursor.rows(sql, condition.parameters))


def _register_tags(source: FocusSource, layout: FocusLayout, day: date, prefix: str) -> None:
    tags = source.reader.tags
    of_payers = tags.resources if layout.split == TOPICS else tags.identities
    source.reader.cursor.register(f"{prefix}_tags", tag_table(tags.resources, day))
    source.reader.cursor.register(f"{prefix}_payer_tags", tag_table(of_payers, day))


def _load(
    source: FocusSource, layout: FocusLayout, piece: Sequence[DayState], prefix: str, categories: Sequence[str]
) -> None:
    """Make the tables of the lines and of the shares of some days, the latter with the values of some cost categories;
    their names begin with ``prefix``.

    Raises:
        StorageError: the shares of a line do not sum to its cost, or its product is unknown.
    """
    cursor = source.reader.cursor
    days = DayRange(piece[0].tracking_date, piece[-1].tracking_date + ONE_DAY)
    kinds = {**_SHARE_TYPES, **dict.fromkeys(category_columns(categories), "VARCHAR")}
    lines, shares = f"{prefix}_lines", f"{prefix}_shares"
    cursor.run(f"CREATE OR REPLACE TEMP TABLE {shares} ({', '.join(f'{k} {v}' for k, v in kinds.items())})")
    dataset = _SPLIT.get(layout.split)
    if dataset is not None and (dataset is CHARGEBACKS or piece[0].topics.is_current):
        _insert(source, dataset, days, shares, "TRUE", categories)
    _insert(source, BILLING_LINES, days, shares, f"line_id NOT IN (SELECT line_id FROM {shares})", categories)
    bill = source.reader.parts(BILLING_LINES, Selection.of_days(days))
    if bill is not None:
        relation, condition = bill
        cursor.run(
            f"CREATE OR REPLACE TEMP TABLE {lines} AS SELECT *, {BILL_NAME_SQL} AS bill_name"
            f" FROM {relation} WHERE {condition.sql}",
            condition.parameters,
        )
    wrong = cursor.rows(
        f"""SELECT date FROM (SELECT line_id, sum(amount) AS charged FROM {shares} GROUP BY line_id)
            FULL JOIN {lines} USING (line_id) WHERE charged IS DISTINCT FROM total_cost
            UNION ALL
            SELECT date FROM {lines} AS line ANTI JOIN {prefix}_products AS product ON product.bill = bill_name
                AND product.category = product_category AND product.type = product_type
            LIMIT 1"""
    )
    if wrong:
        raise StorageError(f"the bill of {wrong[0][0] or days.start} changed while it was read; export it again")


def _insert(
    source: FocusSource, dataset: Dataset, days: DayRange, shares: str, which: str, categories: Sequence[str]
) -> None:
    """Insert rows of a dataset into the shares. A cost category that did not exist at that instant has no values."""
    index = source.reader.categories.index
    known = {
        key: name for key, name in zip(categories, category_columns(categories), strict=True) if key in index.by_key
    }
    found = source.reader.parts(dataset, Selection.of_days(days), list(known))
    if found is None:
        return
    relation, condition = found
    columns = {"line_id": "line_id", "amount": dataset.amount, **_SHARES[dataset.table]}
    columns |= {name: f"category_{index.place(key)}" for key, name in known.items()}
    source.reader.cursor.run(
        f"INSERT INTO {shares} BY NAME SELECT {named(columns)} FROM {relation} WHERE {condition.sql} AND {which}",
        condition.parameters,
    )
