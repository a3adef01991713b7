"""Reconciliation: the bill compared with the charges, by day and in sums over days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

import pyarrow as pa
from pydantic import Field
from sqlalchemy import Connection

from chargeback.allocation.policies import PolicyCatalogue, policies_hash
from chargeback.model.currency import Conversion
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import difference, total
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.store.control.day_revisions import Revision, read_day_revisions
from chargeback.store.control.days import DayDataset, DayState, read_days
from chargeback.store.control.inventory_lists import RESOURCES, names_of
from chargeback.store.queries.daily_totals import DayTotals
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import ByColumn, ByDay
from chargeback.store.queries.partials import ROW_COUNT
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import microseconds
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import named
from chargeback.store.queries.sums import daily_amounts

PRODUCT_TYPE: Final = "product_type"
RESOURCE_ID: Final = "resource_id"
ECOSYSTEM: Final = "ecosystem"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AMOUNT: Final = "DECIMAL(38, 12)"
#: The summed datasets: their columns for a product type and a resource, and the sums, by their names here.
_KEYS: Final = (PRODUCT_TYPE, RESOURCE_ID)
_TABLES: Final[tuple[tuple[Dataset, tuple[str, ...], Mapping[str, str]], ...]] = (
    (BILLING_LINES, _KEYS, {"billed": "total", "lines": ROW_COUNT}),
    (CHARGEBACKS, _KEYS, {"charged": "total", "unallocated": "unowned", "charged_rows": ROW_COUNT}),
    (TOPIC_ATTRIBUTIONS, (PRODUCT_TYPE, "cluster_resource_id"), {"by_topic": "total"}),
)
_SUMS: Final = {
    "billed": _AMOUNT,
    "charged": _AMOUNT,
    "unallocated": _AMOUNT,
    "by_topic": _AMOUNT,
    "lines": "BIGINT",
    "charged_rows": "BIGINT",
}
_DAYS: Final = pa.schema(
    [
        ("date", pa.date32()),
        ("is_gathered", pa.bool_()),
        ("is_calculated", pa.bool_()),
        ("is_superseded", pa.bool_()),
        ("revision", pa.int64()),
        ("calculated_at", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class CoveredDay:
    """The state of a UTC day, in addition to its amounts.

    Attributes:
        is_gathered: its bill was gathered.
        is_calculated: it was calculated from its present bill.
        is_superseded: whether it was calculated under other policies than the present ones; None if that is not known.
        revision: the number of its revision; None if it has none.
        calculated_at: the instant from which it has that revision.
    """

    day: date
    is_gathered: bool = False
    is_calculated: bool = False
    is_superseded: bool | None = None
    revision: int | None = None
    calculated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReconciledSums:
    """The sums of one day, product type or resource (``value``) over some days.

    Attributes:
        billed: the sum of ``lines`` billing lines.
        charged: the sum of ``rows`` chargeback rows.
        unallocated: the part of it that is charged to no identity.
        pending: the bill of days that are not calculated yet, or not from their present bill.
        by_topic: the amount attributed to topics.
        differs: on some calculated day, the charged amount differs from the bill.
        waits: a day with a bill is not calculated.
        is_calculated: a day is calculated.
        is_superseded: whether any day was calculated under other policies than the present ones; None if that is not
            known of any.
        revision: the highest number of a revision of these days.
        calculated_at: when the newest of these revisions took effect.
    """

    value: str
    billed: Decimal
    charged: Decimal
    unallocated: Decimal
    pending: Decimal
    by_topic: Decimal
    lines: int
    rows: int
    differs: bool
    waits: bool
    is_calculated: bool
    is_superseded: bool | None
    revision: int | None
    calculated_at: datetime | None


class CollectedSums:
    """The sums of the bill, the charges and the attributions of ``days``, by day, product type and resource, and also
    by the ecosystem of the bill if ``by_ecosystem``.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    def __init__(self, reader: TenantReader, days: DayRange, *, by_ecosystem: bool = False) -> None:
        """Sum them."""
        self._cursor = reader.cursor
        selection = Selection.of_days(days)
        more = (ECOSYSTEM,) if by_ecosystem else ()
        self._tables = [
            (_collected(reader, dataset, selection, (*keys, *more), sums), sums) for dataset, keys, sums in _TABLES
        ]

    def product_types(self) -> dict[date, frozenset[str]]:
        """Return the product types that are billed on each day."""
        billed, _ = self._tables[0]
        found = self._cursor.rows(f"SELECT date, list(DISTINCT {PRODUCT_TYPE}) FROM {billed} GROUP BY date")
        return {day: frozenset(types) for day, types in found}

    def reconciled(self, days: Sequence[CoveredDay], by: str | None = None) -> list[ReconciledSums]:
        """Return the sums by product type, resource or ecosystem, or (``by`` is None) of each of ``days``, with or
        without a bill; ascending.

        Charges differ from the bill if they do so in the sums of any single day.

        Raises:
            SumTooLarge: a sum has too many digits.
        """
        covered = self._cursor.register(self._cursor.new_name("covered_days"), _days_table(days))
        value = "''" if by is None else by
        parts = " UNION ALL ".join(
            f"SELECT date, {value} AS value, {_padded(sums)} FROM {table}" for table, sums in self._tables
        )
        sums = ", ".join(f"sum({name})::{kind} AS {name}" for name, kind in _SUMS.items())
        filled = ", ".join(f"coalesce({name}, 0)::{kind} AS {name}" for name, kind in _SUMS.items())
        rows = self._cursor.rows(
            f"""WITH by_day AS (SELECT date, value, {sums} FROM ({parts}) GROUP BY ALL),
                     known AS (SELECT * REPLACE ({filled}),
                                      NOT is_calculated AND (is_gathered OR coalesce(lines, 0) > 0) AS waits
                               FROM {covered} {"LEFT JOIN" if by is None else "JOIN"} by_day USING (date))
                SELECT {"date::VARCHAR" if by is None else "value"} AS place, sum(billed)::{_AMOUNT},
                       sum(charged)::{_AMOUNT}, sum(unallocated)::{_AMOUNT},
                       coalesce(sum(billed) FILTER (waits), 0)::{_AMOUNT}, sum(by_topic)::{_AMOUNT},
                       sum(lines)::BIGINT, sum(charged_rows)::BIGINT, bool_or(is_calculated AND billed <> charged),
                       bool_or(waits), bool_or(is_calculated), bool_or(is_superseded), max(revision),
                       max(calculated_at)
                FROM known GROUP BY place ORDER BY place"""
        )
        return [ReconciledSums(*(*row[:-1], _instant(row[-1]))) for row in rows]


def _collected(
    reader: TenantReader, dataset: Dataset, selection: Selection, by: tuple[str, ...], names: Mapping[str, str]
) -> str:
    """Make the table of the sums of a dataset by day, product type and resource, and perhaps ecosystem; return its
    name."""
    sums = reader.sums(Sums(dataset, selection, (ByDay(), *map(ByColumn, by)), tuple(names.values())))
    columns = {name: f"d{number}" for number, name in enumerate((PRODUCT_TYPE, RESOURCE_ID, ECOSYSTEM)[: len(by)])}
    columns |= {name: f"{of}::{_SUMS[name]}" for name, of in names.items()}
    return sums.table("reconciled", f"SELECT date, {named(columns)} FROM sums")


def _padded(sums: Mapping[str, str]) -> str:
    """Return the columns of a table of sums, with zeros for the sums that it does not have."""
    return ", ".join(f"{name if name in sums else f'0::{kind}'} AS {name}" for name, kind in _SUMS.items())


def _days_table(days: Sequence[CoveredDay]) -> pa.Table:
    rows = [
        {
            "date": each.day,
            "is_gathered": each.is_gathered,
            "is_calculated": each.is_calculated,
            "is_superseded": each.is_superseded,
            "revision": each.revision,
            "calculated_at": None if each.calculated_at is None else microseconds(each.calculated_at),
        }
        for each in days
    ]
    return pa.Table.from_pylist(rows, schema=_DAYS)


def _instant(since_epoch: int | None) -> datetime | None:
    return None if since_epoch is None else _EPOCH + timedelta(microseconds=since_epoch)


#: The state of the reconciliation of a UTC day.
ReconciledState = Annotated[
    Literal["equal", "differs", "pending", "none"],
    Field(description="The charges equal the bill; differ from it; are not calculated yet; there is no bill."),
]
EQUAL: Final = "equal"
DIFFERS: Final = "differs"
PENDING: Final = "pending"
NONE: Final = "none"
_WORST_FIRST: Final = (DIFFERS, PENDING, EQUAL, NONE)

#: The groupings of a reconciliation.
ReconciledBy = Literal["day", "month", "product_type", "resource_id", "ecosystem"]
DAY: Final = "day"
MONTH: Final = "month"

_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class ReconciledDay:
    """One UTC day of a tenant: its bill, its charges, and its state. ``fingerprint`` is that of the bill from which it
    was calculated."""

    day: date
    state: str
    billed: Decimal
    charged: Decimal
    topics: bool
    error: str | None
    fingerprint: str | None
    gathered_at: datetime | None

    @property
    def difference(self) -> Decimal:
        """Return the charges minus the bill."""
        return difference(self.charged, self.billed)

    def converted(self, conversion: Conversion) -> ReconciledDay:
        """Return the day in another currency."""
        billed, charged = (conversion.convert(self.day, amount) for amount in (self.billed, self.charged))
        return replace(self, billed=billed, charged=charged)


class ReconciledAmounts(ResponseModel):
    """The bill, and the charges for it."""

    state: ReconciledState
    billed: Exact
    charged: Exact
    difference: Exact = Field(description="`charged` minus `billed`, exactly.")
    unallocated: Exact = Field(description="The part of `charged` without an identity.")
    pending: Exact = Field(
        description="The part of `billed` on days that are not calculated yet, or not from their present bill."
    )
    by_topic: Exact | None = Field(description="The amount attributed to topics; null if topics are not attributed.")
    lines: int = Field(description="Billing lines.")
    rows: int = Field(description="Chargeback rows.")
    revision: int | None = Field(
        description="Number of the day's revision, the highest one of several days; null if none is calculated.",
        examples=[1],
    )
    policies: Literal["current", "superseded"] | None = Field(
        description="`superseded` if a day was calculated under other policies than those now configured for its "
        "product types; else `current`. Null if no day is calculated, or only by an earlier version of the service."
    )
    calculated_at: Instant | None = Field(
        description="The instant from which the day has that revision; the latest of several."
    )

    @classmethod
    def of(cls, sums: ReconciledSums, *, has_topics: bool, **own: Any) -> Self:
        """Return some sums; ``own`` are further fields of a subclass."""
        return cls(
            **own,
            state=state_of(sums),
            billed=sums.billed,
            charged=sums.charged,
            difference=difference(sums.charged, sums.billed),
            unallocated=sums.unallocated,
            pending=sums.pending,
            by_topic=sums.by_topic if has_topics else None,
            lines=sums.lines,
            rows=sums.rows,
            revision=sums.revision,
            policies=None if sums.is_superseded is None else "superseded" if sums.is_superseded else "current",
            calculated_at=sums.calculated_at,
        )


class _OfDay(ResponseModel):
    date: date
    topics: bool = Field(description="Whether its topics are attributed.")
    error: str | None
    fingerprint: str | None = Field(description="The fingerprint of the bill from which the day was calculated.")
    gathered_at: Instant | None = Field(description="When its bill was last gathered.")


class ReconciledDayItem(ReconciledAmounts, _OfDay):
    """One UTC day."""


class _OfValue(ResponseModel):
    value: str = Field(description="The month (`YYYY-MM`), product type or resource.", examples=["KAFKA_NUM_CKUS"])
    name: str | None = Field(description="The display name of a resource.", examples=["prod"])


class ReconciledBucket(ReconciledAmounts, _OfValue):
    """One month, product type or resource. Its state is that of its worst day: `differs`, `pending`, `equal`,
    `none`."""


class ReconciliationAnswer(ResponseModel):
    """The bill of some days, and the charges for it. All entries sum to `total`."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    group_by: ReconciledBy
    total: ReconciledAmounts
    days: list[ReconciledDayItem] = Field(description="Every day of the period if grouped by day, else empty.")
    buckets: list[ReconciledBucket] = Field(description="Every value if grouped by anything else, else empty.")


@dataclass(frozen=True)
class Reconciliation:
    """The items of a reconciliation, ascending by value (days and months as in ISO 8601), and their sum."""

    items: Sequence[ReconciledSums]
    total: ReconciledSums


def reconciliation(
    reader: TenantReader,
    connection: Connection,
    catalogue: PolicyCatalogue,
    days: DayRange,
    by: ReconciledBy,
    *,
    currency: str,
    has_topics: bool,
) -> ReconciliationAnswer:
    """Return the reconciliation of ``days``, see :func:`grouped_reconciliation`, with the state of each day or the name
    of each resource."""
    states = states_seen(reader, connection, days)
    found = grouped_reconciliation(reader, connection, states, catalogue, days, by)
    of_days, of_values = [], []
    if by == DAY:
        for item in found.items:
            day = date.fromisoformat(item.value)
            state = states.get(day, DayState(day))
            of_days.append(
                ReconciledDayItem.of(
                    item,
                    has_topics=has_topics,
                    date=day,
                    topics=state.topics.is_current,
                    error=state.error,
                    fingerprint=state.chargebacks.fingerprint,
                    gathered_at=state.gathered_at,
                )
            )
    else:
        known = names_of(connection, RESOURCES, {item.value for item in found.items} if by == RESOURCE_ID else ())
        for item in found.items:
            name = known[item.value].name if item.value in known else None
            of_values.append(ReconciledBucket.of(item, has_topics=has_topics, value=item.value, name=name))
    return ReconciliationAnswer(
        start_date=days.start,
        end_date=days.end - ONE_DAY,
        currency=currency,
        group_by=by,
        total=ReconciledAmounts.of(found.total, has_topics=has_topics),
        days=of_days,
        buckets=of_values,
    )


def grouped_reconciliation(
    reader: TenantReader,
    connection: Connection,
    states: Mapping[date, DayState],
    catalogue: PolicyCatalogue,
    days: DayRange,
    by: str = DAY,
) -> Reconciliation:
    """Return the bill and the charges of ``days``, grouped by :data:`ReconciledBy`. ``states`` are those of them that
    are known, ``catalogue`` has the present policies.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    sums = CollectedSums(reader, days, by_ecosystem=by == ECOSYSTEM)
    types = sums.product_types()
    covered = _covered_days(connection, states, catalogue, days, types)
    items = sums.reconciled(covered, None if by in {DAY, MONTH} else by)
    if by == MONTH:
        months: dict[str, list[ReconciledSums]] = {}
        for item in items:
            months.setdefault(item.value[: len("2026-01")], []).append(item)
        items = [summed(of_month, month) for month, of_month in months.items()]
    return Reconciliation(items, summed(items))


def state_of(sums: ReconciledSums) -> str:
    """Return the state of a sum over days, that of its worst day: differs, pending, equal, none."""
    if sums.differs:
        return DIFFERS
    if sums.waits:
        return PENDING
    return EQUAL if sums.is_calculated else NONE


def summed(items: Iterable[ReconciledSums], value: str = "") -> ReconciledSums:
    """Return the sum of some items, which differs, is pending or superseded if one of them is."""
    parts = list(items)
    known = [part.is_superseded for part in parts if part.is_superseded is not None]
    return ReconciledSums(
        value,
        billed=total(part.billed for part in parts),
        charged=total(part.charged for part in parts),
        unallocated=total(part.unallocated for part in parts),
        pending=total(part.pending for part in parts),
        by_topic=total(part.by_topic for part in parts),
        lines=sum(part.lines for part in parts),
        rows=sum(part.rows for part in parts),
        differs=any(part.differs for part in parts),
        waits=any(part.waits for part in parts),
        is_calculated=any(part.is_calculated for part in parts),
        is_superseded=any(known) if known else None,
        revision=max((part.revision for part in parts if part.revision is not None), default=None),
        calculated_at=max((part.calculated_at for part in parts if part.calculated_at is not None), default=None),
    )


def _covered_days(
    connection: Connection,
    states: Mapping[date, DayState],
    catalogue: PolicyCatalogue,
    days: DayRange,
    types: Mapping[date, frozenset[str]],
) -> list[CoveredDay]:
    """Return the state of each day of a range; ``types`` are the product types on the bill of each day."""
    recorded = {
        (revision.tracking_date, revision.revision): revision
        for revision in read_day_revisions(connection, DayDataset.CHARGEBACKS, days)
    }
    present = _PresentPolicies(catalogue)
    found = []
    for day in days:
        state = states.get(day, DayState(day))
        revision = recorded.get((day, state.chargebacks.revision))
        found.append(
            CoveredDay(
                day,
                is_gathered=state.billing_gathered,
                is_calculated=state.chargebacks.is_current,
                is_superseded=_is_superseded(state, revision, present.hash(day, types.get(day, frozenset()))),
                revision=None if revision is None else revision.revision,
                calculated_at=None if revision is None else revision.calculated_at,
            )
        )
    return found


class _PresentPolicies:
    """The policies by which days would be calculated now."""

    def __init__(self, catalogue: PolicyCatalogue) -> None:
        self._catalogue = catalogue
        self._hashes: dict[tuple[str | None, frozenset[str]], str] = {}

    def hash(self, day: date, types: frozenset[str]) -> str:
        """Return one hash for the policies of some product types on a day."""
        place = (self._catalogue.version_hash(day), types)
        if place not in self._hashes:
            self._hashes[place] = policies_hash(self._catalogue.on(day).policies_of(types))
        return self._hashes[place]


def _is_superseded(state: DayState, revision: Revision | None, present: str) -> bool | None:
    """Return whether a day was calculated under other policies than the present ones of its product types; None if it
    is not calculated from its present bill, or an earlier version calculated it."""
    if not state.chargebacks.is_current or revision is None or revision.policies_hash is None:
        return None
    return revision.policies_hash != present


def reconcile(reader: TenantReader, states: Mapping[date, DayState], days: DayRange) -> list[ReconciledDay]:
    """Return every day of a range, ascending; ``states`` are those of all known days.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    selection = Selection.of_days(days)
    billed = daily_amounts(reader, BILLING_LINES, selection)
    charged = daily_amounts(reader, CHARGEBACKS, selection)
    return [
        _day(states.get(day, DayState(day)), billed.get(day, _ZERO), charged.get(day, _ZERO), day in billed)
        for day in days
    ]


def worst_state(reader: TenantReader, connection: Connection, totals: DayTotals, days: DayRange) -> str:
    """Return the state of the worst day of a range, from the remembered sums of its days.

    Raises:
        HistoryGone: the rows of an earlier instant are no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    states = states_seen(reader, connection, days)
    billed, charged = (totals.load(reader, dataset, days) for dataset in (BILLING_LINES, CHARGEBACKS))
    found = {
        _state(states.get(day, DayState(day)), billed.get(day, _ZERO), charged.get(day, _ZERO), day in billed)
        for day in states.keys() | billed.keys() | charged.keys()
    }
    return next((state for state in _WORST_FIRST if state in found), NONE)


def states_seen(
    reader: TenantReader, connection: Connection, within: DayRange | None = None
) -> Mapping[date, DayState]:
    """Return the states of all known days, or of those of a range, as of the instant that the reader sees."""
    if reader.past_states is None:
        return {state.tracking_date: state for state in read_days(connection, within)}
    if within is None:
        return reader.past_states
    return {day: state for day, state in reader.past_states.items() if day in within}


def _state(state: DayState, billed: Decimal, charged: Decimal, has_bill: bool) -> str:
    if state.chargebacks.is_current:
        return EQUAL if billed == charged else DIFFERS
    return PENDING if state.billing_gathered or has_bill else NONE


def _day(state: DayState, billed: Decimal, charged: Decimal, has_bill: bool) -> ReconciledDay:
    return ReconciledDay(
        state.tracking_date,
        _state(state, billed, charged, has_bill),
        billed,
        charged,
        state.topics.is_current,
        state.error,
        state.chargebacks.fingerprint,
        state.gathered_at,
    )
