"""Anomalies: days with unusual costs, at constant prices and by constant rules."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from statistics import median
from typing import Final, Literal, Self
from urllib.parse import urlencode

from pydantic import Field

from chargeback.model.anomalies import SHIFTED, WINDOW, Criteria, Story, drift, stories
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.reports.comparable_costs import ComparableCosts, CostSeries, Part, SeriesDay
from chargeback.reports.names import NameReader
from chargeback.reports.wording import money_text
from chargeback.store.control.anomalies import CONFIRMED, AnomalyMark, MarkStatus, newest_mark
from chargeback.store.control.days import DayState
from chargeback.store.queries.reader import TenantReader

#: How many contributors are named.
_CONTRIBUTORS: Final = 3
#: How many drifts and fees are listed.
_DRIFTS: Final = 20
#: Something is most of a story from this part on.
_MOSTLY: Final = 0.6
#: Two growths are the same if they differ by at most this many points.
_AS_MUCH: Final = 0.05
#: More than this part counts as all: parts are floats.
_ALL: Final = 0.999_999


class OfSeries(ResponseModel):
    """The costs that an entry is about: those of an identity, or of a value of a cost category."""

    identity_id: str | None = Field(description="Null for costs of a value of a cost category.")
    category: str | None = Field(description="The cost category; null for costs of an identity.")
    value: str | None = Field(description="The value of the cost category; null for costs of an identity.")
    product_category: str | None = Field(description="Null for all product groups.")

    @property
    def series(self) -> CostSeries:
        """Return the series of these costs."""
        return CostSeries(self.identity_id or self.value or "", self.product_category or "", self.category or "")


def _series_fields(series: CostSeries) -> dict[str, str | None]:
    is_value = bool(series.category)
    return {
        "identity_id": None if is_value else series.who,
        "category": series.category if is_value else None,
        "value": series.who if is_value else None,
        "product_category": series.product_category or None,
    }


class AnomalyDay(ResponseModel):
    """A day of an anomaly. The numbers are estimates, at constant prices."""

    date: date
    actual: float = Field(description="The charged cost, at the latest price.")
    expected: float = Field(description="The median of the weekday in the eight weeks before.")
    scales: float = Field(description="The difference, in units of the usual difference of days of the series.")


class AnomalyContributor(ResponseModel):
    """A part of an anomaly: the costs of an identity for a product type of a resource. The numbers are estimates, at
    constant prices, and need not sum to those of the anomaly, because the median of a sum is not the sum of medians."""

    identity_id: str
    product_type: str
    resource_id: str
    actual: float
    expected: float
    impact: float
    explain: str | None = Field(
        description="The explanation of its largest amount on the day with the largest difference, relative to this "
        "address; null if it has no cost on that day.",
        examples=["chargebacks/explain?date=2026-11-14&line_id=0a1b2c&identity_id=sa-123abc"],
    )


class MarkItem(OfSeries):
    """What people know about past or future days with unusual costs."""

    id: int
    status: MarkStatus = Field(
        description="`confirmed`: it was worth reporting. `planned`, `expected` and `dismissed` (a false alarm) "
        "exclude the days: they are not reported, and no later day is compared with them."
    )
    start_date: date
    end_date: date
    note: str
    created_by: str
    created_at: Instant

    @classmethod
    def of(cls, mark: AnomalyMark) -> Self:
        """Return a mark for a response."""
        return cls.like(mark, **_series_fields(CostSeries(mark.who, mark.product_category or "", mark.category)))


class AnomalyItem(OfSeries):
    """An anomaly: consecutive days on which the costs of an identity or a value are unusual in the same direction."""

    id: str = Field(description="The id, as in the subject of its events. It changes only with the first day.")
    direction: Literal["up", "down"]
    state: Literal["open", "resolved", "level_shift"] = Field(
        description="`open`: the last examined day is unusual as well; `level_shift`: after three consecutive days, "
        "the costs are considered the new level, with which later days are compared."
    )
    first_date: date
    last_date: date
    impact: float = Field(description="Charged minus expected costs of these days; negative if less was charged.")
    sentence: str
    days: list[AnomalyDay]
    belongs_to: dict[str, str] = Field(
        description="The value of the examined cost category that all of it belongs to; empty without a cost category, "
        "or if it belongs to several values.",
        examples=[{"team": "payments"}],
    )
    mark: MarkItem | None = Field(description="The newest mark of its first day.")
    told_at: Instant | None = Field(description="When it was first reported; null if it was not.")
    goes_with: str | None = Field(
        description="The anomaly that is reported instead of this one: a larger one of the same identity or value "
        "that begins on the same day in the same direction or, for a value, the one below it that is most of it; null "
        "if there is none."
    )
    by_policy: bool = Field(
        description="With `include=contributors`: it is mostly caused by another policy since it began, and not by "
        "changed usage. It is not reported."
    )
    growth_of: str | None = Field(
        description="For higher costs, with `include=contributors`: the measure that drives these costs, if it has "
        "grown as much, within five points. The anomaly is then not reported. Null otherwise."
    )
    others_used_more: bool = Field(
        description="For lower costs, with `include=contributors`: the total cost of its largest contributors has not "
        "changed, only the share of it. It is not reported."
    )
    contributors: list[AnomalyContributor] = Field(
        description=f"The {_CONTRIBUTORS} largest, with `include=contributors`; empty without."
    )

    @property
    def is_aside(self) -> bool:
        """Whether a mark excludes it."""
        return self.mark is not None and self.mark.status != CONFIRMED

    @property
    def is_explained(self) -> bool:
        """Whether something else explains it: another anomaly, larger shares of others, a policy, or growth."""
        return self.goes_with is not None or self.others_used_more or self.by_policy or self.growth_of is not None


class DriftItem(ResponseModel):
    """Costs of an identity for a product group that have changed slowly, without an anomaly, at constant prices."""

    identity_id: str
    product_category: str
    before: float = Field(description="The median cost of a day in the four weeks before.")
    now: float = Field(description="The median cost of a day in the last week.")


class FeeItem(ResponseModel):
    """A fee: costs that are billed on three days of a month or less, and differ between its last month and the month
    before. Fees are not examined by day."""

    product_type: str
    resource_id: str
    last_date: date = Field(description="The last day of its last month on which it was billed.")
    before: float
    now: float


class NotJudged(ResponseModel):
    """A day that is not examined, and the reason."""

    date: date
    reason: Literal["not calculated", "the bill has changed", "measurements are missing"]


class AnomaliesAnswer(ResponseModel):
    """The anomalies of a period. A day is examined if it is calculated from its present bill with all measurements, and
    a series if 21 of its days are known. A missing day never counts as a day without cost."""

    start_date: date
    end_date: date
    currency: str
    judged_through: date | None = Field(description="The last examined day of the period.")
    not_judged: list[NotJudged]
    series: int = Field(description="How many series there are.")
    items: list[AnomalyItem] = Field(description="The largest impact first.")
    more: int = Field(description="The number of anomalies beyond `limit`.")
    drifts: list[DriftItem] = Field(
        description=f"The {_DRIFTS} largest slow changes up to the last examined day, the largest first; not reported."
    )
    fees: list[FeeItem] = Field(
        description=f"The {_DRIFTS} largest changes of fees above the thresholds, the largest first; not reported."
    )
    marked: dict[MarkStatus, int] = Field(description="The number of anomalies with each mark.")
    days_to_detection: float | None = Field(
        description="The median number of days from the first day of an anomaly to its report."
    )
    names: dict[str, str] = Field(description="The display names of the identities. Those without one are left out.")
    resource_names: dict[str, str] = Field(
        description="The display names of the resources. Those without one are left out."
    )


@dataclass(frozen=True)
class AnomaliesRequest:
    """A request for anomalies: the days, the criteria, the maximum number of stories, their ids (empty for all), and
    whether their contributors are included."""

    days: DayRange
    by: Criteria
    limit: int
    ids: Collection[str] = ()
    contributors: bool = False


@dataclass(frozen=True)
class Remembered:
    """What is stored about stories: marks, the newest first, and when each story was reported, by its id."""

    marks: Sequence[AnomalyMark] = ()
    reported: Mapping[str, datetime] = field(default_factory=dict)

    def excluded(self, series: CostSeries) -> frozenset[date]:
        """Return the days of a series that marks exclude."""
        its = astuple(series)
        return frozenset(day for each in self.marks if each.is_usual and each.is_about(*its) for day in each.days)

    def mark(self, series: CostSeries, day: date) -> MarkItem | None:
        """Return the newest mark of a day of a series."""
        found = newest_mark(self.marks, day, *astuple(series))
        return None if found is None else MarkItem.of(found)


def anomalies(
    reader: TenantReader,
    states: Mapping[date, DayState],
    request: AnomaliesRequest,
    currency: str,
    remembered: Remembered,
    named: NameReader,
) -> AnomaliesAnswer:
    """Return the anomalies of some days; ``named`` returns the display names of identities and resources.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    examined = DayRange(request.days.start - timedelta(days=WINDOW), request.days.end)
    judged = [day for day in examined if day in states and _why_not(states[day]) is None]
    charged = ComparableCosts(reader, examined, _category(reader, request.by.category))
    of_identities = charged.of_identities()
    costs = of_identities | charged.of_values()
    found = [
        _FoundStory(series, story)
        for series in sorted(costs)
        for story in stories(costs[series], judged, request.by.floors, request.days.start, remembered.excluded(series))
    ]
    found.sort(key=lambda each: (-abs(each.story.impact), each.series))
    related = _Related(found, charged.children(costs))
    if request.ids:
        found = [each for each in found if each.id in request.ids]
    quiet = of_identities.keys() - {each.series for each in found}
    drifts = _drifts({series: of_identities[series] for series in quiet}, judged, request, remembered)
    listed = found[: request.limit]
    sources = _Sources.of(reader, charged, judged, listed, request.by) if request.contributors else _Sources(judged)
    contributors = [sources.contributors(each) for each in listed]
    identities = {each.series.who for each in listed if not each.series.category}
    identities |= {each.identity_id for its in contributors for each in its[:_CONTRIBUTORS]}
    identities |= {each.identity_id for each in drifts}
    fees = _fees(charged, request)
    resources = {each.resource_id for its in contributors for each in its[:_CONTRIBUTORS]}
    resources |= {each.resource_id for each in fees}
    names, resource_names = named("identity_id", identities), named("resource_id", resources)
    descriptions = _Descriptions(sources, related, remembered, names, resource_names, currency)
    marks = [remembered.mark(each.series, each.first) for each in found]
    delays = [
        (remembered.reported[each.id].date() - each.first).days for each in found if each.id in remembered.reported
    ]
    known = [day for day in request.days if day in states]
    return AnomaliesAnswer(
        start_date=request.days.start,
        end_date=request.days.end - ONE_DAY,
        currency=currency,
        judged_through=max((day for day in judged if day in request.days), default=None),
        not_judged=[NotJudged(date=day, reason=reason) for day in known if (reason := _why_not(states[day]))],
        series=len(costs),
        items=[descriptions.item(each, its) for each, its in zip(listed, contributors, strict=True)],
        more=len(found) - len(listed),
        drifts=drifts,
        fees=fees,
        marked=dict(Counter(each.status for each in marks if each is not None)),
        days_to_detection=median(delays) if delays else None,
        names=dict(sorted(names.items())),
        resource_names=dict(sorted(resource_names.items())),
    )


def _category(reader: TenantReader, named: str | None) -> str | None:
    """Return the cost category whose values are examined: the named one, or the only one."""
    known = list(reader.categories.index.by_key)
    if named is None:
        return known[0] if len(known) == 1 else None
    return named if named in known else None


def _drifts(
    costs: Mapping[CostSeries, Mapping[date, float]],
    judged: Sequence[date],
    request: AnomaliesRequest,
    remembered: Remembered,
) -> list[DriftItem]:
    """Return the series that have changed slowly, the largest change first."""
    floors = request.by.floors
    moved = {series: drift(costs[series], judged, floors, remembered.excluded(series)) for series in sorted(costs)}
    known = [(series, how) for series, how in moved.items() if how is not None]
    known.sort(key=lambda each: -abs(each[1].now - each[1].before))
    return [
        DriftItem(
            identity_id=series.who,
            product_category=series.product_category,
            before=round(how.before, 2),
            now=round(how.now, 2),
        )
        for series, how in known[:_DRIFTS]
    ]


def _fees(charged: ComparableCosts, request: AnomaliesRequest) -> list[FeeItem]:
    """Return the fees that have changed, the largest change first."""
    floors = request.by.floors
    moved = [
        each
        for each in charged.fees()
        if each.last_date in request.days
        and abs(each.now - each.before) >= max(floors.amount, floors.part * each.before)
    ]
    moved.sort(key=lambda each: (-abs(each.now - each.before), each.product_type, each.resource_id))
    return [FeeItem.like(each, before=round(each.before, 2), now=round(each.now, 2)) for each in moved[:_DRIFTS]]


def _why_not(state: DayState) -> Literal["not calculated", "the bill has changed", "measurements are missing"] | None:
    if not state.was_calculated:
        return "not calculated"
    if not state.chargebacks.is_current:
        return "the bill has changed"
    return "measurements are missing" if state.incomplete else None


@dataclass(frozen=True, eq=False)
class _FoundStory:
    """A story of a series."""

    series: CostSeries
    story: Story

    @property
    def first(self) -> date:
        """Return its first day."""
        return self.story.days[0].day

    @property
    def direction(self) -> Literal["up", "down"]:
        """Return whether costs are higher or lower."""
        return "up" if self.story.rises else "down"

    @cached_property
    def id(self) -> str:
        """Return the id, a digest of series, first day and direction."""
        whose = [self.series.category] if self.series.category else []
        who, group = self.series.who, self.series.product_category
        distinguished_by = json.dumps([*whose, who, group, self.direction, f"{self.first}"])
        return hashlib.blake2b(distinguished_by.encode(), digest_size=8).hexdigest()


class _Related:
    """The relations of all stories that were found, the largest first: which one is reported instead of another. That
    is a story below it that is most of it; or, among stories of the same identity or value that begin on the same day
    and have none below them, the largest."""

    def __init__(self, found: Sequence[_FoundStory], children: Mapping[CostSeries, Mapping[CostSeries, float]]) -> None:
        self._children = children
        self._of_series: dict[CostSeries, list[_FoundStory]] = {}
        for each in found:
            self._of_series.setdefault(each.series, []).append(each)
        self._below = {each: self._largest_below(each) for each in found}
        self._largest: dict[tuple[str, str, date, str], _FoundStory] = {}
        for each in found:
            if self._below[each] is None:
                self._largest.setdefault(_beginning(each), each)

    def owner(self, series: CostSeries) -> dict[str, str]:
        """Return the value that all of a series belongs to, by its category."""
        if series.category:
            return {series.category: series.who}
        return {above.category: above.who for above, its in self._children.items() if its.get(series, 0.0) > _ALL}

    def reported_by(self, found: _FoundStory) -> str | None:
        """Return the story that is reported instead of another; None if that one is reported itself."""
        below = self._below[found]
        if below is not None:
            return self.reported_by(below) or below.id
        largest = self._largest[_beginning(found)]
        return None if largest is found else largest.id

    def _largest_below(self, found: _FoundStory) -> _FoundStory | None:
        """Return the largest of the stories below a series that are most of its story on the same days."""
        impacts = {
            each: part * _impact(each, {day.day for day in found.story.days})
            for child, part in self._children.get(found.series, {}).items()
            for each in self._of_series.get(child, [])
            if each.direction == found.direction
        }
        if sum(impacts.values()) / found.story.impact < _MOSTLY:
            return None
        return max(impacts, key=lambda each: abs(impacts[each]))


def _beginning(found: _FoundStory) -> tuple[str, str, date, str]:
    return (found.series.category, found.series.who, found.first, found.direction)


def _impact(found: _FoundStory, days: Collection[date]) -> float:
    return sum(each.actual - each.expected for each in found.story.days if each.day in days)


@dataclass(frozen=True)
class _Sources:
    """The sources of stories: the ``parts`` of their series; the same of all identities (``totals``), if the reader
    sees everything; the policies by which product types were split, by day; and the ``usage`` that drives series, with
    its measure. Empty if contributors are not requested."""

    judged: Sequence[date]
    parts: Mapping[CostSeries, Mapping[Part, Mapping[date, SeriesDay]]] = field(default_factory=dict)
    totals: Mapping[tuple[str, str], Mapping[date, SeriesDay]] = field(default_factory=dict)
    policies: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    usage: Mapping[CostSeries, tuple[str, Mapping[date, float]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        reader: TenantReader,
        charged: ComparableCosts,
        judged: Sequence[date],
        listed: Sequence[_FoundStory],
        by: Criteria,
    ) -> Self:
        """Return the sources of some stories."""
        if not listed:
            return cls(judged)
        totals = charged.of_all_identities() if reader.sees_everything else {}
        parts = charged.of_parts({each.series for each in listed})
        return cls(judged, parts, totals, charged.policies(), charged.usage(by.drivers))

    def contributors(self, found: _FoundStory) -> list[AnomalyContributor]:
        """Return the parts of a series that contribute to its story, the largest first."""
        before = self._before(found)
        parts = sorted(self.parts.get(found.series, {}).items())
        made = [_contributor(found, part, costs, before) for part, costs in parts]
        made = [each for each in made if each.impact * found.story.impact > 0]
        return sorted(made, key=lambda each: -abs(each.impact))

    def is_share(self, found: _FoundStory, contributors: Sequence[AnomalyContributor]) -> bool:
        """Return whether less is charged only because others have a larger share: the total cost of the largest
        contributors has not fallen, or by at most half of the difference."""
        if found.story.rises or not contributors or not self.totals:
            return False
        largest = contributors[0]
        costs = self.totals[largest.product_type, largest.resource_id]
        part = (largest.identity_id, largest.product_type, largest.resource_id)
        together = _contributor(found, part, costs, self._before(found))
        return together.impact > largest.impact / 2

    def is_by_policy(self, found: _FoundStory, contributors: Sequence[AnomalyContributor]) -> bool:
        """Return whether the story mostly comes from product types whose policy changed when it began, or some days
        before."""
        moved = sum(each.impact for each in contributors if self._has_moved(each.product_type, found.first))
        return bool(contributors) and moved / found.story.impact >= _MOSTLY

    def growth(self, found: _FoundStory) -> tuple[str, float] | None:
        """Return the measure that drives the costs and its growth, if the costs have grown as much."""
        measure, used = self.usage.get(found.series, ("", {}))
        if not used or not found.story.rises:
            return None
        days = found.story.days
        usual = sum(_usual(used.get, each.day, self._before(found)) for each in days)
        cost = sum(each.actual for each in days) / sum(each.expected for each in days)
        grown = sum(used.get(each.day, 0.0) for each in days) / usual if usual else 0.0
        return (measure, grown - 1) if abs(grown - cost) <= _AS_MUCH else None

    def _has_moved(self, product_type: str, day: date) -> bool:
        by_day = self.policies.get(product_type, {})
        before = [policy for its, policy in by_day.items() if its <= day - timedelta(days=SHIFTED)]
        since = next((policy for its, policy in by_day.items() if its >= day), None)
        return bool(before) and since is not None and before[-1] != since

    def _before(self, found: _FoundStory) -> list[date]:
        return [day for day in self.judged if found.first - timedelta(days=WINDOW) <= day < found.first]


@dataclass(frozen=True)
class _Descriptions:
    """Describes stories: with their sources, related stories, marks and names."""

    sources: _Sources
    related: _Related
    remembered: Remembered
    names: Mapping[str, str]
    resource_names: Mapping[str, str]
    currency: str

    def item(self, found: _FoundStory, contributors: Sequence[AnomalyContributor]) -> AnomalyItem:
        """Return a story with its ``contributors``."""
        series, story, growth = found.series, found.story, self.sources.growth(found)
        return AnomalyItem(
            **_series_fields(series),
            id=found.id,
            direction=found.direction,
            state=story.state,
            first_date=found.first,
            last_date=story.days[-1].day,
            impact=round(story.impact, 2),
            sentence="".join(self._sentence(found, contributors, growth)),
            days=[
                AnomalyDay(
                    date=each.day,
                    actual=round(each.actual, 2),
                    expected=round(each.expected, 2),
                    scales=round(each.scales, 1),
                )
                for each in story.days
            ],
            belongs_to=self.related.owner(series),
            mark=self.remembered.mark(series, found.first),
            told_at=self.remembered.reported.get(found.id),
            goes_with=self.related.reported_by(found),
            growth_of=growth[0] if growth else None,
            by_policy=self.sources.is_by_policy(found, contributors),
            others_used_more=self.sources.is_share(found, contributors),
            contributors=contributors[:_CONTRIBUTORS],
        )

    def _sentence(
        self, found: _FoundStory, contributors: Sequence[AnomalyContributor], growth: tuple[str, float] | None
    ) -> Iterator[str]:
        series, story = found.series, found.story
        first = story.days[0]
        actual, expected = (
            money_text(Decimal(str(round(each, 2))), self.currency) for each in (first.actual, first.expected)
        )
        times = first.actual / first.expected
        yield f"{self._name(series.who)} was charged {actual} "
        yield f"for {series.product_category} on" if series.product_category else "on"
        yield f" {first.day}, "
        yield f"{times:.1f} times" if times >= 2 else f"{abs(times - 1):.0%} {'more' if story.rises else 'less'} than"
        yield f" the usual {expected}"
        if len(story.days) > 1:
            yield f"; {len(story.days)} days in a row"
        if story.state == "level_shift":
            yield ", after which it is taken for the new level"
        if contributors:
            largest = contributors[0]
            yield f"; {'mostly' if largest.impact / story.impact >= _MOSTLY else 'the largest part'} "
            yield f"{self._name(largest.identity_id)}: " if series.category else ""
            yield f"{largest.product_type} of {self.resource_names.get(largest.resource_id, largest.resource_id)}"
        if growth:
            yield f"; {growth[0]} has grown by {growth[1]:.0%}"

    def _name(self, who: str) -> str:
        return self.names.get(who, who)


def _usual(of_day: Callable[[date, float], float], day: date, before: Sequence[date]) -> float:
    """Return the median of the weekday of ``day`` on some days before."""
    return median([of_day(each, 0.0) for each in before if each.weekday() == day.weekday()] or [0.0])


def _contributor(
    found: _FoundStory, part: Part, costs: Mapping[date, SeriesDay], before: Sequence[date]
) -> AnomalyContributor:
    def cost_on(day: date, nothing: float = 0.0) -> float:
        return costs[day].cost if day in costs else nothing

    identity, product_type, resource = part
    away = {each.day: cost_on(each.day) - _usual(cost_on, each.day, before) for each in found.story.days}
    furthest = max(away, key=lambda day: abs(away[day]))
    actual = sum(map(cost_on, away))
    explain = None
    if furthest in costs:
        key = {"date": f"{furthest}", "line_id": costs[furthest].line, "identity_id": identity}
        explain = f"chargebacks/explain?{urlencode(key)}"
    impact = sum(away.values())
    return AnomalyContributor(
        identity_id=identity,
        product_type=product_type,
        resource_id=resource,
        actual=round(actual, 2),
        expected=round(actual - impact, 2),
        impact=round(impact, 2),
        explain=explain,
    )
