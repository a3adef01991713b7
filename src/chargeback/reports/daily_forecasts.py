"""What the days to come are expected to cost, in all and by the values of a column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final

from pydantic import Field

from chargeback.model.days import ONE_DAY, DayRange, month_of
from chargeback.model.money import total
from chargeback.reports.answers import ResponseModel
from chargeback.reports.forecast import (
    CostForecast,
    DailyForecast,
    History,
    daily_forecast,
    forecast,
    history,
    scheduled_types,
)
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_sums_by

_NOTHING: Final = Decimal(0)


class ForecastItem(ResponseModel):
    """What is expected of the rows of a value."""

    value: str | None = Field(description="Null for rows without a value, and for all rows together.")
    name: str | None = Field(description="The display name of an identity or a resource, where one is known.")
    month_end: CostForecast | None = Field(
        description="The month of the last known day at its end; null if it is over, or if there are too few days."
    )
    days: DailyForecast | None = Field(description="The days to come; null if there are too few days to tell.")


class ForecastAnswer(ResponseModel):
    """What days to come are expected to cost: estimates, rounded to cents."""

    currency: str
    actual_to: date | None = Field(description="The last known day; null if none is calculated.")
    until: date | None
    total: ForecastItem
    items: list[ForecastItem] = Field(
        description="The values with the largest costs, those first. Each is forecast by itself: they need not add up."
    )


@dataclass(frozen=True)
class AskedForecast:
    """Which rows are meant (of any days), until which day, and by which column for how many of its values."""

    selection: Selection
    known: DayRange
    until: date
    by: str | None
    top: int


def daily_forecasts(
    reader: TenantReader,
    asked: AskedForecast,
    currency: str,
    named: Callable[[Collection[str | None]], Mapping[str, str]],
) -> ForecastAnswer:
    """Return what is expected; ``named`` returns the display names of some values.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    scheduled = scheduled_types(reader, asked.known)
    whole = history(reader, asked.selection, asked.known, scheduled)
    groups = {} if asked.by is None else _groups(reader, asked, asked.by, scheduled)
    names = named(groups)

    def _item(value: str | None, known: History) -> ForecastItem:
        return ForecastItem(
            value=value,
            name=None if value is None else names.get(value),
            month_end=forecast(known, currency),
            days=daily_forecast(known, asked.until, currency),
        )

    return ForecastAnswer(
        currency=currency,
        actual_to=whole.last,
        until=asked.until,
        total=_item(None, whole),
        items=[_item(value, known) for value, known in groups.items()],
    )


def _groups(reader: TenantReader, asked: AskedForecast, by: str, scheduled: Sequence[str]) -> dict[str | None, History]:
    """Return the histories of the values of a column, the most expensive first."""
    days = list(asked.known)
    columns = [by, "product_type"] if scheduled else [by]
    selection = replace(asked.selection, window=asked.known.window)
    amounts: dict[str | None, dict[date, list[Decimal]]] = {}
    fees: dict[str | None, dict[date, list[Decimal]]] = {}
    for (day, (value, *kind)), amount in daily_sums_by(reader, CHARGEBACKS, selection, columns, days).items():
        amounts.setdefault(value, {}).setdefault(day, []).append(amount)
        if kind and kind[0] in scheduled:
            fees.setdefault(value, {}).setdefault(day, []).append(amount)
    sums = {value: total(each for some in found.values() for each in some) for value, found in amounts.items()}
    largest = sorted(sums, key=lambda value: (-sums[value], value or ""))[: asked.top]
    return {
        value: History(
            asked.known,
            [total(amounts[value].get(day, [_NOTHING])) for day in days],
            {day: total(some) for day, some in fees.get(value, {}).items()},
        )
        for value in largest
    }


def nothing_known(currency: str) -> ForecastAnswer:
    """Return the answer where no day is calculated."""
    nothing = ForecastItem(value=None, name=None, month_end=None, days=None)
    return ForecastAnswer(currency=currency, actual_to=None, until=None, total=nothing, items=[])


def usual_until(known: DayRange) -> date:
    """Return the end of the month that is forecast if nothing else is asked for: that of the first day to come."""
    return month_of(known.end).end - ONE_DAY
