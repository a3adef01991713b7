"""Topics: attribute the cost of clusters to their topics, for every queued day.

Days are queued before they are calculated, and stay queued until they are attributed; days that were calculated while
topics were off are queued by a recalculation only. The newest day is processed first, so that topics are known before
days whose metrics have expired.

There is no list of topics; they are found in the metrics. A topic that is found on a day existed on it. A topic that is
missing on the newest day although others of its cluster are found is deleted as of that day; a topic that is missing
on the oldest day was created after it. A topic that is found on the first day of its cluster may have existed before. A
day without any topic of a cluster has no information about it. Days may be processed in any order, and repeatedly.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from chargeback.allocation.topics import TopicAttributor, lines_of_clusters
from chargeback.ecosystems.contract import Gatherer, MeasuredUsage
from chargeback.errors import AllocationError, StorageError
from chargeback.model.days import ONE_DAY, start_of_day
from chargeback.model.inventory import Inventory, alive_during
from chargeback.model.topics import EXISTED, TopicPlan
from chargeback.model.usage import USAGE
from chargeback.pipeline.day_task import NewRows, prepare_rows
from chargeback.pipeline.evidence import DayUsage, UsageFetcher
from chargeback.pipeline.fleet import DoneWork
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.pipeline.stage import DayStage, Derivation, DueDay, NewDay, StartedDay
from chargeback.recompute.days import billed_lines
from chargeback.recompute.rules import topic_plan
from chargeback.store.control import days as day_states
from chargeback.store.control import topics as topic_store
from chargeback.store.control.catalogue import end_days
from chargeback.store.control.day_revisions import record_removal
from chargeback.store.control.days import EVIDENCE_VERSION, METRICS, TOPIC_METRICS, DatasetState, DayDataset, DayState
from chargeback.store.control.topics import Lifetime, SeenRanges, TopicLifetimes
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE, TOPICS_TABLE, FactTables, read_day
from chargeback.store.queries.as_of import REVISED_TOPICS
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS

log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[str, Lifetime]] = {}


def queue_topics(run: RunContext) -> None:
    """Queue the days that are about to be calculated.

    A day is queued when its bill is new or has changed since it was attributed, or when the request recalculates it. A
    day that was attributed without its metrics is tried again in every run, once its chargeback has metrics. While the
    overlay is off, only days that were attributed before are queued, because their rows belong to an old bill.
    """
    plan = topic_plan(run.tenant)
    with run.store.control.read() as connection:
        known = day_states.read_days(connection)
    queued = [state.tracking_date for state in known if _is_outdated(run, state, is_on=plan is not None)]
    waiting = [state.tracking_date for state in known if plan is not None and _may_improve(state)]
    if plan is not None:
        oldest = plan.oldest_day(run.today)
        queued, waiting = ([day for day in listed if day >= oldest] for listed in (queued, waiting))
    if queued or waiting:
        with run.lease.write() as connection:
            topic_store.queue_topics(connection, queued)
            topic_store.reconsider_topics(connection, set(waiting) - set(queued))


def _is_outdated(run: RunContext, state: DayState, *, is_on: bool) -> bool:
    if not state.billing_gathered or not (is_on or state.topics.fingerprint is not None):
        return False
    if run.request.recalculate and run.covers(state.tracking_date):
        return True
    has_changed = state.topics.fingerprint != state.gathered_fingerprint
    return state.is_due and has_changed and state.topics.state is not DatasetState.DUE


def _may_improve(state: DayState) -> bool:
    """Return whether the day was attributed without all of its metrics, or with those of an earlier version."""
    is_worth_asking = not state.has_evidence(DayDataset.TOPICS) or state.evidence_version < EVIDENCE_VERSION
    return state.topics.state is DatasetState.CURRENT and is_worth_asking


def _should_attribute(state: DayState) -> bool:
    """Return whether to attribute a queued day; a calculated one only once its chargeback has metrics."""
    if not (state.topics.is_queued and state.billing_gathered and state.resources_gathered):
        return False
    return not state.topics.is_current or (state.chargebacks.is_current and METRICS not in state.incomplete)


def overlay(run: RunContext, gatherer: Gatherer) -> None:
    """Attribute queued days, and delete days past their retention."""
    plan = topic_plan(run.tenant)
    if plan is None:
        return
    oldest = plan.oldest_day(run.today)
    if run.record.gathering_error is None:  # else the cause may be a wrong clock
        _retain(run, oldest)
    with run.store.control.read() as connection:
        states = [
            state
            for state in day_states.read_days(connection)
            if state.tracking_date >= oldest and run.covers(state.tracking_date) and _should_attribute(state)
        ]
    if not states:
        return
    states.reverse()
    log.info(
        "tenant %s: Topic attribution backfill: %d queued dates, %s to %s",
        *(run.tenant.name, len(states), states[-1].tracking_date, states[0].tracking_date),
    )
    run.enter(Stage.TOPIC_OVERLAY, states[0].tracking_date, total=len(states))
    derivation = TopicDerivation(run, gatherer, plan)
    DayStage(run, derivation).process([derivation.due_day(state) for state in states])


def _retain(run: RunContext, oldest: date) -> None:
    """Delete the topic rows of days past their retention."""
    facts = run.store.facts
    kept = {day for table in (TOPICS_TABLE, TOPIC_USAGE_TABLE) for day in facts.snapshot(table).days}
    expired = sorted(day for day in kept if day < oldest)
    if not expired:
        return
    with facts.commit(run.lease, run.now) as (connection, at):
        record_removal(connection, DayDataset.TOPICS, expired, at)
        topic_store.forget_topics(connection, expired)
        end_days(connection, (TOPICS_TABLE, TOPIC_USAGE_TABLE), oldest, at)
    log.info("tenant %s: topic rows of %d days before %s were deleted", run.tenant.name, len(expired), oldest)


class TopicFetcher(UsageFetcher):
    """Prefetches topic metrics of the tenant's clusters; reads stored ones."""

    table_name = TOPIC_USAGE_TABLE

    def __init__(self, gatherer: Gatherer, clusters: Collection[str], facts: FactTables, *, workers: int) -> None:
        super().__init__(gatherer, Inventory(), facts, workers=workers)
        self._clusters = pa.array(sorted(clusters), pa.string())

    def _measure(self, day: date) -> MeasuredUsage:
        measured = self._gatherer.topics(day)
        ours = pc.is_in(measured.table["resource_id"], value_set=self._clusters)
        return MeasuredUsage(measured.table.filter(ours), measured.dropped)

    def _comparable(self, stored: pa.Table) -> pa.Table:
        return stored.filter(pc.not_equal(stored["measure"], EXISTED))


@dataclass(frozen=True, slots=True)
class AttributedDay:
    """The attributed rows of a day, written but not committed."""

    rows: NewRows
    policies_hash: str
    policy_version: str | None = None


class TopicDerivation(Derivation[AttributedDay]):
    """Attributes the cost of clusters to topics from the bill and the topic metrics, in this process."""

    stage = Stage.TOPIC_OVERLAY
    dataset = REVISED_TOPICS
    aggregates = (TOPIC_ATTRIBUTIONS,)
    not_again = "topics are not measured again"

    def __init__(self, run: RunContext, gatherer: Gatherer, plan: TopicPlan) -> None:
        self._run = run
        self._plan = plan
        with run.store.control.read() as connection:
            self._clusters = topic_store.resource_ids(connection, plan.cluster_type)
        self._discovery = TopicDiscovery(run, plan, self._clusters)
        self._attributor = TopicAttributor(plan)
        workers = run.tenant.settings.metrics_prefetch_workers
        self.fetcher = TopicFetcher(gatherer, self._clusters, run.store.facts, workers=workers)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Release the engine's memory at the end; if all days were processed, log which topics were found."""
        try:
            yield
            self._discovery.finish()
        finally:
            self._attributor.close()

    def due_day(self, state: DayState) -> DueDay:
        """Return a queued day; one that is attributed is only attributed again with new metrics."""
        return DueDay(
            state,
            is_due=not state.topics.is_current,
            is_requested=self._run.request.recalculate,
            has_evidence=self._has_evidence(state),
            is_outdated=state.topics.is_current,
        )

    def _has_evidence(self, state: DayState) -> bool:
        """Return whether measurements are stored and cover every billed cluster."""
        if not state.has_evidence(DayDataset.TOPICS):
            return False
        if state.topics.fingerprint == state.gathered_fingerprint:
            return True
        try:
            attributed = read_day(self._run.store.facts, TOPICS_TABLE, state.tracking_date)["cluster_resource_id"]
            return set(self._lines(state)["resource_id"].to_pylist()) <= set(attributed.to_pylist())
        except StorageError:
            return False

    def _lines(self, state: DayState) -> pa.Table:
        return lines_of_clusters(billed_lines(self._run.store.facts, state), self._clusters, self._plan)

    def derive(
        self, due: DueDay, usage: DayUsage, measured: pa.Table | None, why: str | None
    ) -> StartedDay[AttributedDay]:
        """Attribute the day. Without any measurement, its rows are marked as failed."""
        state, day = due.state, due.day
        evidence = {}
        if measured is not None and usage.is_fetched:
            measured = evidence[TOPIC_USAGE_TABLE] = self._discovery.complete(day, measured)
        elif not state.topics.is_measured:
            measured = None
        lines = self._lines(state)
        failed = measured is None
        rows = self._attributor.failed(day, lines) if failed else self._attributor.attribute(day, lines, measured)
        facts = self._run.store.facts
        new = prepare_rows(facts.place, self.dataset, day, rows, facts.control.owner)
        written = AttributedDay(new, self._plan.hash)
        lacks = {TOPIC_METRICS: why if lines.num_rows else None}
        work = DoneWork(written)
        return StartedDay(due, work, evidence, lacks, is_fetched=usage.is_fetched, is_measured=not failed)

    def has_to_wait(self, due: DueDay, usage: DayUsage) -> bool:
        """Count a failure of each cluster; after the last attempt, the day is attributed with what is stored."""
        run, clusters = self._run, self._lines(due.state)["resource_id"].unique().to_pylist()
        with run.lease.write() as connection:
            failures = topic_store.count_topic_failures(connection, due.day, clusters)
        limit = run.tenant.settings.topic_attribution_retry_limit
        if any(count < limit for count in failures.values()):
            run.record_error(f"topics are not attributed because their metrics are unavailable: {usage.error}", due.day)
            return True
        if failures:
            run.record_error(f"the metrics of the topics were unavailable in {limit} runs: {usage.error}", due.day)
        return False

    def record_failure(self, error: AllocationError | StorageError, *days: date) -> None:
        """Record the error; the states of the days keep that of their chargebacks."""
        for day in days:
            self._run.record_error(f"topics are not attributed: {error}", day)

    def publish(self, connection: Connection, day: NewDay[AttributedDay]) -> None:
        """Reset the failures of the day."""
        topic_store.forget_failures(connection, [day.due.day])


class TopicRegistry:
    """The known topics, and when they existed."""

    def __init__(self, lifetimes: TopicLifetimes, seen_ranges: SeenRanges) -> None:
        self._lifetimes = lifetimes
        self.seen_ranges = seen_ranges
        self.new: TopicLifetimes = {}
        self.changed: TopicLifetimes = {}

    def observe(self, day: date, seen: Mapping[str, Collection[str]]) -> None:
        """Update from one day's metrics: ``seen`` maps each cluster to the topics found on it.

        ``new`` and ``changed`` collect the topics to save.
        """
        for cluster, topics in seen.items():
            if topics:
                self._observe(day, cluster, frozenset(topics))

    def _observe(self, day: date, cluster: str, topics: frozenset[str]) -> None:
        start, end = start_of_day(day), start_of_day(day + ONE_DAY)
        first, last = self.seen_ranges.get(cluster, (day, day))
        known = self._lifetimes.setdefault(cluster, {})
        earliest = None if day <= first else start
        latest = None if day >= last else end
        for topic in topics:
            lifetime = known.get(topic)
            if lifetime is None:
                self._set(cluster, topic, Lifetime(earliest, latest), self.new)
                continue
            created = (
                earliest if lifetime.created_at is not None and lifetime.created_at > start else lifetime.created_at
            )
            deleted = latest if lifetime.deleted_at is not None and lifetime.deleted_at < end else lifetime.deleted_at
            self._change(cluster, topic, lifetime, Lifetime(created, deleted))
        if day > last or day < first:
            for topic, lifetime in list(known.items()):
                if topic in topics:
                    continue
                if day > last and alive_during(lifetime.created_at, lifetime.deleted_at, start, end):
                    self._change(cluster, topic, lifetime, Lifetime(lifetime.created_at, start))
                elif day < first and lifetime.created_at is None:
                    self._change(cluster, topic, lifetime, Lifetime(start_of_day(first), lifetime.deleted_at))
        self.seen_ranges[cluster] = (min(first, day), max(last, day))

    def _change(self, cluster: str, topic: str, before: Lifetime, after: Lifetime) -> None:
        if after != before:
            is_new = topic in self.new.get(cluster, _NOTHING)
            self._set(cluster, topic, after, self.new if is_new else self.changed)

    def _set(self, cluster: str, topic: str, lifetime: Lifetime, among: TopicLifetimes) -> None:
        self._lifetimes[cluster][topic] = lifetime
        among.setdefault(cluster, {})[topic] = lifetime

    def alive_on(self, day: date) -> dict[str, set[str]]:
        """Return the topics of each cluster that existed on that day."""
        start, end = start_of_day(day), start_of_day(day + ONE_DAY)
        return {
            cluster: {
                topic
                for topic, lifetime in lifetimes.items()
                if alive_during(lifetime.created_at, lifetime.deleted_at, start, end)
            }
            for cluster, lifetimes in self._lifetimes.items()
        }


class TopicDiscovery:
    """Discovers topics for one run: completes each day's evidence and updates the inventory."""

    def __init__(self, run: RunContext, plan: TopicPlan, clusters: Collection[str]) -> None:
        self._run = run
        self._plan = plan
        self._clusters = pa.array(sorted(clusters), pa.string())
        self._book = self._stored_book()
        self._is_stored = True
        self._touched: set[str] = set()
        self._days: list[date] = []
        self._counts: Counter[str] = Counter()

    def _stored_book(self) -> TopicRegistry:
        with self._run.store.control.read() as connection:
            lifetimes = topic_store.read_topic_lifetimes(connection, self._plan.topic_type)
            return TopicRegistry(lifetimes, topic_store.read_seen_ranges(connection))

    def complete(self, day: date, measured: pa.Table) -> pa.Table:
        """Return the evidence of a day: the measurements of the tenant's clusters, and which other topics existed.

        New, deleted and recreated topics are written to the inventory.
        """
        known = pc.is_in(measured["resource_id"], value_set=self._clusters)
        measured = measured.filter(known)
        seen = self._topics_in(measured)
        if not self._is_stored:  # the last write failed without a response: it may have been committed
            self._book = self._stored_book()
        self._book.observe(day, seen)
        self._save(day, seen)
        rows = [
            {"date": day, "measure": EXISTED, "resource_id": cluster, "subject": topic, "value": Decimal(1)}
            for cluster, topics in sorted(self._book.alive_on(day).items())
            for topic in sorted(topics - seen.get(cluster, set()))
        ]
        return pa.concat_tables([measured, pa.Table.from_pylist(rows, schema=USAGE)])

    def finish(self) -> None:
        """Store in the inventory until when the topics of the run's clusters were seen, and log what was found."""
        if self._days:
            log.info(
                "tenant %s: Topic discovery: %d days, %s to %s: %d new topics; %d were created or deleted",
                *(self._run.tenant.name, len(self._days), min(self._days), max(self._days)),
                *(self._counts["new"], self._counts["changed"]),
            )
        with self._run.lease.write() as connection:
            topic_store.touch_topics(connection, self._plan.topic_type, sorted(self._touched))

    def _topics_in(self, measured: pa.Table) -> dict[str, set[str]]:
        pairs = measured.select(["resource_id", "subject"]).group_by(["resource_id", "subject"]).aggregate([])
        seen: dict[str, set[str]] = defaultdict(set)
        for cluster, topic in zip(pairs["resource_id"].to_pylist(), pairs["subject"].to_pylist(), strict=True):
            if not self._plan.excludes(topic):
                seen[cluster].add(topic)
        return seen

    def _save(self, day: date, seen: Mapping[str, Collection[str]]) -> None:
        book = self._book
        new, changed = (sum(map(len, lifetimes.values())) for lifetimes in (book.new, book.changed))
        self._days.append(day)
        self._counts += Counter(new=new, changed=changed)
        log.debug(
            "tenant %s: Topic discovery: %s has %d topics of %d clusters, %d of them new; %d were created or deleted",
            *(self._run.tenant.name, day, sum(map(len, seen.values())), len(seen), new, changed),
        )
        self._is_stored = False
        with self._run.lease.write() as connection:
            topic_store.save_topic_lifetimes(
                connection, self._plan.topic_type, book.new, book.changed, seen_at=start_of_day(day + ONE_DAY)
            )
            topic_store.save_seen_ranges(connection, {cluster: book.seen_ranges[cluster] for cluster in seen})
        self._is_stored = True
        book.new, book.changed = {}, {}
        self._touched |= seen.keys()
