"""Days on which somebody's costs stand out, from what is charged at constant prices."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, Literal

from pydantic import Field

from chargeback.model.anomalies import WINDOW, Floors, Story, stories
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.answers import ResponseModel
from chargeback.reports.wording import money_text
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection

#: What is billed on so few days of a month is a fee, and stands out of nothing.
_FEE_DAYS: Final = 3
_Series = tuple[str, str]


class AnomalyDay(ResponseModel):
    """A day that stands out. The numbers are estimates, at constant prices."""

    date: date
    actual: float = Field(description="What was charged, at the latest price.")
    expected: float = Field(description="The median of the weekday in the eight weeks before.")
    scales: float = Field(description="How far that is away, in units of how far days of the series usually are.")


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
    names: dict[str, str] = Field(description="The display names of the identities. Those without one are left out.")


@dataclass(frozen=True)
class Asked:
    """What is asked for: the days, what has to be exceeded, and how many stories at most."""

    days: DayRange
    floors: Floors
    limit: int


def anomalies(
    reader: TenantReader,
    states: Mapping[date, DayState],
    asked: Asked,
    currency: str,
    named: Callable[[Collection[str]], Mapping[str, str]],
) -> AnomaliesAnswer:
    """Return what stands out in some days; ``named`` returns the display names of some identities.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    looked_at = DayRange(asked.days.start - timedelta(days=WINDOW), asked.days.end)
    judged = [day for day in looked_at if day in states and _why_not(states[day]) is None]
    costs = _daily_costs(reader, looked_at)
    found = [
        (series, story)
        for series in sorted(costs)
        for story in stories(costs[series], judged, asked.floors, asked.days.start)
    ]
    found.sort(key=lambda each: (-abs(each[1].impact), each[0]))
    listed = found[: asked.limit]
    names = named({identity for (identity, _), _ in listed})
    known = [day for day in asked.days if day in states]
    return AnomaliesAnswer(
        start_date=asked.days.start,
        end_date=asked.days.end - ONE_DAY,
        currency=currency,
        judged_through=max((day for day in judged if day in asked.days), default=None),
        not_judged=[NotJudged(date=day, reason=reason) for day in known if (reason := _why_not(states[day]))],
        series=len(costs),
        items=[_item(series, story, currency, names) for series, story in listed],
        more=len(found) - len(listed),
        names=dict(sorted(names.items())),
    )


def _why_not(state: DayState) -> Literal["not calculated", "the bill has changed", "measurements are missing"] | None:
    if not state.was_calculated:
        return "not calculated"
    if not state.chargebacks.is_current:
        return "the bill has changed"
    return "measurements are missing" if state.incomplete else None


def _daily_costs(reader: TenantReader, days: DayRange) -> dict[_Series, dict[date, float]]:
    """Return the cost of each identity for each product group by day: what has a quantity at its latest price, without
    credits, and without what is billed on a few days of a month only."""
    charged = reader.scan(CHARGEBACKS, Selection.of_days(days))
    if not charged.files:
        return {}
    prices = _prices(reader, days)
    amount, condition = reader.plan.visible_amount(CHARGEBACKS, charged), charged.condition()
    rows = reader.cursor.new_name("charged_by_day")
    reader.cursor.run(
        f"""CREATE TEMP TABLE {rows} AS
            SELECT date, identity_id, product_category, product_type, resource_id, sum({amount})::DOUBLE AS amount
            FROM {SOURCE} WHERE {condition.sql} AND amount > 0 GROUP BY ALL""",
        condition.parameters,
    )
    found: dict[_Series, dict[date, float]] = {}
    for identity, category, day, cost in reader.cursor.rows(
        f"""SELECT identity_id, product_category, date, sum(amount * coalesce(factor, 1))
            FROM (SELECT *, count(*) OVER (
                      PARTITION BY identity_id, product_type, resource_id, date_trunc('month', date)) AS days_of_month
                  FROM {rows})
            LEFT JOIN {prices} USING (date, resource_id, product_type)
            WHERE days_of_month > {_FEE_DAYS} GROUP BY ALL"""
    ):
        found.setdefault((identity, category), {})[day] = cost
    return found


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


def _item(series: _Series, story: Story, currency: str, names: Mapping[str, str]) -> AnomalyItem:
    identity, category = series
    direction: Literal["up", "down"] = "up" if story.rises else "down"
    told_apart_by = json.dumps([identity, category, direction, f"{story.days[0].day}"])
    return AnomalyItem(
        id=hashlib.blake2b(told_apart_by.encode(), digest_size=8).hexdigest(),
        identity_id=identity,
        product_category=category,
        direction=direction,
        state=story.state,
        first_date=story.days[0].day,
        last_date=story.days[-1].day,
        impact=round(story.impact, 2),
        sentence="".join(_sentence(names.get(identity, identity), category, story, currency)),
        days=[
            AnomalyDay(
                date=each.day,
                actual=round(each.actual, 2),
                expected=round(each.expected, 2),
                scales=round(each.scales, 1),
            )
            for each in story.days
        ],
    )


def _sentence(who: str, category: str, story: Story, currency: str) -> Iterator[str]:
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
