"""The topic overlay: of every queued day, the clusters' cost is attributed to their topics.

Days are queued before they are calculated, and stay queued until they are attributed; days that were calculated while
the overlay was off are queued by a recalculation only. The newest day comes first, so that topics are known by the
time days come that the metrics have forgotten.
"""

from __future__ import annotations

import logging
from datetime import date, timedelta
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.topics import TopicAttributor, lines_of_clusters
from chargeback.config import Tenant
from chargeback.config.configuration import TopicStatus
from chargeback.ecosystems.contract import Gatherer, TopicEcosystem
from chargeback.errors import AllocationError, LeaseLost, SourceError, SourceUnavailable, StorageError
from chargeback.logs import log_context
from chargeback.model.inventory import Inventory
from chargeback.model.topics import EXISTED, TopicPlan
from chargeback.pipeline.discovery import TopicDiscovery
from chargeback.pipeline.events import Stage
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, kept, without_loss
from chargeback.pipeline.job import Job
from chargeback.store.control import days as states
from chargeback.store.control import topics as shelf
from chargeback.store.control.days import DayState
from chargeback.store.facts.tables import BILLING_TABLE, TOPIC_USAGE_TABLE, TOPICS_TABLE, read_day

log = logging.getLogger(__name__)


def topic_plan(tenant: Tenant) -> TopicPlan | None:
    """What the overlay does for a tenant; none where it is disabled or its settings are wrong."""
    ecosystem = tenant.ecosystem
    if tenant.topic_status is not TopicStatus.ENABLED or not isinstance(ecosystem, TopicEcosystem):
        return None
    return ecosystem.topic_plan(tenant.plugin_settings)


def oldest_day(today: date, plan: TopicPlan) -> date:
    """The oldest UTC day of which topic rows are kept."""
    return today - timedelta(days=plan.retention_days)


def queue_topics(job: Job) -> None:
    """Queue the days that are about to be calculated, before they are.

    A day is queued when its bill is new or has changed since it was attributed, or when the request recalculates it. A
    day that could not be attributed is looked at again once its chargeback has metrics. While the overlay is off, only
    days that it has attributed before are queued: their rows are of an old bill.
    """
    plan = topic_plan(job.tenant)
    with job.store.control.read() as connection:
        known = states.read_days(connection)
    queued = [state.tracking_date for state in known if _is_outdated(job, state, is_on=plan is not None)]
    waiting = [state.tracking_date for state in known if plan is not None and _may_get_better(state)]
    if plan is not None:
        oldest = oldest_day(job.today, plan)
        queued, waiting = ([day for day in listed if day >= oldest] for listed in (queued, waiting))
    if queued or waiting:
        with job.lease.write() as connection:
            shelf.queue_topics(connection, queued)
            shelf.reconsider_topics(connection, set(waiting) - set(queued))


def _is_outdated(job: Job, state: DayState, *, is_on: bool) -> bool:
    if not state.billing_gathered or not (is_on or state.topic_fingerprint is not None):
        return False
    if job.request.recalculate and job.wants(state.tracking_date):
        return True
    has_changed = state.topic_fingerprint != state.gathered_fingerprint
    return state.is_due and has_changed and not (state.topic_due and not state.topic_attribution_calculated)


def _may_get_better(state: DayState) -> bool:
    """Whether the day has sentinel rows while its chargeback, too, is without metrics."""
    is_failed = state.topic_attribution_calculated and not state.topic_overlay_gathered
    return is_failed and not state.topic_due and (state.metrics_unavailable or state.is_due)


def _is_worth_doing(state: DayState) -> bool:
    """A queued day; one that counts as calculated only once its chargeback has metrics."""
    if not (state.topic_due and state.billing_gathered and state.resources_gathered):
        return False
    return not state.topic_attribution_calculated or (state.chargeback_calculated and not state.metrics_unavailable)


def overlay(job: Job, gatherer: Gatherer) -> None:
    """Attribute what is queued, and remove what is past its retention."""
    plan = topic_plan(job.tenant)
    if plan is None:
        return
    oldest = oldest_day(job.today, plan)
    if job.tally.gathering_error is None:  # else the clock may be what is wrong
        _retain(job, oldest)
    with job.store.control.read() as connection:
        due = [
            state
            for state in states.read_days(connection)
            if state.tracking_date >= oldest and job.wants(state.tracking_date) and _is_worth_doing(state)
        ]
    if not due:
        return
    due.reverse()
    name = job.tenant.name
    log.info(
        "tenant %s: Topic attribution backfill: %d queued dates, %s to %s",
        *(name, len(due), due[-1].tracking_date, due[0].tracking_date),
    )
    job.enter(Stage.TOPIC_OVERLAY, due[0].tracking_date, total=len(due))
    stage = _Overlay(job, gatherer, plan)
    wanted = [(state.tracking_date, state.topic_overlay_gathered and not job.request.recalculate) for state in due]
    try:
        with stage.fetcher.fetching(wanted) as measured:
            for number, (state, usage) in enumerate(zip(due, measured, strict=True), start=1):
                job.check()
                with log_context(date=state.tracking_date):
                    stage.attempt(state, usage)
                job.enter(Stage.TOPIC_OVERLAY, state.tracking_date, number, len(due))
        stage.finish()
    finally:
        stage.close()


def _retain(job: Job, oldest: date) -> None:
    """Empty the days of which no topic rows are kept any more."""
    facts = job.store.facts
    kept = {day for table in (TOPICS_TABLE, TOPIC_USAGE_TABLE) for day in facts.snapshot(table).days}
    expired = sorted(day for day in kept if day < oldest)
    if not expired:
        return
    with job.lease.write() as connection:
        shelf.forget_topics(connection, expired)
    for table in (TOPICS_TABLE, TOPIC_USAGE_TABLE):
        facts.delete_before(table, oldest, epoch=job.lease.epoch)
    log.info("tenant %s: topic rows of %d days before %s are removed", job.tenant.name, len(expired), oldest)


class TopicFetcher(UsageFetcher):
    """Fetches topic measures ahead; kept ones are read."""

    def _day(self, day: date, use_stored: bool, abandoned: Event) -> DayUsage:
        stored = kept(self._facts, TOPIC_USAGE_TABLE, day)
        if use_stored and stored is not None:
            return DayUsage(stored, is_new=False)
        if self._unreachable is not None or abandoned.is_set():
            return DayUsage(None, is_new=False, error=self._unreachable)
        try:
            measured = self._gatherer.topics(day)
        except SourceError as error:
            if isinstance(error, SourceUnavailable):
                self._unreachable = error
            return DayUsage(None, is_new=False, error=error)
        if measured.dropped:
            log.warning("%s: %d topic samples were NaN, infinite or negative and do not count", day, measured.dropped)
        if stored is None:
            return DayUsage(measured.table, is_new=True)
        before = stored.filter(pc.not_equal(stored["measure"], EXISTED))
        return DayUsage(without_loss(day, before, measured.table), is_new=True)


class _Overlay:
    """The overlay stage of one run."""

    def __init__(self, job: Job, gatherer: Gatherer, plan: TopicPlan) -> None:
        self._job = job
        self._plan = plan
        with job.store.control.read() as connection:
            self._clusters = shelf.resource_ids(connection, plan.cluster_type)
        self._discovery = TopicDiscovery(job, plan, self._clusters)
        self._attributor = TopicAttributor(plan)
        workers = job.tenant.settings.metrics_prefetch_workers
        self.fetcher = TopicFetcher(gatherer, Inventory(), job.store.facts, workers=workers)

    def finish(self) -> None:
        self._discovery.finish()

    def close(self) -> None:
        self._attributor.close()

    def attempt(self, state: DayState, usage: DayUsage) -> None:
        """Attribute one day, or record why it cannot be."""
        try:
            if usage.table is None:
                self._without_metrics(state, usage.error)
            else:
                self._with_metrics(state, usage.table, is_new=usage.is_new)
        except LeaseLost:
            raise
        except (AllocationError, StorageError) as error:
            if not isinstance(error, AllocationError) and error.retryable:
                raise
            self._job.trouble(f"{state.tracking_date}: topics are not attributed: {error}")

    def _lines(self, state: DayState) -> pa.Table:
        billing = read_day(self._job.store.facts, BILLING_TABLE, state.tracking_date)
        if billing.num_rows != state.billing_lines:
            raise StorageError(f"{state.billing_lines} billing lines were stored, {billing.num_rows} are there")
        return lines_of_clusters(billing, self._clusters, self._plan)

    def _with_metrics(self, state: DayState, measured: pa.Table, *, is_new: bool) -> None:
        job, day = self._job, state.tracking_date
        evidence = self._discovery.complete(day, measured) if is_new else measured
        rows = self._attributor.attribute(day, self._lines(state), evidence)
        self._clear(state)
        if is_new:
            job.store.facts.replace_day(TOPIC_USAGE_TABLE, day, evidence, epoch=job.lease.epoch)
        self._write(state, rows, gathered=True)

    def _without_metrics(self, state: DayState, error: SourceError | None) -> None:
        """One more run without topic metrics. In the last one the day goes on: with what is kept from an earlier
        time, else with rows that say that it failed."""
        job, day = self._job, state.tracking_date
        lines = self._lines(state)
        with job.lease.write() as connection:
            failures = shelf.count_topic_failures(connection, day, lines["resource_id"].unique().to_pylist())
        limit = job.tenant.settings.topic_attribution_retry_limit
        if any(count < limit for count in failures.values()):
            job.trouble(f"{day}: topics are not attributed, their metrics are unavailable: {error}")
            return
        if failures:
            job.trouble(f"{day}: the metrics of its topics were unavailable in {limit} runs: {error}")
        self._clear(state)
        stored = kept(job.store.facts, TOPIC_USAGE_TABLE, day) if state.topic_overlay_gathered else None
        if stored is not None:
            self._write(state, self._attributor.attribute(day, lines, stored), gathered=True)
        else:
            self._write(state, self._attributor.failed(day, lines), gathered=False)

    def _clear(self, state: DayState) -> None:
        if state.topic_attribution_calculated:
            with self._job.lease.write() as connection:
                states.save_day(connection, state.tracking_date, topic_attribution_calculated=False)

    def _write(self, state: DayState, rows: pa.Table, *, gathered: bool) -> None:
        job, day = self._job, state.tracking_date
        job.store.facts.replace_day(TOPICS_TABLE, day, rows, epoch=job.lease.epoch)
        with job.lease.write() as connection:
            shelf.finish_topics(
                connection, day, fingerprint=state.gathered_fingerprint, rows=rows.num_rows, gathered=gathered
            )
