"""The topic overlay: attributes the cost of clusters to their topics, for every queued day.

Days are queued before they are calculated, and stay queued until they are attributed; days that were calculated while
the overlay was off are queued by a recalculation only. The newest day is processed first, so that topics are known
before days whose metrics have expired.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from chargeback.allocation.topics import TopicAttributor, lines_of_clusters
from chargeback.ecosystems.contract import Gatherer, MeasuredUsage
from chargeback.errors import AllocationError, LeaseLost, StorageError
from chargeback.logs import log_context
from chargeback.model.inventory import Inventory
from chargeback.model.topics import EXISTED, TopicPlan
from chargeback.pipeline.batches import Batch
from chargeback.pipeline.discovery import TopicDiscovery
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, UsageRequest
from chargeback.pipeline.new_rows import prepare_rows
from chargeback.pipeline.partials import PartialsWriter
from chargeback.pipeline.revise import DayReviser, RevisedDay
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.recompute.days import billed_lines
from chargeback.recompute.rules import topic_plan
from chargeback.store.control import days as day_states
from chargeback.store.control import topics as topic_store
from chargeback.store.control.day_revisions import TOPIC_REVISIONS, record_removal
from chargeback.store.control.days import EVIDENCE_VERSION, METRICS, TOPIC_METRICS, DayState
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE, TOPICS_TABLE, FactTables, read_day
from chargeback.store.queries.as_of import REVISED_TOPICS
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS

log = logging.getLogger(__name__)


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
    if not state.billing_gathered or not (is_on or state.topic_fingerprint is not None):
        return False
    if run.request.recalculate and run.covers(state.tracking_date):
        return True
    has_changed = state.topic_fingerprint != state.gathered_fingerprint
    return state.is_due and has_changed and not (state.topic_due and not state.topic_attribution_calculated)


def _may_improve(state: DayState) -> bool:
    """Return whether the day was attributed without all of its metrics, or with those of an earlier version."""
    is_without = not state.topic_overlay_gathered or TOPIC_METRICS in state.incomplete
    is_worth_asking = is_without or state.evidence_version < EVIDENCE_VERSION
    return state.topic_attribution_calculated and is_worth_asking and not state.topic_due


def _should_attribute(state: DayState) -> bool:
    """Return whether to attribute a queued day; a calculated one only once its chargeback has metrics."""
    if not (state.topic_due and state.billing_gathered and state.resources_gathered):
        return False
    return not state.topic_attribution_calculated or (state.chargeback_calculated and METRICS not in state.incomplete)


def overlay(run: RunContext, gatherer: Gatherer) -> None:
    """Attribute queued days, and delete days past their retention."""
    plan = topic_plan(run.tenant)
    if plan is None:
        return
    oldest = plan.oldest_day(run.today)
    if run.record.gathering_error is None:  # else the clock may be what is wrong
        _retain(run, oldest)
    with run.store.control.read() as connection:
        due = [
            state
            for state in day_states.read_days(connection)
            if state.tracking_date >= oldest and run.covers(state.tracking_date) and _should_attribute(state)
        ]
    if not due:
        return
    due.reverse()
    name = run.tenant.name
    log.info(
        "tenant %s: Topic attribution backfill: %d queued dates, %s to %s",
        *(name, len(due), due[-1].tracking_date, due[0].tracking_date),
    )
    run.enter(Stage.TOPIC_OVERLAY, due[0].tracking_date, total=len(due))
    stage = _Overlay(run, gatherer, plan)
    wanted = [stage.wanted(state) for state in due]
    try:
        with stage.fetcher.fetching(wanted) as measured, stage.batch as batch:
            for number, state in enumerate(due, start=1):
                run.check()
                if batch.seconds_left is not None and not measured.wait(batch.seconds_left):
                    batch.commit()
                usage = next(measured)
                with log_context(date=state.tracking_date), run.catch_day_errors(state.tracking_date):
                    stage.attempt(state, usage)
                run.enter(Stage.TOPIC_OVERLAY, state.tracking_date, number, len(due))
        stage.finish()
    finally:
        stage.close()


def _retain(run: RunContext, oldest: date) -> None:
    """Delete the topic rows of days past their retention."""
    facts = run.store.facts
    kept = {day for table in (TOPICS_TABLE, TOPIC_USAGE_TABLE) for day in facts.snapshot(table).days}
    expired = sorted(day for day in kept if day < oldest)
    if not expired:
        return
    with run.lease.write() as connection:
        record_removal(connection, TOPIC_REVISIONS, expired, run.now())
        topic_store.forget_topics(connection, expired)
    for table in (TOPICS_TABLE, TOPIC_USAGE_TABLE):
        facts.delete_before(table, oldest, epoch=run.lease.epoch)
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
class _NewDay:
    """An attributed day that is ready to be committed: whether its measurements are stored, and why its topic metrics
    are missing, if they are."""

    state: DayState
    revised: RevisedDay
    rows: int
    is_gathered: bool
    lacks: str | None


class _Overlay:
    """The overlay stage of one run. Its days are committed in the batches of ``batch``."""

    def __init__(self, run: RunContext, gatherer: Gatherer, plan: TopicPlan) -> None:
        self._run = run
        self._plan = plan
        with run.store.control.read() as connection:
            self._clusters = topic_store.resource_ids(connection, plan.cluster_type)
        self._discovery = TopicDiscovery(run, plan, self._clusters)
        self._attributor = TopicAttributor(plan)
        self._partials = PartialsWriter(run.store.facts, TOPIC_ATTRIBUTIONS)
        self._reviser = DayReviser(run, REVISED_TOPICS)
        self.batch = Batch(self._commit)
        workers = run.tenant.settings.metrics_prefetch_workers
        self.fetcher = TopicFetcher(gatherer, self._clusters, run.store.facts, workers=workers)

    def finish(self) -> None:
        self._discovery.finish()

    def close(self) -> None:
        self._attributor.close()
        self._partials.close()

    def wanted(self, state: DayState) -> UsageRequest:
        """Return the usage request of a day; an attributed day is only attributed again with new metrics."""
        request = self._run.request
        is_enough = self._has_evidence(state) and not state.topic_attribution_calculated
        return UsageRequest(
            state.tracking_date, is_enough and not request.recalculate, request.recalculate and request.accept_less
        )

    def _has_evidence(self, state: DayState) -> bool:
        """Return whether measurements are stored and cover every billed cluster."""
        if not state.topic_overlay_gathered or TOPIC_METRICS in state.incomplete:
            return False
        if state.topic_fingerprint == state.gathered_fingerprint:
            return True
        try:
            attributed = read_day(self._run.store.facts, TOPICS_TABLE, state.tracking_date)["cluster_resource_id"]
            return set(self._lines(state)["resource_id"].to_pylist()) <= set(attributed.to_pylist())
        except StorageError:
            return False

    def attempt(self, state: DayState, usage: DayUsage) -> None:
        """Attribute one day, or record why it cannot be."""
        try:
            if usage.table is None:
                self._without_metrics(state, usage)
                return
            if usage.poorer and self._run.request.recalculate:
                what = ", ".join(usage.poorer)
                self._run.record_error(
                    f"the metrics source has less {what} than before; the stored measurements are kept",
                    state.tracking_date,
                )
            self._with_metrics(state, usage, usage.table)
        except (AllocationError, StorageError) as error:
            self._record_error(error, state.tracking_date)

    def _record_error(self, error: AllocationError | StorageError, *days: date) -> None:
        """Record why days are not attributed; raise what concerns the run."""
        if isinstance(error, LeaseLost) or error.retryable:
            raise error
        for day in days:
            self._run.record_error(f"topics are not attributed: {error}", day)

    def _lines(self, state: DayState) -> pa.Table:
        return lines_of_clusters(billed_lines(self._run.store.facts, state), self._clusters, self._plan)

    def _with_metrics(self, state: DayState, usage: DayUsage, measured: pa.Table) -> None:
        day = state.tracking_date
        evidence = self._discovery.complete(day, measured) if usage.is_fetched else measured
        rows = self._attributor.attribute(day, self._lines(state), evidence)
        self._write(state, rows, evidence if usage.is_fetched else None, gathered=True, lacks=None)

    def _without_metrics(self, state: DayState, usage: DayUsage) -> None:
        """Handle unavailable topic metrics: use the stored measurements if they are sufficient. Otherwise wait for some
        runs, then attribute with what is stored, or write rows marked as failed."""
        run, day = self._run, state.tracking_date
        if state.topic_attribution_calculated:
            return
        stored = usage.stored if state.topic_overlay_gathered else None
        lines = self._lines(state)
        if stored is not None and self._has_evidence(state):
            if run.request.recalculate:
                run.record_error(f"topics are not measured again: {usage.error}; the stored measurements are kept", day)
            self._write(state, self._attributor.attribute(day, lines, stored), None, gathered=True, lacks=None)
            return
        with run.lease.write() as connection:
            failures = topic_store.count_topic_failures(connection, day, lines["resource_id"].unique().to_pylist())
        limit = run.tenant.settings.topic_attribution_retry_limit
        if any(count < limit for count in failures.values()):
            run.record_error(f"topics are not attributed because their metrics are unavailable: {usage.error}", day)
            return
        if failures:
            run.record_error(f"the metrics of the topics were unavailable in {limit} runs: {usage.error}", day)
        why = str(usage.error) if failures else None
        if stored is not None:
            self._write(state, self._attributor.attribute(day, lines, stored), None, gathered=True, lacks=why)
        else:
            self._write(state, self._attributor.failed(day, lines), None, gathered=False, lacks=why)

    def _write(
        self, state: DayState, rows: pa.Table, evidence: pa.Table | None, *, gathered: bool, lacks: str | None
    ) -> None:
        """Write the rows of a day, and new ``evidence``, to be committed with the batch; ``lacks`` says why its topic
        metrics are missing, if they are."""
        revised = self._reviser.prepare(
            state,
            prepare_rows(self._run.store.facts, REVISED_TOPICS, state.tracking_date, rows),
            {} if evidence is None else {TOPIC_USAGE_TABLE: evidence},
            policies_hash=self._plan.hash,
            is_requested=self._run.request.recalculate,
        )
        self.batch.add(_NewDay(state, revised, rows.num_rows, gathered, lacks), rows.num_rows)

    def _commit(self, days: Sequence[_NewDay]) -> None:
        """Commit the days of a batch; an error that will not pass is one of each of them."""
        dates = [each.state.tracking_date for each in days]
        try:
            with self._run.catch_day_errors(*dates):
                self._reviser.commit([each.revised for each in days])
                with self._run.lease.write() as connection:
                    for each in days:
                        self._record(connection, each)
                for each in days:
                    if each.revised.is_new:
                        self._partials.day_written(each.state.tracking_date)
        except StorageError as error:
            self._record_error(error, *dates)

    def _record(self, connection: Connection, new: _NewDay) -> None:
        day = new.state.tracking_date
        self._reviser.confirm(connection, new.revised)
        topic_store.finish_topics(
            connection,
            day,
            fingerprint=new.state.gathered_fingerprint,
            rows=new.rows,
            revision=new.revised.revision.revision,
            gathered=new.is_gathered,
        )
        day_states.mark_incomplete(connection, day, {TOPIC_METRICS: new.lacks})
