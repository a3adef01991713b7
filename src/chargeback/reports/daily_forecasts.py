"""Forecasts of daily costs, in total and by the values of a column."""

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
    """The forecast of the rows of a value."""

    value: str | None = Field(description="Null for rows without a value, and for all rows together.")
    name: str | None = Field(description="The display name of an identity or a resource, if one is known.")
    month_end: CostForecast | None = Field(
        description="The cost of the month of the last known day; null if it is over, or if there are too few days."
    )
    days: DailyForecast | None = Field(description="The future days; null if there are too few known days.")


class ForecastAnswer(ResponseModel):
    """The expected costs of future days: estimates, rounded to cents."""

    currency: str
    actual_to: date | None = Field(description="The last known day; null if none is calculated.")
    until: date | None
    total: ForecastItem
    items: list[ForecastItem] = Field(
        description="The values with the largest costs, the largest first. Each is forecast separately, so the sum may "
        "differ."
    )


@dataclass(frozen=True)
class ForecastRequest:
    """A request for a forecast: the rows (of any days), the known days, the last day, and the column with the number of
    values."""

    selection: Selection
    known: DayRange
    until: date
    by: str | None
    top: int


def daily_forecasts(
    reader: TenantReader,
    request: ForecastRequest,
    currency: str,
    named: Callable[[Collection[str | None]], Mapping[str, str]],
) -> ForecastAnswer:
    """Return the forecast; ``named`` returns the display names of some values.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    scheduled = scheduled_types(reader, request.known)
    whole = history(reader, request.selection, request.known, scheduled)
    groups = {} if request.by is None else _groups(reader, request, request.by, scheduled)
    names = named(groups)

    def _item(value: str | None, known: History) -> ForecastItem:
        return ForecastItem(
            value=value,
            name=None if value is None else names.get(value),
            month_end=forecast(known, currency),
            days=daily_forecast(known, request.until, currency),
        )

    return ForecastAnswer(
        currency=currency,
        actual_to=whole.last,
        until=request.until,
        total=_item(None, whole),
        items=[_item(value, known) for value, known in groups.items()],
    )


def _groups(
    reader: TenantReader, request: ForecastRequest, by: str, scheduled: Sequence[str]
) -> dict[str | None, History]:
    """Return the histories of the values of a column, the most expensive first."""
    days = list(request.known)
    columns = [by, "product_type"] if scheduled else [by]
    selection = replace(request.selection, window=request.known.window)
    amounts: dict[str | None, dict[date, list[Decimal]]] = {}
    fees: dict[str | None, dict[date, list[Decimal]]] = {}
    for (day, (value, *kind)), amount in daily_sums_by(reader, CHARGEBACKS, selection, columns).items():
        amounts.setdefault(value, {}).setdefault(day, []).append(amount)
        if kind and kind[0] in scheduled:
            fees.setdefault(value, {}).setdefault(day, []).append(amount)
    sums = {value: total(each for some in found.values() for each in some) for value, found in amounts.items()}
    largest = sorted(sums, key=lambda value: (-sums[value], value or ""))[: request.top]
    return {
        value: History(
            request.known,
            [total(amounts[value].get(day, [_NOTHING])) for day in days],
            {day: total(some) for day, some in fees.get(value, {}).items()},
        )
        for value in largest
    }


def nothing_known(currency: str) -> ForecastAnswer:
    """Return the forecast if no day is calculated."""
    nothing = ForecastItem(value=None, name=None, month_end=None, days=None)
    return ForecastAnswer(currency=currency, actual_to=None, until=None, total=nothing, items=[])


def usual_until(known: DayRange) -> date:
    """Return the default last day of a forecast: the end of the month of the first future day."""
    return month_of(known.end).end - ONE_DAY
