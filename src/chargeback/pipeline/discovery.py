"""Topic discovery: which topics there are, and from when to when, told from what the metrics name day by day.

Nobody lists topics; the metrics name those that there are. A topic that is named on a day existed on it. One that the
newest day names no more, although it names others of the cluster, is deleted as of that day; one that the oldest day
does not name yet was created after it. A topic that was there when its cluster was first seen may always have been.
A day on which nothing of a cluster is named tells nothing about it. Days may be seen in any order, and again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
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
from chargeback.store.control import topics as shelf
from chargeback.store.control.topics import Lifetime, SeenRange, TopicLifetimes

log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[str, Lifetime]] = {}


class TopicRegistry:
    """The topics known so far, and when they existed."""

    def __init__(self, lives: TopicLifetimes, sightings: SeenRange) -> None:
        self._lives = lives
        self.sightings = sightings
        self.new: TopicLifetimes = {}
        self.changed: TopicLifetimes = {}

    def see(self, day: date, seen: Mapping[str, Collection[str]]) -> None:
        """Learn from one day's metrics: ``seen`` maps each cluster to the topics named on it.

        ``new`` and ``changed`` gather what is to be saved.
        """
        for cluster, topics in seen.items():
            if topics:
                self._see(day, cluster, frozenset(topics))

    def _see(self, day: date, cluster: str, topics: frozenset[str]) -> None:
        start, end = start_of_day(day), start_of_day(day + ONE_DAY)
        first, last = self.sightings.get(cluster, (day, day))
        known = self._lives.setdefault(cluster, {})
        earliest = None if day <= first else start
        latest = None if day >= last else end
        for topic in topics:
            life = known.get(topic)
            if life is None:
                self._set(cluster, topic, Lifetime(earliest, latest), self.new)
                continue
            created = earliest if life.created_at is not None and life.created_at > start else life.created_at
            deleted = latest if life.deleted_at is not None and life.deleted_at < end else life.deleted_at
            self._change(cluster, topic, life, Lifetime(created, deleted))
        if day > last or day < first:
            for topic, life in list(known.items()):
                if topic in topics:
                    continue
                if day > last and alive_during(life.created_at, life.deleted_at, start, end):
                    self._change(cluster, topic, life, Lifetime(life.created_at, start))
                elif day < first and life.created_at is None:
                    self._change(cluster, topic, life, Lifetime(start_of_day(first), life.deleted_at))
        self.sightings[cluster] = (min(first, day), max(last, day))

    def _change(self, cluster: str, topic: str, before: Lifetime, after: Lifetime) -> None:
        if after != before:
            is_new = topic in self.new.get(cluster, _NOTHING)
            self._set(cluster, topic, after, self.new if is_new else self.changed)

    def _set(self, cluster: str, topic: str, life: Lifetime, among: TopicLifetimes) -> None:
        self._lives[cluster][topic] = life
        among.setdefault(cluster, {})[topic] = life

    def alive_on(self, day: date) -> dict[str, set[str]]:
        """Cluster → the topics that existed on that day."""
        start, end = start_of_day(day), start_of_day(day + ONE_DAY)
        return {
            cluster: {
                topic for topic, life in lives.items() if alive_during(life.created_at, life.deleted_at, start, end)
            }
            for cluster, lives in self._lives.items()
        }


class TopicDiscovery:
    """Discovers topics for one run: completes each day's evidence, and keeps the inventory."""

    def __init__(self, job: RunContext, plan: TopicPlan, clusters: Collection[str]) -> None:
        self._job = job
        self._plan = plan
        self._clusters = pa.array(sorted(clusters), pa.string())
        with job.store.control.read() as connection:
            self._book = TopicRegistry(
                shelf.read_topic_lives(connection, plan.topic_type), shelf.read_sightings(connection)
            )
        self._touched: set[str] = set()

    def complete(self, day: date, measured: pa.Table) -> pa.Table:
        """The evidence of a day: what was measured of the tenant's clusters, and which other topics existed.

        New topics, and those that were gone or created meanwhile, are written to the inventory.
        """
        known = pc.is_in(measured["resource_id"], value_set=self._clusters)
        measured = measured.filter(known)
        seen = self._topics_in(measured)
        self._book.see(day, seen)
        self._keep(day, seen)
        rows = [
            {"date": day, "measure": EXISTED, "resource_id": cluster, "subject": topic, "value": Decimal(1)}
            for cluster, topics in sorted(self._book.alive_on(day).items())
            for topic in sorted(topics - seen.get(cluster, set()))
        ]
        return pa.concat_tables([measured, pa.Table.from_pylist(rows, schema=USAGE)])

    def finish(self) -> None:
        """Note in the inventory until when the topics of the run's clusters were seen."""
        with self._job.lease.write() as connection:
            shelf.touch_topics(connection, self._plan.topic_type, sorted(self._touched))

    def _topics_in(self, measured: pa.Table) -> dict[str, set[str]]:
        pairs = measured.select(["resource_id", "subject"]).group_by(["resource_id", "subject"]).aggregate([])
        seen: dict[str, set[str]] = defaultdict(set)
        for cluster, topic in zip(pairs["resource_id"].to_pylist(), pairs["subject"].to_pylist(), strict=True):
            if not self._plan.excludes(topic):
                seen[cluster].add(topic)
        return seen

    def _keep(self, day: date, seen: Mapping[str, Collection[str]]) -> None:
        book = self._book
        new, changed = (sum(map(len, lives.values())) for lives in (book.new, book.changed))
        log.info(
            "tenant %s: Topic discovery: %s names %d topics of %d clusters, %d of them new; %d have come or gone",
            *(self._job.tenant.name, day, sum(map(len, seen.values())), len(seen), new, changed),
        )
        with self._job.lease.write() as connection:
            shelf.save_topic_lives(
                connection, self._plan.topic_type, book.new, book.changed, seen_at=start_of_day(day + ONE_DAY)
            )
            shelf.save_sightings(connection, {cluster: book.sightings[cluster] for cluster in seen})
        book.new, book.changed = {}, {}
        self._touched |= seen.keys()
