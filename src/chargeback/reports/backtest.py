"""What would have been told of what stands out on past days, with the data as it was known then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal

from chargeback.model.anomalies import FEWEST, Criteria
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.reports.anomalies import AnomalyItem, Asked, Remembered, anomalies
from chargeback.store.control.days import DayState, read_days
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from chargeback.store.tenant import TenantStore

#: What was over longer ago was no news.
_NEWS: Final = timedelta(days=7)
_MOST: Final = 1000


@dataclass(frozen=True)
class Alarm:
    """A story that would have been told first on the evening of a day.

    Attributes:
        story: as it was known then.
        outcome: what is known of it now: whether it still stands out.
    """

    raised: date
    story: AnomalyItem
    outcome: Literal["stands", "withdrawn"]

    @property
    def days_late(self) -> int:
        """How many days after its first one it would have been told."""
        return (self.raised - self.story.first_date).days


@dataclass(frozen=True)
class BackTest:
    """What would have been told on some days; ``unknown`` are those of which it is not known what was known."""

    days: DayRange
    alarms: list[Alarm]
    unknown: list[date]


def back_test(store: TenantStore, engine: QueryEngine, days: DayRange, by: Criteria, currency: str) -> BackTest:
    """Return what settings would have told on the evening of each day (the end of the UTC day): true vintages of bills,
    measurements and allocations, without marks and without a limit for a week.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    caches = LookupCaches()
    raised: dict[str, tuple[date, AnomalyItem]] = {}
    unknown = []
    for day in days:
        instant = start_of_day(day + ONE_DAY)
        with open_reader(engine, store, CancellationToken(), caches, as_of=instant) as reader:
            states = reader.past_states or {}
            last = _last(states.values())
            if last is None:
                unknown.append(day)
                continue
            asked = Asked(DayRange(last - _NEWS + ONE_DAY, last + ONE_DAY), by, _MOST, contributors=True)
            for each in anomalies(reader, states, asked, currency, Remembered(), _no_names).items:
                if not each.is_explained:
                    raised.setdefault(each.id, (day, each))
    return BackTest(days, _judged(store, engine, raised, by, currency), unknown)


def _judged(
    store: TenantStore,
    engine: QueryEngine,
    raised: Mapping[str, tuple[date, AnomalyItem]],
    by: Criteria,
    currency: str,
) -> list[Alarm]:
    """Return the alarms, with what is known of them now."""
    if not raised:
        return []
    first = min(story.first_date for _, story in raised.values())
    with store.control.read() as connection:
        states = {each.tracking_date: each for each in read_days(connection)}
    last = max(states)
    with open_reader(engine, store, CancellationToken(), LookupCaches()) as reader:
        asked = Asked(DayRange(first, last + ONE_DAY), by, _MOST, raised.keys())
        standing = {each.id for each in anomalies(reader, states, asked, currency, Remembered(), _no_names).items}
    return [
        Alarm(day, story, "stands" if number in standing else "withdrawn") for number, (day, story) in raised.items()
    ]


def _last(states: Iterable[DayState]) -> date | None:
    """Return the last calculated day; None if there are too few to judge any."""
    calculated = [each.tracking_date for each in states if each.was_calculated]
    return max(calculated) if len(calculated) >= FEWEST else None


def _no_names(_identities: Collection[str]) -> Mapping[str, str]:
    return {}
