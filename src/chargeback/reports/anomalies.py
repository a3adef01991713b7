"""Days on which somebody's costs stand out, from what is charged at constant prices."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Any, Final, Literal
from urllib.parse import urlencode

from pydantic import Field

from chargeback.model.anomalies import WINDOW, Floors, Story, drift, stories
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.reports.wording import money_text
from chargeback.store.control.anomaly_marks import CONFIRMED, AnomalyMark, MarkStatus, newest_mark
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection

#: What is billed on so few days of a month is a fee, and stands out of nothing.
_FEE_DAYS: Final = 3
#: How many contributors are named.
_CONTRIBUTORS: Final = 3
#: How much of what has moved slowly is listed.
_DRIFTS: Final = 20
#: From which part of a story on one of them is most of it.
_MOSTLY: Final = 0.6
_Series = tuple[str, str]
#: A product type of a resource.
_Part = tuple[str, str]


class AnomalyDay(ResponseModel):
    """A day that stands out. The numbers are estimates, at constant prices."""

    date: date
    actual: float = Field(description="What was charged, at the latest price.")
    expected: float = Field(description="The median of the weekday in the eight weeks before.")
    scales: float = Field(description="How far that is away, in units of how far days of the series usually are.")


class AnomalyContributor(ResponseModel):
    """What a story comes from: a product type of a resource. The numbers are estimates, at constant prices, and need
    not add up to those of the story: the usual of a sum is not the sum of what is usual."""

    product_type: str
    resource_id: str
    actual: float
    expected: float
    impact: float
    explain: str | None = Field(
        description="The explanation of its largest amount on its furthest day, relative to this address; null if it "
        "costs nothing there.",
        examples=["chargebacks/explain?date=2026-11-14&line_id=0a1b2c&identity_id=sa-123abc"],
    )


class MarkItem(ResponseModel):
    """What somebody knows of days that stand out, or will."""

    id: int
    identity_id: str
    product_category: str | None = Field(description="Null for all product groups.")
    status: MarkStatus = Field(
        description="`confirmed`: it was worth telling. `planned`, `expected` and `dismissed` (a false alarm) put the "
        "days aside: nobody is told, and no later day is compared with them."
    )
    start_date: date
    end_date: date
    note: str
    created_by: str
    created_at: Instant


class AnomalyItem(ResponseModel):
    """Days in a row on which the costs of an identity for a product group stand out in one direction."""

    id: str = Field(description="The same as long as its first day is, as in the subject of its events.")
    identity_id: str
    product_category: str
    direction: Literal["up", "down"]
    state: Literal["open", "resolved", "level_shift"] = Field(
        description="`open`: the last judged day stands out as well; `level_shift`: after three days in a row that is "
        "the new level, and later days are compared with it."
    )
    first_date: date
    last_date: date
    impact: float = Field(description="What was charged more than expected on these days; negative if it was less.")
    sentence: str
    days: list[AnomalyDay]
    mark: MarkItem | None = Field(description="What somebody knows of its first day.")
    told_at: Instant | None = Field(description="When it was told first; null if it was not.")
    goes_with: str | None = Field(
        description="The larger story of the same identity that begins on the same day in the same direction, which is "
        "told for both; null if there is none."
    )
    others_used_more: bool = Field(
        description="Of less, with `include=contributors`: what it mostly comes from cost as much as before in all, so "
        "that not the cost fell, but the share of it. It is not told."
    )
    contributors: list[AnomalyContributor] = Field(
        description=f"The {_CONTRIBUTORS} largest, with `include=contributors`; empty without."
    )

    @property
    def is_aside(self) -> bool:
        """Whether somebody has put it aside."""
        return self.mark is not None and self.mark.status != CONFIRMED

    @property
    def is_consequence(self) -> bool:
        """Whether another story tells it: that of the same identity, or of those whose share has grown."""
        return self.goes_with is not None or self.others_used_more


class DriftItem(ResponseModel):
    """Costs of an identity for a product group that have moved without any day that stands out, at constant prices."""

    identity_id: str
    product_category: str
    before: float = Field(description="What a day of the four weeks before cost, by the median.")
    now: float = Field(description="What a day of the last week costs, by the median.")


class NotJudged(ResponseModel):
    """A day that is not judged, and why."""

    date: date
    reason: Literal["not calculated", "the bill has changed", "measurements are missing"]


class AnomaliesAnswer(ResponseModel):
    """What stands out in a period. A day is judged when it is calculated from its present bill with all measurements,
    and a series when 21 days of it are known; a day that is missing is never a day without cost."""

    start_date: date
    end_date: date
    currency: str
    judged_through: date | None = Field(description="The last day of the period that is judged.")
    not_judged: list[NotJudged]
    series: int = Field(description="How many series there are.")
    items: list[AnomalyItem] = Field(description="The largest impact first.")
    more: int = Field(description="How many more there are beyond `limit`.")
    drifts: list[DriftItem] = Field(
        description=f"What has moved slowly by the last judged day, the {_DRIFTS} largest first; nobody is told of it."
    )
    marked: dict[MarkStatus, int] = Field(description="How many of all of them have which mark.")
    days_to_detection: float | None = Field(
        description="How many days after their first one those that were told were told, by the median."
    )
    names: dict[str, str] = Field(description="The display names of the identities. Those without one are left out.")


@dataclass(frozen=True)
class Asked:
    """What is asked for: the days, what has to be exceeded, how many stories at most, only some of them by their ids
    (empty for all), and whether with what they come from."""

    days: DayRange
    floors: Floors
    limit: int
    ids: Collection[str] = ()
    contributors: bool = False


@dataclass(frozen=True)
class Remembered:
    """What is known of stories beside the facts: marks, the newest first, and when each was told, by its id."""

    marks: Sequence[AnomalyMark] = ()
    told: Mapping[str, datetime] = field(default_factory=dict)

    def aside(self, series: _Series) -> frozenset[date]:
        """Return the days of a series that are put aside."""
        return frozenset(day for each in self.marks if each.is_usual and each.is_about(*series) for day in each.days)

    def mark(self, series: _Series, day: date) -> MarkItem | None:
        """Return the newest mark of a day of a series."""
        found = newest_mark(self.marks, *series, day)
        return None if found is None else MarkItem.like(found)


def anomalies(
    reader: TenantReader,
    states: Mapping[date, DayState],
    asked: Asked,
    currency: str,
    remembered: Remembered,
    named: Callable[[Collection[str]], Mapping[str, str]],
) -> AnomaliesAnswer:
    """Return what stands out in some days; ``named`` returns the display names of some identities.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    looked_at = DayRange(asked.days.start - timedelta(days=WINDOW), asked.days.end)
    judged = [day for day in looked_at if day in states and _why_not(states[day]) is None]
    charged = _Charged(reader, looked_at)
    costs = charged.of_series()
    found = [
        _Found(series, story)
        for series in sorted(costs)
        for story in stories(costs[series], judged, asked.floors, asked.days.start, remembered.aside(series))
    ]
    found.sort(key=lambda each: (-abs(each.story.impact), each.series))
    if asked.ids:
        found = [each for each in found if each.id in asked.ids]
    drifts = _drifts(
        {series: costs[series] for series in costs.keys() - {each.series for each in found}}, judged, asked, remembered
    )
    listed = found[: asked.limit]
    parts = charged.of_parts({each.series for each in listed}) if asked.contributors else {}
    about = _About(
        judged,
        parts,
        charged.of_everybody() if parts and reader.sees_everything else {},
        remembered,
        named({each.series[0] for each in listed} | {each.identity_id for each in drifts}),
        currency,
    )
    marks = [remembered.mark(each.series, each.first) for each in found]
    told = [(remembered.told[each.id].date() - each.first).days for each in found if each.id in remembered.told]
    known = [day for day in asked.days if day in states]
    return AnomaliesAnswer(
        start_date=asked.days.start,
        end_date=asked.days.end - ONE_DAY,
        currency=currency,
        judged_through=max((day for day in judged if day in asked.days), default=None),
        not_judged=[NotJudged(date=day, reason=reason) for day in known if (reason := _why_not(states[day]))],
        series=len(costs),
        items=[about.item(each, larger=listed[:number]) for number, each in enumerate(listed)],
        more=len(found) - len(listed),
        drifts=drifts,
        marked=dict(Counter(each.status for each in marks if each is not None)),
        days_to_detection=median(told) if told else None,
        names=dict(sorted(about.names.items())),
    )


def _drifts(
    costs: Mapping[_Series, Mapping[date, float]], judged: Sequence[date], asked: Asked, remembered: Remembered
) -> list[DriftItem]:
    """Return which of some series have moved slowly, the largest change first."""
    moved = {series: drift(costs[series], judged, asked.floors, remembered.aside(series)) for series in sorted(costs)}
    known = [(series, how) for series, how in moved.items() if how is not None]
    known.sort(key=lambda each: -abs(each[1].now - each[1].before))
    return [
        DriftItem(identity_id=identity, product_category=category, before=round(how.before, 2), now=round(how.now, 2))
        for (identity, category), how in known[:_DRIFTS]
    ]


def _why_not(state: DayState) -> Literal["not calculated", "the bill has changed", "measurements are missing"] | None:
    if not state.was_calculated:
        return "not calculated"
    if not state.chargebacks.is_current:
        return "the bill has changed"
    return "measurements are missing" if state.incomplete else None


@dataclass(frozen=True)
class _Found:
    """A story of a series."""

    series: _Series
    story: Story

    @property
    def first(self) -> date:
        """Its first day."""
        return self.story.days[0].day

    @property
    def direction(self) -> Literal["up", "down"]:
        """Whether more or less is spent."""
        return "up" if self.story.rises else "down"

    @property
    def id(self) -> str:
        """What tells it apart."""
        told_apart_by = json.dumps([*self.series, self.direction, f"{self.first}"])
        return hashlib.blake2b(told_apart_by.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class _Cost:
    """What a part of a series cost on a day, and the line of its largest amount."""

    cost: float
    line: str


class _Charged:
    """The cost of each identity by product group and day: what has a quantity at its latest price, without credits, and
    without what is billed on a few days of a month only."""

    def __init__(self, reader: TenantReader, days: DayRange) -> None:
        self._cursor = reader.cursor
        charged = reader.scan(CHARGEBACKS, Selection.of_days(days))
        self._source: str | None = None
        if not charged.files:
            return
        prices, rows = _prices(reader, days), reader.cursor.new_name("charged_by_day")
        amount, condition = reader.plan.visible_amount(CHARGEBACKS, charged), charged.condition()
        self._cursor.run(
            f"""CREATE TEMP TABLE {rows} AS
                SELECT date, identity_id, product_category, product_type, resource_id, sum({amount})::DOUBLE AS amount,
                       arg_max(line_id, {amount}) AS line_id
                FROM {SOURCE} WHERE {condition.sql} AND amount > 0 GROUP BY ALL""",
            condition.parameters,
        )
        self._source = f"""(
            SELECT *, amount * coalesce(factor, 1) AS cost
            FROM (SELECT *, count(*) OVER (
                      PARTITION BY identity_id, product_type, resource_id, date_trunc('month', date)) AS days_of_month
                  FROM {rows})
            LEFT JOIN {prices} USING (date, resource_id, product_type)
            WHERE days_of_month > {_FEE_DAYS})"""

    def of_series(self) -> dict[_Series, dict[date, float]]:
        """Return the cost of each series by day."""
        found: dict[_Series, dict[date, float]] = {}
        for identity, category, day, cost in self._rows(
            "identity_id, product_category, date, sum(cost)", "GROUP BY ALL"
        ):
            found.setdefault((identity, category), {})[day] = cost
        return found

    def of_parts(self, wanted: Collection[_Series]) -> dict[_Series, dict[_Part, dict[date, _Cost]]]:
        """Return what some series are made of, by day."""
        found: dict[_Series, dict[_Part, dict[date, _Cost]]] = {}
        columns = "identity_id, product_category, product_type, resource_id, date, cost, line_id"
        asked = {"identities": sorted({identity for identity, _ in wanted})}
        rows = self._rows(columns, "WHERE list_contains($identities, identity_id)", asked)
        for identity, category, product_type, resource, day, cost, line in rows:
            if (identity, category) in wanted:
                parts = found.setdefault((identity, category), {})
                parts.setdefault((product_type, resource), {})[day] = _Cost(cost, line)
        return found

    def of_everybody(self) -> dict[_Part, dict[date, _Cost]]:
        """Return what everybody together was charged for each part, by day."""
        found: dict[_Part, dict[date, _Cost]] = {}
        for product_type, resource, day, cost in self._rows(
            "product_type, resource_id, date, sum(cost)", "GROUP BY ALL"
        ):
            found.setdefault((product_type, resource), {})[day] = _Cost(cost, "")
        return found

    def _rows(self, columns: str, which: str, asked: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        if self._source is None:
            return []
        return self._cursor.rows(f"SELECT {columns} FROM {self._source} {which}", asked)


@dataclass(frozen=True)
class _About:
    """What there is to say of stories: the ``parts`` of their series, if they are asked for, and of everybody together,
    if the reader sees that."""

    judged: Sequence[date]
    parts: Mapping[_Series, Mapping[_Part, Mapping[date, _Cost]]]
    totals: Mapping[_Part, Mapping[date, _Cost]]
    remembered: Remembered
    names: Mapping[str, str]
    currency: str

    def item(self, found: _Found, larger: Sequence[_Found]) -> AnomalyItem:
        """Return a story; the ``larger`` ones have been told before it."""
        (identity, category), story = found.series, found.story
        contributors = self._contributors(found)
        return AnomalyItem(
            id=found.id,
            identity_id=identity,
            product_category=category,
            direction=found.direction,
            state=story.state,
            first_date=found.first,
            last_date=story.days[-1].day,
            impact=round(story.impact, 2),
            sentence="".join(
                _sentence(self.names.get(identity, identity), category, story, self.currency, contributors)
            ),
            days=[
                AnomalyDay(
                    date=each.day,
                    actual=round(each.actual, 2),
                    expected=round(each.expected, 2),
                    scales=round(each.scales, 1),
                )
                for each in story.days
            ],
            mark=self.remembered.mark(found.series, found.first),
            told_at=self.remembered.told.get(found.id),
            goes_with=_goes_with(found, larger),
            others_used_more=self._is_share(found, contributors),
            contributors=contributors,
        )

    def _contributors(self, found: _Found) -> list[AnomalyContributor]:
        """Return the parts of a series that its story comes from, the largest first."""
        before = self._before(found)
        parts = sorted(self.parts.get(found.series, {}).items())
        made = [_contributor(found, part, costs, before) for part, costs in parts]
        made = [each for each in made if each.impact * found.story.impact > 0]
        return sorted(made, key=lambda each: -abs(each.impact))[:_CONTRIBUTORS]

    def _is_share(self, found: _Found, contributors: Sequence[AnomalyContributor]) -> bool:
        """Return whether less is charged only because others have a larger share: what it mostly comes from has cost
        all of them together no less, or less by no more than half of that."""
        if found.story.rises or not contributors or not self.totals:
            return False
        largest = contributors[0]
        part = (largest.product_type, largest.resource_id)
        together = _contributor(found, part, self.totals[part], self._before(found))
        return together.impact > largest.impact / 2

    def _before(self, found: _Found) -> list[date]:
        return [day for day in self.judged if found.first - timedelta(days=WINDOW) <= day < found.first]


def _goes_with(found: _Found, larger: Sequence[_Found]) -> str | None:
    """Return the first of the larger stories that a story goes with."""
    mine = (found.series[0], found.first, found.direction)
    return next((each.id for each in larger if (each.series[0], each.first, each.direction) == mine), None)


def _contributor(found: _Found, part: _Part, costs: Mapping[date, _Cost], before: Sequence[date]) -> AnomalyContributor:
    def cost_on(day: date) -> float:
        return costs[day].cost if day in costs else 0.0

    away = {}
    for each in found.story.days:
        usual = median([cost_on(day) for day in before if day.weekday() == each.day.weekday()] or [0.0])
        away[each.day] = cost_on(each.day) - usual
    furthest = max(away, key=lambda day: abs(away[day]))
    actual = sum(map(cost_on, away))
    explain = None
    if furthest in costs:
        key = {"date": f"{furthest}", "line_id": costs[furthest].line, "identity_id": found.series[0]}
        explain = f"chargebacks/explain?{urlencode(key)}"
    product_type, resource = part
    impact = sum(away.values())
    return AnomalyContributor(
        product_type=product_type,
        resource_id=resource,
        actual=round(actual, 2),
        expected=round(actual - impact, 2),
        impact=round(impact, 2),
        explain=explain,
    )


def _prices(reader: TenantReader, days: DayRange) -> str:
    """Make the table of the factors by which amounts of a day become those at the latest price; return its name."""
    billed = reader.unscoped().scan(BILLING_LINES, Selection.of_days(days))
    table = reader.cursor.new_name("prices")
    if not billed.files:
        reader.cursor.run(
            f"CREATE TEMP TABLE {table} (date DATE, resource_id VARCHAR, product_type VARCHAR, factor DOUBLE)", {}
        )
        return table
    condition = billed.condition()
    reader.cursor.run(
        f"""CREATE TEMP TABLE {table} AS
            SELECT date, resource_id, product_type,
                   arg_max(price, date) OVER (PARTITION BY resource_id, product_type) / price AS factor
            FROM (SELECT date, resource_id, product_type, (sum(total_cost) / sum(quantity))::DOUBLE AS price
                  FROM {SOURCE} WHERE {condition.sql} AND quantity > 0 AND total_cost > 0 GROUP BY ALL)""",
        condition.parameters,
    )
    return table


def _sentence(
    who: str, category: str, story: Story, currency: str, contributors: Sequence[AnomalyContributor]
) -> Iterator[str]:
    first = story.days[0]
    actual, expected = (money_text(Decimal(str(round(each, 2))), currency) for each in (first.actual, first.expected))
    times = first.actual / first.expected
    yield f"{who} was charged {actual} for {category} on {first.day}, "
    yield f"{times:.1f} times" if times >= 2 else f"{abs(times - 1):.0%} {'more' if story.rises else 'less'} than"
    yield f" the usual {expected}"
    if len(story.days) > 1:
        yield f"; {len(story.days)} days in a row"
    if story.state == "level_shift":
        yield ", after which it is taken for the new level"
    if contributors:
        largest = contributors[0]
        yield f"; {'mostly' if largest.impact / story.impact >= _MOSTLY else 'the largest part'} "
        yield f"{largest.product_type} of {largest.resource_id}"
