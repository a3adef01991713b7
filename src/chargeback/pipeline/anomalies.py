"""What stands out, in a run: each story is told when it begins, when it has doubled, and when it is over."""

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
from chargeback.pipeline.look import Look, only_for
from chargeback.reports.anomalies import AnomaliesAnswer, AnomalyItem, Asked, Remembered, anomalies
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

#: How far back what stands out is looked at again: bills change for some weeks.
_LOOKED_AT: Final = timedelta(days=28)
#: Near the beginning of these days it is not certain that a story is gone.
_CERTAIN: Final = timedelta(days=7)
#: What is older is forgotten.
_KEPT: Final = timedelta(days=400)
_WEEK: Final = timedelta(days=7)
#: More than that are not looked at one by one.
_MOST: Final = 1000
_GROWN: Final = 2
_OPEN: Final = "open"


def tell_anomalies(look: Look) -> None:
    """Record the events of what stands out, if the facts have changed since the last look: of all costs, and of those
    within the scope of each sink that has one, which is told of nothing else.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    run, settings = look.run, look.run.tenant.settings.anomalies
    if not settings.enabled:
        return
    with run.store.control.read() as connection:
        if look.revision == anomalies_revision(connection):
            return
        known, remembered = read_anomalies(connection), Remembered(read_marks(connection))
    if len(look.calculated) < FEWEST:
        return
    last = look.calculated[-1]
    days = DayRange(last - _LOOKED_AT + ONE_DAY, last + ONE_DAY)
    asked = Asked(days, settings.criteria, _MOST, contributors=True)
    looks = []
    for scope, owners in ((None, []), *look.owners(ANOMALY_OPENED).items()):
        with look.reader(scope) as reader:
            found = anomalies(reader, look.states, asked, run.tenant.settings.currency, remembered, look.named)
        whose = scope_key(scope)
        before = {story.id: story for story in known.values() if story.scope == whose}
        looks.append(_Stories(found, before, settings.most_a_week, run.now(), whose, owners))
    recorded = [story for each in looks for story in each.recorded()]
    with run.lease.write() as connection:
        for each in looks:
            add_events(connection, each.events, run.now())
        save_anomalies(connection, recorded, look.revision, days.start - _KEPT)


def scope_key(scope: RowScope | None) -> str:
    """Return what tells the stories within a scope from those of others; empty for those of all costs."""
    if scope is None:
        return ""
    return hashlib.blake2b(json.dumps(scope.as_json()).encode(), digest_size=8).hexdigest()


@dataclass
class _Stories:
    """What was found, beside what is ``known``; the ``events`` are made on the way, within the scope of ``owners`` for
    these alone.

    What was over a week ago is no news, whenever it is seen first, and nor is what somebody has put aside. In a week,
    at most so many stories are told; the others are kept.
    """

    found: AnomaliesAnswer
    known: Mapping[str, KnownAnomaly]
    most: int
    now: datetime
    scope: str
    owners: list[str]

    def __post_init__(self) -> None:
        self.events: list[Event] = []
        told = [each for each in self.known.values() if each.told_at is not None and each.told_at > self.now - _WEEK]
        self._left = max(0, self.most - len(told))

    def recorded(self) -> Iterator[KnownAnomaly]:
        """Yield what is to be recorded."""
        new = [
            item
            for item in self.found.items
            if not self._was_told(item) and not item.is_aside and not item.is_explained and self._is_news(item)
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
                yield self._tell(now, ANOMALY_OPENED, item, more=rest)
            elif now.told is not None and abs(item.impact) >= _GROWN * abs(now.told):
                yield self._tell(now, ANOMALY_GREW, item)
            elif now.told is not None and before is not None and _has_ended(before, item):
                yield replace(self._tell(now, ANOMALY_RESOLVED, item), told=now.told, told_at=now.told_at)
            else:
                yield now
        yield from self._withdrawn({self._id(item) for item in self.found.items})

    def _id(self, item: AnomalyItem) -> str:
        """Return what tells a story apart: within a scope it is another one than that of all costs."""
        if not self.scope:
            return item.id
        return hashlib.blake2b(f"{self.scope} {item.id}".encode(), digest_size=8).hexdigest()

    def _was_told(self, item: AnomalyItem) -> bool:
        before = self.known.get(self._id(item))
        return before is not None and before.told is not None

    def _is_news(self, item: AnomalyItem) -> bool:
        """Return whether a story is to be told that was not: what was passed over is news only while it is open."""
        before, through = self.known.get(self._id(item)), self.found.judged_through
        is_recent = through is not None and item.last_date > through - _WEEK
        return item.state == _OPEN or (is_recent and (before is None or before.state == WITHDRAWN))

    def _withdrawn(self, there: set[str]) -> Iterator[KnownAnomaly]:
        certain = self.found.start_date + _CERTAIN
        judged = self._judged()
        for each in self.known.values():
            is_gone = each.id not in there and each.first_date >= certain and each.first_date in judged
            if not is_gone or each.state == WITHDRAWN:
                continue
            if each.told is not None:
                self._add(ANOMALY_WITHDRAWN, each.id, {"first_date": each.first_date.isoformat()})
            yield replace(each, state=WITHDRAWN, told=None)

    def _judged(self) -> set[date]:
        """Return the days that were judged: what happened on another is not known."""
        end = self.found.judged_through
        days = set() if end is None else set(DayRange(self.found.start_date, end + ONE_DAY))
        return days - {each.date for each in self.found.not_judged}

    def _tell(self, story: KnownAnomaly, kind: str, item: AnomalyItem, more: int = 0) -> KnownAnomaly:
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
        # What is withdrawn may come back, so that time alone makes an event one; it is recorded with what is known.
        once = f"{kind} {number} {self.now.isoformat()}"
        whose = only_for(self.owners) if self.scope else {}
        self.events.append(Event(kind, f"anomaly/{number}", body | whose | {"currency": self.found.currency}, once))


def _has_ended(before: KnownAnomaly, item: AnomalyItem) -> bool:
    return before.state == _OPEN and item.state != _OPEN
