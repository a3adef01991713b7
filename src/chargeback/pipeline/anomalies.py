"""The events of anomalies in a run: a story is reported when it begins, when it has doubled, and when it is over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final

from chargeback.access.scope import RowScope
from chargeback.model.anomalies import FEWEST
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline.run_facts import RunFacts, only_for
from chargeback.reports.anomalies import AnomaliesAnswer, AnomaliesRequest, AnomalyItem, Remembered, anomalies
from chargeback.store.control.anomalies import (
    WITHDRAWN,
    KnownAnomaly,
    anomalies_revision,
    read_anomalies,
    read_marks,
    save_anomalies,
)
from chargeback.store.control.events import (
    ANOMALY_GREW,
    ANOMALY_OPENED,
    ANOMALY_RESOLVED,
    ANOMALY_WITHDRAWN,
    BELONGS_TO,
    Event,
    add_events,
)

#: Anomalies are searched in this many of the latest days: bills change for some weeks.
_SEARCHED: Final = timedelta(days=28)
#: In the first of these days a missing story may have begun earlier; it is not withdrawn.
_CERTAIN: Final = timedelta(days=7)
#: Older stories are deleted.
_KEPT: Final = timedelta(days=400)
_WEEK: Final = timedelta(days=7)
#: At most this many stories are examined.
_MOST: Final = 1000
_GROWN: Final = 2
_OPEN: Final = "open"


def record_anomalies(facts: RunFacts) -> None:
    """Record the events of anomalies if the facts have changed since the last run: of all costs, and of the costs in
    the scope of each sink that has one. Such a sink receives nothing else.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    run, settings = facts.run, facts.run.tenant.settings.anomalies
    if not settings.enabled:
        return
    with run.store.control.read() as connection:
        if facts.revision == anomalies_revision(connection):
            return
        known, remembered = read_anomalies(connection), Remembered(read_marks(connection))
    if len(facts.calculated) < FEWEST:
        return
    last = facts.calculated[-1]
    days = DayRange(last - _SEARCHED + ONE_DAY, last + ONE_DAY)
    request = AnomaliesRequest(days, settings.criteria, _MOST, contributors=True)
    stories = []
    for scope, owners in ((None, []), *facts.owners(ANOMALY_OPENED).items()):
        with facts.reader(scope) as reader:
            found = anomalies(reader, facts.states, request, run.tenant.settings.currency, remembered, facts.named)
        key = scope_key(scope)
        before = {story.id: story for story in known.values() if story.scope == key}
        stories.append(_Stories(found, before, settings.most_a_week, run.now(), key, owners))
    recorded = [story for each in stories for story in each.recorded()]
    with run.lease.write() as connection:
        for each in stories:
            add_events(connection, each.events, run.now())
        save_anomalies(connection, recorded, facts.revision, days.start - _KEPT)


def scope_key(scope: RowScope | None) -> str:
    """Return the key that separates the stories of a scope from others; empty for the stories of all costs."""
    if scope is None:
        return ""
    return hashlib.blake2b(json.dumps(scope.as_json()).encode(), digest_size=8).hexdigest()


@dataclass
class _Stories:
    """The stories that were found, compared with those already ``known``. :meth:`recorded` collects the ``events``; if
    there is a scope, they are for the sinks ``owners`` alone.

    A story that was over a week ago, or that a person has put aside, gets no event. In a week, at most ``most`` stories
    are reported; the others are stored without an event.
    """

    found: AnomaliesAnswer
    known: Mapping[str, KnownAnomaly]
    most: int
    now: datetime
    scope: str
    owners: list[str]

    def __post_init__(self) -> None:
        self.events: list[Event] = []
        reported = sum(each.told_at is not None and each.told_at > self.now - _WEEK for each in self.known.values())
        self._left = max(0, self.most - reported)

    def recorded(self) -> Iterator[KnownAnomaly]:
        """Yield the stories to store."""
        new = [
            item
            for item in self.found.items
            if not self._was_reported(item) and not item.is_aside and not item.is_explained and self._is_news(item)
        ]
        chosen, rest = new[: self._left], len(new[self._left :])
        for item in self.found.items:
            before = self.known.get(self._id(item))
            now = KnownAnomaly(self._id(item), item.first_date, item.state, item.impact, scope=self.scope)
            if before is not None:
                now = replace(now, told=before.told, told_at=before.told_at)
            if item.is_aside:
                yield now
            elif item in chosen:
                yield self._report(now, ANOMALY_OPENED, item, more=rest)
            elif now.told is not None and abs(item.impact) >= _GROWN * abs(now.told):
                yield self._report(now, ANOMALY_GREW, item)
            elif now.told is not None and before is not None and before.state == _OPEN != item.state:
                yield replace(self._report(now, ANOMALY_RESOLVED, item), told=now.told, told_at=now.told_at)
            else:
                yield now
        yield from self._withdrawn({self._id(item) for item in self.found.items})

    def _id(self, item: AnomalyItem) -> str:
        """Return the id of a story: in a scope it is another story than the one of all costs."""
        if not self.scope:
            return item.id
        return hashlib.blake2b(f"{self.scope} {item.id}".encode(), digest_size=8).hexdigest()

    def _was_reported(self, item: AnomalyItem) -> bool:
        before = self.known.get(self._id(item))
        return before is not None and before.told is not None

    def _is_news(self, item: AnomalyItem) -> bool:
        """Return whether a story without an event gets one; one that was left out earlier gets it only while open."""
        before, through = self.known.get(self._id(item)), self.found.judged_through
        is_recent = through is not None and item.last_date > through - _WEEK
        return item.state == _OPEN or (is_recent and (before is None or before.state == WITHDRAWN))

    def _withdrawn(self, found_ids: set[str]) -> Iterator[KnownAnomaly]:
        certain = self.found.start_date + _CERTAIN
        judged = self._judged()
        for each in self.known.values():
            is_gone = each.id not in found_ids and each.first_date >= certain and each.first_date in judged
            if not is_gone or each.state == WITHDRAWN:
                continue
            if each.told is not None:
                self._add(ANOMALY_WITHDRAWN, each.id, {"first_date": each.first_date.isoformat()})
            yield replace(each, state=WITHDRAWN, told=None)

    def _judged(self) -> set[date]:
        """Return the days on which anomalies were searched."""
        end = self.found.judged_through
        days = set() if end is None else set(DayRange(self.found.start_date, end + ONE_DAY))
        return days - {each.date for each in self.found.not_judged}

    def _report(self, story: KnownAnomaly, kind: str, item: AnomalyItem, more: int = 0) -> KnownAnomaly:
        """Add the event of a story; return the story as it is stored with it."""
        body: dict[str, object] = {
            "identity_id": item.identity_id,
            "category": item.category,
            "value": item.value,
            "product_category": item.product_category,
            "first_date": item.first_date.isoformat(),
            "last_date": item.last_date.isoformat(),
            "impact": f"{item.impact:.2f}",
            "sentence": item.sentence,
            BELONGS_TO: item.belongs_to,
            "more": more,
        }
        self._add(kind, self._id(item), body)
        return replace(story, told=item.impact, told_at=story.told_at or self.now)

    def _add(self, kind: str, number: str, body: dict[str, object]) -> None:
        # A withdrawn story may come back: only the time makes its key unique. The event is stored with the story.
        once = f"{kind} {number} {self.now.isoformat()}"
        recipients = only_for(self.owners) if self.scope else {}
        body = body | recipients | {"currency": self.found.currency}
        self.events.append(Event(kind, f"anomaly/{number}", body, once))
