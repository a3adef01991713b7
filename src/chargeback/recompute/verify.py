"""Verification: compares every day's bill with its chargebacks, and each cluster line with its topics, to the last
digit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from chargeback.allocation.columns import WIDE, total_of
from chargeback.allocation.topics import lines_of_clusters
from chargeback.errors import DamagedFacts
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import exact_sum
from chargeback.model.topics import TopicPlan
from chargeback.store.control.catalogue import every_file, files_of_day
from chargeback.store.control.days import DayState, read_days
from chargeback.store.control.topics import resource_ids
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import Footer, check_content, read_file, read_footer
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    SCHEMAS,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    FactTables,
    published_path,
    read_day,
)
from chargeback.store.facts.upkeep import LEFTOVER_AGE, UPKEEP_EVERY, is_fact_file
from chargeback.store.tenant import TenantStore

CALCULATED = "calculated"
PENDING = "pending"
PAST_RETENTION = "past retention"
ATTRIBUTED = "attributed"
NOT_ATTRIBUTED = "not attributed"
DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class DayCheck:
    """One day: what was billed, what was charged, and whether the day is ``calculated``, ``pending``,
    ``past retention`` or ``damaged``; ``damage`` names lost files of the day and its evidence, ``incomplete`` the
    missing evidence."""

    day: date
    billing: Decimal
    chargebacks: Decimal
    state: str
    damage: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()

    @property
    def difference(self) -> Decimal:
        """Return what was charged minus the bill; anything but zero in a calculated day is an error."""
        return exact_sum([self.chargebacks, self.billing.copy_negate()])

    @property
    def is_wrong(self) -> bool:
        """Return whether the day is damaged, or calculated with a difference."""
        return self.state == DAMAGED or (self.state == CALCULATED and self.difference != 0)


def verify(store: TenantStore, oldest: date | None = None, within: DayRange | None = None) -> Iterator[DayCheck]:
    """Return the check of every gathered day, or of those of a range, ascending; days before ``oldest`` are past
    retention.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    with store.control.read() as connection:
        states = [state for state in read_days(connection, within) if state.billing_gathered]
    for state in states:
        yield _check_day(store.facts, state, oldest)


def _check_day(facts: FactTables, state: DayState, oldest: date | None) -> DayCheck:
    day = state.tracking_date
    tables = _DayTables(facts, day)
    billing = tables.total(BILLING_TABLE, "total_cost")
    chargebacks = tables.total(CHARGEBACKS_TABLE, "amount")
    tables.check_files(but=(BILLING_TABLE, CHARGEBACKS_TABLE))
    found = _state(state, oldest, tables.damage)
    return DayCheck(day, billing, chargebacks, found, tuple(tables.damage), tuple(state.shortcomings))


def _state(state: DayState, oldest: date | None, damage: Sequence[str]) -> str:
    if oldest is not None and state.tracking_date < oldest:
        return PAST_RETENTION
    if damage:
        return DAMAGED
    return CALCULATED if state.chargebacks.is_current else PENDING


def verify_files(store: TenantStore, now: datetime) -> Iterator[str]:
    """Yield what is wrong with the files of a tenant: one that the catalogue names is missing, is not what was written,
    or says that it belongs elsewhere; or one that lies there was never named, or no longer is, for longer than upkeep
    leaves it.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    facts = store.facts
    with translate_file_errors("facts"):
        there = {file.path: file.written_at for file in facts.place.files()}
    # Read after the files were listed: what a run writes meanwhile is young.
    with store.control.read() as connection:
        named = every_file(connection)
    for each in named:
        if each.gone_at is None:
            file = facts.day_file(each)
            try:
                with translate_file_errors(each.table):
                    check_content(file)
                    found = read_footer(file) if each.table in SCHEMAS else None
            except DamagedFacts as error:
                yield error.message
                continue
            expected = Footer(store.owner, each.table, each.day, each.schema_version)
            if found is not None and found != expected:
                yield f"the file {each.path} is of {found}, and the catalogue has it as {expected}"
    oldest = now - LEFTOVER_AGE - UPKEEP_EVERY
    kept = {
        path
        for each in named
        if each.gone_at is None or each.gone_at > oldest
        for path in (each.path, published_path(each))
    }
    for path, written_at in sorted(there.items()):
        if is_fact_file(path) and path not in kept and written_at < oldest:
            yield f"nothing names the file {path}, and upkeep has not removed it"


class _DayTables:
    """The files of one day, and which of them are damaged."""

    def __init__(self, facts: FactTables, day: date) -> None:
        self._facts = facts
        self._days = DayRange(day, day + ONE_DAY)
        self.damage: list[str] = []

    def check_files(self, *, of: Sequence[str] = tuple(SCHEMAS), but: Sequence[str] = ()) -> None:
        """Check whether the files of the day are as they were written: the present ones of some tables and, unless
        ``but`` leaves the table out, those that it had earlier."""
        with self._facts.control.read() as connection:
            named = files_of_day(connection, self._days.start)
        for each in named:
            is_asked_for = each.table in of and (each.until is not None or each.table not in but)
            if is_asked_for and each.gone_at is None:
                with translate_file_errors(each.table), self._record_damage():
                    check_content(self._facts.day_file(each))

    def rows(self, name: str) -> pa.Table:
        """Return the table's rows of the day; an empty table if they are damaged."""
        parts = [SCHEMAS[name].empty_table()]
        with self._record_damage():
            parts.append(read_day(self._facts, name, self._days.start))
        return pa.concat_tables(parts)

    def columns(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Return some columns of the table's rows of the day, without the lost ones."""
        schema = pa.schema([SCHEMAS[name].field(column) for column in columns])
        parts = [schema.empty_table()]
        for file in self._facts.snapshot(name).within(self._days):
            with translate_file_errors(name), self._record_damage():
                parts.append(read_file(file, columns).cast(schema))
        return pa.concat_tables(parts)

    def total(self, name: str, column: str) -> Decimal:
        """Return the exact sum of a column."""
        return total_of(self.columns(name, [column])[column])

    @contextmanager
    def _record_damage(self) -> Iterator[None]:
        try:
            yield
        except DamagedFacts as error:
            self.damage.append(error.message)


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """The topics of one day.

    Attributes:
        state: ``attributed``; ``pending``; ``past retention``; ``damaged``; or ``not attributed``, of a day from before
            the overlay was on, which a recalculation attributes.
        billed: the cost of all lines of clusters.
        attributed: the sum of the topic rows.
        left_out: the cost of the lines that have no topic rows: of types that are disabled or not attributed at all,
            or skipped for lack of measures.
        wrong_lines: how many lines have rows that do not sum to their cost, or are not on the bill.
        lost_rows: how many rows fewer there are than were written.
        damage: the files of topics and of their evidence that are lost.
    """

    day: date
    state: str
    billed: Decimal
    attributed: Decimal
    left_out: Decimal
    wrong_lines: int = 0
    lost_rows: int = 0
    damage: tuple[str, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Return whether the day is damaged, or attributed with a difference."""
        differs = self.wrong_lines != 0 or self.lost_rows != 0
        return self.state == DAMAGED or (self.state == ATTRIBUTED and differs)


def verify_topics(store: TenantStore, plan: TopicPlan, today: date) -> Iterator[TopicCheck]:
    """Return the topic check of every gathered day, ascending.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    oldest = plan.oldest_day(today)
    with store.control.read() as connection:
        states = [state for state in read_days(connection) if state.billing_gathered]
        clusters = resource_ids(connection, plan.cluster_type)
    for state in states:
        tables = _DayTables(store.facts, state.tracking_date)
        lines = lines_of_clusters(tables.rows(BILLING_TABLE), clusters)
        rows = tables.columns(TOPICS_TABLE, ["line_id", "amount"])
        tables.check_files(of=(TOPIC_USAGE_TABLE,))
        yield _check_topics(state, lines, rows, oldest, tuple(tables.damage))


def _check_topics(
    state: DayState, lines: pa.Table, rows: pa.Table, oldest: date, damage: tuple[str, ...]
) -> TopicCheck:
    wide = rows.set_column(1, "amount", rows["amount"].cast(WIDE))
    sums = wide.group_by("line_id").aggregate([("amount", "sum")])
    attributed = dict(zip(sums["line_id"].to_pylist(), sums["amount_sum"].to_pylist(), strict=True))
    costs = dict(zip(lines["line_id"].to_pylist(), lines["total_cost"].to_pylist(), strict=True))
    standing = _topic_state(state, oldest)
    return TopicCheck(
        state.tracking_date,
        DAMAGED if damage and standing in {ATTRIBUTED, PENDING} else standing,
        exact_sum(costs.values()),
        exact_sum(attributed.values()),
        exact_sum(cost for line, cost in costs.items() if line not in attributed),
        sum(costs.get(line) != amount for line, amount in attributed.items()),
        state.topics.rows - rows.num_rows,
        damage,
    )


def _topic_state(state: DayState, oldest: date) -> str:
    if state.topics.is_current and state.topics.fingerprint == state.gathered_fingerprint:
        return ATTRIBUTED
    if state.tracking_date < oldest:
        return PAST_RETENTION
    return PENDING if state.topics.is_queued or state.topics.fingerprint is not None else NOT_ATTRIBUTED
