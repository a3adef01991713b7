"""Verify: every day's bill against its chargebacks, and each cluster line against its topics, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from chargeback.allocation.topics import lines_of_clusters
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import total
from chargeback.model.topics import TOPIC_ATTRIBUTIONS, TopicPlan
from chargeback.pipeline.overlay import oldest_day
from chargeback.store.control.days import DayState, read_days
from chargeback.store.control.topics import resource_ids
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE, FactTables, read_day
from chargeback.store.tenant import TenantStore

CALCULATED = "calculated"
PENDING = "pending"
PAST_RETENTION = "past retention"
ATTRIBUTED = "attributed"
NOT_ATTRIBUTED = "not attributed"


@dataclass(frozen=True, slots=True)
class DayCheck:
    """One day: what was billed, what was charged, and whether the day is ``calculated``, ``pending`` or
    ``past retention``."""

    day: date
    billing: Decimal
    chargebacks: Decimal
    state: str

    @property
    def difference(self) -> Decimal:
        """What was charged beyond the bill; anything but zero in a calculated day is a fault."""
        return total([self.chargebacks, self.billing.copy_negate()])

    @property
    def is_wrong(self) -> bool:
        """Whether the day is calculated and does not add up."""
        return self.state == CALCULATED and self.difference != 0


def verify(store: TenantStore, oldest: date | None = None) -> Iterator[DayCheck]:
    """Every day that has been gathered, ascending; those before ``oldest`` are past retention.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    with store.control.read() as connection:
        states = [state for state in read_days(connection) if state.billing_gathered]
    for state in states:
        day = state.tracking_date
        yield DayCheck(
            day,
            _sum(store.facts, BILLING_TABLE, "total_cost", day),
            _sum(store.facts, CHARGEBACKS_TABLE, "amount", day),
            _state(state, oldest),
        )


def _state(state: DayState, oldest: date | None) -> str:
    if oldest is not None and state.tracking_date < oldest:
        return PAST_RETENTION
    return CALCULATED if state.chargeback_calculated else PENDING


def _sum(facts: FactTables, table: str, column: str, day: date) -> Decimal:
    files = facts.snapshot(table).within(DayRange(day, day + ONE_DAY))
    sums = [pc.sum(pq.read_table(file.path, columns=[column], partitioning=None)[column]).as_py() for file in files]
    return total(sums)


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """The topics of one day.

    Attributes:
        state: ``attributed``; ``pending``; ``past retention``; or ``not attributed``, of a day from before the overlay
            was on, which a recalculation attributes.
        billed: the cost of all lines of clusters.
        attributed: the sum of the topic rows.
        left_out: the cost of the lines that have no topic rows: of types that are disabled or not attributed at all,
            or skipped for lack of measures.
        wrong_lines: how many lines have rows that do not sum to their cost, or are not on the bill.
        lost_rows: how many rows fewer there are than were written.
    """

    day: date
    state: str
    billed: Decimal
    attributed: Decimal
    left_out: Decimal
    wrong_lines: int = 0
    lost_rows: int = 0

    @property
    def is_wrong(self) -> bool:
        """Whether the day is attributed and does not add up."""
        return self.state == ATTRIBUTED and (self.wrong_lines != 0 or self.lost_rows != 0)


def verify_topics(store: TenantStore, plan: TopicPlan, today: date) -> Iterator[TopicCheck]:
    """The topics of every day that has been gathered, ascending.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    oldest = oldest_day(today, plan)
    with store.control.read() as connection:
        states = [state for state in read_days(connection) if state.billing_gathered]
        clusters = resource_ids(connection, plan.cluster_type)
    for state in states:
        lines = lines_of_clusters(read_day(store.facts, BILLING_TABLE, state.tracking_date), clusters)
        yield _check_topics(state, lines, _topic_rows(store.facts, state.tracking_date), oldest)


def _check_topics(state: DayState, lines: pa.Table, rows: pa.Table, oldest: date) -> TopicCheck:
    sums = rows.group_by("line_id").aggregate([("amount", "sum")])
    attributed = dict(zip(sums["line_id"].to_pylist(), sums["amount_sum"].to_pylist(), strict=True))
    costs = dict(zip(lines["line_id"].to_pylist(), lines["total_cost"].to_pylist(), strict=True))
    return TopicCheck(
        state.tracking_date,
        _topic_state(state, oldest),
        total(costs.values()),
        total(attributed.values()),
        total(cost for line, cost in costs.items() if line not in attributed),
        sum(costs.get(line) != amount for line, amount in attributed.items()),
        state.topic_rows - rows.num_rows,
    )


def _topic_state(state: DayState, oldest: date) -> str:
    if state.topic_attribution_calculated and state.topic_fingerprint == state.gathered_fingerprint:
        return ATTRIBUTED
    if state.tracking_date < oldest:
        return PAST_RETENTION
    return PENDING if state.topic_due or state.topic_fingerprint is not None else NOT_ATTRIBUTED


def _topic_rows(facts: FactTables, day: date) -> pa.Table:
    """The columns of a day's topic rows that are needed here."""
    schema = pa.schema([TOPIC_ATTRIBUTIONS.field(name) for name in ("line_id", "amount")])
    files = facts.snapshot(TOPICS_TABLE).within(DayRange(day, day + ONE_DAY))
    stored = [pq.read_table(file.path, columns=schema.names, partitioning=None).cast(schema) for file in files]
    return pa.concat_tables([schema.empty_table(), *stored])
