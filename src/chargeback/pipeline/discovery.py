"""Topic discovery: which topics existed when, derived from the metrics of each day.

There is no list of topics; they are found in the metrics. A topic that is found on a day existed on it. A topic that is
missing on the newest day, although others of its cluster are found, is deleted as of that day; a topic that is missing
on the oldest day was created after it. A topic that is found on the first day of its cluster may have existed before. A
day without any topic of a cluster has no information about it. Days may be processed in any order, and repeatedly.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.model.days import ONE_DAY, start_of_day
from chargeback.model.inventory import alive_during
from chargeback.model.topics import EXISTED, TopicPlan
from chargeback.model.usage import USAGE
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control import topics as topic_store
from chargeback.store.control.topics import Lifetime, SeenRanges, TopicLifetimes

log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[str, Lifetime]] = {}


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
        with run.store.control.read() as connection:
            self._book = TopicRegistry(
                topic_store.read_topic_lifetimes(connection, plan.topic_type), topic_store.read_seen_ranges(connection)
            )
        self._touched: set[str] = set()
        self._days: list[date] = []
        self._counts: Counter[str] = Counter()

    def complete(self, day: date, measured: pa.Table) -> pa.Table:
        """Return the evidence of a day: the measurements of the tenant's clusters, and which other topics existed.

        New, deleted and recreated topics are written to the inventory.
        """
        known = pc.is_in(measured["resource_id"], value_set=self._clusters)
        measured = measured.filter(known)
        seen = self._topics_in(measured)
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
        with self._run.lease.write() as connection:
            topic_store.save_topic_lifetimes(
                connection, self._plan.topic_type, book.new, book.changed, seen_at=start_of_day(day + ONE_DAY)
            )
            topic_store.save_seen_ranges(connection, {cluster: book.seen_ranges[cluster] for cluster in seen})
        book.new, book.changed = {}, {}
        self._touched |= seen.keys()
