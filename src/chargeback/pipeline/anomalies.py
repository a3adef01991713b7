"""What stands out, in a run: each story is told when it begins, when it has doubled, and when it is over."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final

from chargeback.errors import StorageError
from chargeback.model.anomalies import FEWEST, Floors
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline.run_context import RunContext
from chargeback.reports.anomalies import AnomaliesAnswer, AnomalyItem, Asked, Remembered, anomalies
from chargeback.reports.names import names_of_identities
from chargeback.store.control.anomalies import (
    WITHDRAWN,
    KnownAnomaly,
    anomalies_revision,
    read_anomalies,
    save_anomalies,
)
from chargeback.store.control.anomaly_marks import CONFIRMED, read_marks
from chargeback.store.control.catalogue import read_published_revision
from chargeback.store.control.days import read_days
from chargeback.store.control.events import (
    ANOMALY_GREW,
    ANOMALY_OPENED,
    ANOMALY_RESOLVED,
    ANOMALY_WITHDRAWN,
    Event,
    add_events,
)
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader

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


def tell_anomalies(run: RunContext) -> None:
    """Record the events of what stands out, if the facts have changed since the last look. What cannot be read is
    recorded, and looked at again by the next run.

    Raises:
        LeaseLost: another process has taken over.
    """
    settings = run.tenant.settings.anomalies
    if not settings.enabled:
        return
    with run.store.control.read() as connection:
        revision, _ = read_published_revision(connection)
        if revision == anomalies_revision(connection):
            return
        states = {each.tracking_date: each for each in read_days(connection)}
        known, remembered = read_anomalies(connection), Remembered(read_marks(connection))
    calculated = [day for day, state in states.items() if state.was_calculated]
    if len(calculated) < FEWEST:
        return
    days = DayRange(max(calculated) - _LOOKED_AT + ONE_DAY, max(calculated) + ONE_DAY)
    floors = Floors(float(settings.min_amount), float(settings.min_percent) / 100)

    def _named(identities: Collection[str]) -> Mapping[str, str]:
        with run.store.control.read() as connection:
            return names_of_identities(connection, identities)

    try:
        with QueryEngine() as engine, open_reader(engine, run.store, CancellationToken(), LookupCaches()) as reader:
            asked = Asked(days, floors, _MOST, contributors=True)
            found = anomalies(reader, states, asked, run.tenant.settings.currency, remembered, _named)
    except StorageError as error:
        run.record_error(f"what stands out is looked at again in the next run: {error}")
        return
    look = _Look(found, known, most=settings.most_a_week, now=run.now())
    stories = list(look.stories())
    with run.lease.write() as connection:
        add_events(connection, look.events, run.now())
        save_anomalies(connection, stories, revision, days.start - _KEPT)


@dataclass
class _Look:
    """What was found, beside what is ``known``; the ``events`` are made on the way.

    What was over a week ago is no news, whenever it is seen first, and nor is what somebody has put aside. In a week,
    at most so many stories are told; the others are kept.
    """

    found: AnomaliesAnswer
    known: Mapping[str, KnownAnomaly]
    most: int
    now: datetime

    def __post_init__(self) -> None:
        self.events: list[Event] = []
        told = [each for each in self.known.values() if each.told_at is not None and each.told_at > self.now - _WEEK]
        self._left = max(0, self.most - len(told))

    def stories(self) -> Iterator[KnownAnomaly]:
        """Yield what is to be recorded."""
        new = [
            item
            for item in self.found.items
            if not self._was_told(item) and not _is_aside(item) and self._is_news(item)
        ]
        chosen, rest = new[: self._left], len(new[self._left :])
        for item in self.found.items:
            before = self.known.get(item.id)
            now = KnownAnomaly(item.id, item.first_date, item.state, item.impact)
            if before is not None:
                now = replace(now, told=before.told, told_at=before.told_at)
            if _is_aside(item):
                yield now
            elif item in chosen:
                yield self._tell(now, ANOMALY_OPENED, item, more=rest)
            elif now.told is not None and abs(item.impact) >= _GROWN * abs(now.told):
                yield self._tell(now, ANOMALY_GREW, item)
            elif now.told is not None and before is not None and _has_ended(before, item):
                yield replace(self._tell(now, ANOMALY_RESOLVED, item), told=now.told, told_at=now.told_at)
            else:
                yield now
        yield from self._withdrawn({item.id for item in self.found.items})

    def _was_told(self, item: AnomalyItem) -> bool:
        return item.id in self.known and self.known[item.id].told is not None

    def _is_news(self, item: AnomalyItem) -> bool:
        """Return whether a story is to be told that was not: what was passed over is news only while it is open."""
        before, through = self.known.get(item.id), self.found.judged_through
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
        body = {
            "identity_id": item.identity_id,
            "product_category": item.product_category,
            "first_date": item.first_date.isoformat(),
            "last_date": item.last_date.isoformat(),
            "impact": f"{item.impact:.2f}",
            "sentence": item.sentence,
            "more": more,
        }
        self._add(kind, item.id, body)
        return replace(story, told=item.impact, told_at=story.told_at or self.now)

    def _add(self, kind: str, number: str, body: dict[str, object]) -> None:
        # What is withdrawn may come back, so that time alone makes an event one; it is recorded with what is known.
        once = f"{kind} {number} {self.now.isoformat()}"
        self.events.append(Event(kind, f"anomaly/{number}", body | {"currency": self.found.currency}, once))


def _is_aside(item: AnomalyItem) -> bool:
    return item.mark is not None and item.mark.status != CONFIRMED


def _has_ended(before: KnownAnomaly, item: AnomalyItem) -> bool:
    return before.state == _OPEN and item.state != _OPEN
