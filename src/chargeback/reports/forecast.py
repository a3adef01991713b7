"""Forecasts of a month and of future days, with their intervals.

Whether a cost grows or only fluctuates is unknown, so several methods estimate the future days, each weighted by its
past accuracy. Costs before a step are adjusted to the present level: a step is where the median of two weeks differs
from that of the four weeks before by a tenth, and by four times the difference that noise alone causes. Steps are found
with floats; amounts stay whole numbers.

A day with an unusual cost does not change the expected costs, which are medians. The interval consists of the past
errors of the whole method, with and without the most unusual day of each, so that a usual rest of the month stays
possible. Costs that are billed on a few days of each month, such as fees, are expected on the same days again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import exp, log, sqrt
from operator import mul, sub
from statistics import median, median_high
from typing import Final, Self

from pydantic import Field

from chargeback.model.cents import rounded_cents
from chargeback.model.currency import Conversion
from chargeback.model.days import ONE_DAY, DayRange, month_of
from chargeback.model.money import from_units, to_units, total
from chargeback.reports.answers import Amount, ResponseModel
from chargeback.store.control.days import DayState
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import daily_amounts, daily_sums_by

WEEK: Final = 7
#: The minimum number of known days for a forecast: every weekday twice.
FEWEST_DAYS: Final = 2 * WEEK
#: The minimum number of earlier windows from which the usual error is estimated.
MOST_RECENT: Final = 60
FEWEST_STRETCHES: Final = 10
#: How many days before the last one are used: two times twelve weeks, also for the earliest of these windows.
HISTORY: Final = MOST_RECENT + 24 * WEEK + 31

#: The days after and before a step, and the minimum numbers of days.
_AFTER, _BEFORE = 2 * WEEK, 4 * WEEK
_FEWEST_AFTER, _FEWEST_BEFORE = 5, 2 * WEEK
#: The minimum size of a step, as a logarithm, and in units of the usual difference of medians.
_LEAST, _UNITS = 0.1, 4.0
#: The minimum noise that is assumed for a series.
_STEADIEST: Final = 0.01
#: The standard error of a median of many days in relation to that of their mean, and that of a difference of two days
#: in relation to that of one day.
_OF_A_MEDIAN: Final = 1.25
_NORMAL: Final = 1.4826 / sqrt(2)
#: The minimum ratio of a cost to the usual one: a series that rises a thousandfold starts again.
_LEAST_PART: Final = 1e-6
_BEGINS: Final = log(1000)
_MOST_STEPS: Final = 5
_SCALE: Final = 20


@dataclass(frozen=True, slots=True)
class _Step:
    """The position of a step, its size as the logarithm of a ratio, and its certainty."""

    place: int
    change: float
    units: float


def at_present_level(costs: Sequence[int]) -> Sequence[int]:
    """Return daily costs up to the present as they would have been without steps. Days before the first cost, or before
    a series started again, are left out.

    >>> at_present_level([0, 0, *[10] * 28, *[20] * 14])[:2]
    [20, 20]
    """
    first = next((number for number, cost in enumerate(costs) if cost), 0)
    found = list(costs[first:])
    for _ in range(_MOST_STEPS):
        step = _surest_step(found)
        if step is None:
            break
        if step.change > _BEGINS:
            found = found[step.place :]
        else:
            factor = round(exp(step.change) * (1 << _SCALE))
            found[: step.place] = [(cost * factor) >> _SCALE for cost in found[: step.place]]
    return found


def _surest_step(costs: Sequence[int]) -> _Step | None:
    middle = median(costs) if costs else 0
    if middle <= 0 or len(costs) < _FEWEST_BEFORE + _FEWEST_AFTER:
        return None
    least = middle * _LEAST_PART
    usual = [max(least, median(costs[weekday::WEEK])) for weekday in range(WEEK)]
    levels = [log(max(cost, least) / usual[number % WEEK]) for number, cost in enumerate(costs)]
    apart = sorted(abs(later - earlier) for earlier, later in zip(levels, levels[WEEK:], strict=False))
    noise = max(_STEADIEST, _NORMAL * apart[len(apart) // 2])
    found: _Step | None = None
    for place in range(_FEWEST_BEFORE, len(levels) - _FEWEST_AFTER + 1):
        after, before = levels[place : place + _AFTER], levels[max(0, place - _BEFORE) : place]
        change = median_high(after) - median_high(before)
        if abs(change) < _LEAST:
            continue
        usually = noise * _OF_A_MEDIAN * sqrt(1 / len(after) + 1 / len(before))
        units = abs(change) / usually
        if units > _UNITS and (found is None or units > found.units):
            found = _Step(place, change, units)
    return found


_TENTH: Final = Fraction(1, 10)
_NOTHING: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class _Method:
    """A method of estimating the cost of a future day: the median of its weekday in the last ``weeks``, plus the median
    difference of the last ``days`` from it, if any. A method that ``grows`` continues the change of these weeks
    compared with as many weeks before, or as many as are known."""

    weeks: int
    days: int = 0
    grows: bool = False

    @property
    def words(self) -> str:
        """Return the method in words."""
        usual = f"the median of its weekday in the last {self.weeks} weeks"
        if self.grows:
            return f"{usual}, continuing their change compared with as many weeks before"
        if not self.days:
            return usual
        return f"{usual}, plus the median difference of the last {self.days} days from it"


_METHODS: Final = (_Method(4, WEEK), _Method(8), _Method(12, grows=True), _Method(16, grows=True))
#: The weights of the methods are whole numbers of this size.
_WEIGHT: Final = 10**6
#: Costs that are billed on at most this many days of a month are expected on the same days of the next month.
_SCHEDULED_DAYS: Final = 3
#: A day's unit of 10⁻¹² has this many parts, so that medians, and medians of medians, are whole numbers of parts.
_PARTS: Final = 4


class CostForecast(ResponseModel):
    """The forecast of the month of the last calculated day, for the rows that match the filters."""

    until: date
    actual_to: date
    actual: Amount
    expected: Amount
    # The cost is between these two in eight of ten cases.
    low: Amount
    high: Amount
    method: str = Field(description="How it was found, in words.")

    def converted(self, conversion: Conversion) -> Self:
        """Return the forecast in another currency, rounded to cents again."""

        def in_cents(amount: Decimal) -> Decimal:
            return rounded_cents(conversion.convert(self.until, amount), conversion.currency)

        actual = conversion.convert(self.until, self.actual)
        expected, low, high = map(in_cents, (self.expected, self.low, self.high))
        return self.model_copy(update={"actual": actual, "expected": expected, "low": low, "high": high})


class ForecastPoint(ResponseModel):
    """The forecast of a day: the cost is less than ``p50`` in five of ten cases, and between ``p10`` and ``p90`` in
    eight."""

    date: date
    p10: Amount
    p50: Amount
    p90: Amount


class DailyForecast(ResponseModel):
    """The forecast of future days, and the past errors of such forecasts."""

    method: str = Field(description="How it was found, in words.")
    points: list[ForecastPoint]
    wape: float | None = Field(
        description="The mean absolute past error of a day, as a part of the charged costs; null if nothing was "
        "charged."
    )
    bias: float | None = Field(
        description="The mean past error, in the same unit; positive if forecasts were too high."
    )
    coverage: float = Field(description="The part of past days whose cost was between `p10` and `p90`.")
    origins: int = Field(
        description="The number of earlier windows of the same length from which the errors are known."
    )
    history_days: int = Field(description="The number of known days that were used.")


def known_days(states: Mapping[date, DayState]) -> DayRange | None:
    """Return the days up to the last calculated one without a gap, at most as many as a forecast uses; None if there
    are none."""
    calculated = {day for day, state in states.items() if state.was_calculated}
    if not calculated:
        return None
    first = last = max(calculated)
    while first > last - timedelta(days=HISTORY) and first - ONE_DAY in calculated:
        first -= ONE_DAY
    return DayRange(first, last + ONE_DAY)


@dataclass(frozen=True)
class History:
    """The costs of some rows on days without a gap, at most as many as a forecast uses; ``scheduled`` are those that
    are billed on a few days of each month, which are expected on the same days again."""

    days: DayRange
    amounts: Sequence[Decimal]
    scheduled: Mapping[date, Decimal] = field(default_factory=dict)

    @property
    def last(self) -> date:
        """Return the last known day."""
        return self.days.end - ONE_DAY

    @cached_property
    def usual(self) -> Sequence[int]:
        """Return the costs that are not scheduled, at the present level, in parts of units."""
        pairs = zip(self.days, self.amounts, strict=True)
        return at_present_level(
            [(to_units(amount) - to_units(self.scheduled.get(day, _NOTHING))) * _PARTS for day, amount in pairs]
        )

    def expected_again(self, until: date) -> dict[date, int]:
        """Return the scheduled costs of the days after the last one, as a month before; in parts of units."""
        coming = DayRange(self.last + ONE_DAY, until + ONE_DAY)
        found = ((day, self.scheduled.get(_month_before(day, self.last))) for day in coming)
        return {day: to_units(amount) * _PARTS for day, amount in found if amount is not None}


def scheduled_types(reader: TenantReader, days: DayRange) -> tuple[str, ...]:
    """Return the product types of the whole bill that are billed on three days of a month or less, in at least two
    months: fees, support, minima.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    billed = reader.unscoped().scan(BILLING_LINES, Selection.of_days(days))
    if not billed.files:
        return ()
    condition = billed.condition()
    rows = reader.cursor.rows(
        f"""SELECT product_type FROM (
                SELECT product_type, count(DISTINCT date) AS days FROM {SOURCE} WHERE {condition.sql}
                GROUP BY product_type, date_trunc('month', date))
            GROUP BY product_type HAVING count(*) > 1 AND max(days) <= {_SCHEDULED_DAYS} ORDER BY ALL""",
        condition.parameters,
    )
    return tuple(name for (name,) in rows)


def history(
    reader: TenantReader,
    selection: Selection,
    days: DayRange,
    scheduled: Sequence[str],
    amounts: Mapping[date, Decimal] | None = None,
) -> History:
    """Return the costs of selected rows on some days; ``scheduled`` are the product types that are expected again, see
    :func:`scheduled_types`, and ``amounts`` are those of the days, if they are already known.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    within = replace(selection, window=days.window)
    amounts = daily_amounts(reader, CHARGEBACKS, within) if amounts is None else amounts
    fees: dict[date, list[Decimal]] = {}
    if scheduled:
        for (day, (kind,)), amount in daily_sums_by(reader, CHARGEBACKS, within, ["product_type"]).items():
            if kind in scheduled:
                fees.setdefault(day, []).append(amount)
    return History(days, [amounts.get(day, _NOTHING) for day in days], {day: total(fees[day]) for day in fees})


def forecast(known: History, currency: str) -> CostForecast | None:
    """Return the forecast of the month of the last known day, in ``currency``. None if the month is over, or if there
    are not enough days.
    """
    last = known.last
    until = month_of(last).end - ONE_DAY
    left = (until - last).days
    actual = total(known.amounts[-last.day :])
    if left == 0 or len(known.amounts) < last.day:
        return None
    blend = _Blend.of(known.usual, left)
    if blend is None:
        return None
    rest = sum(blend.expected) + sum(known.expected_again(until).values())
    # Windows overlap: the fewer of them are independent, the less certain is the error of the next one.
    wider = 1 + Fraction(left, len(blend.errors))
    ordered = [sorted(each) for each in zip(*map(_with_and_without, blend.errors), strict=True)]
    low = rest + min([Fraction(), *(_quantile(each, _TENTH) * wider for each in ordered)])
    high = rest + max([Fraction(), *(_quantile(each, 1 - _TENTH) * wider for each in ordered)])
    return CostForecast(
        until=until,
        actual_to=last,
        actual=actual,
        expected=_plus(actual, rest, currency),
        low=_plus(actual, low, currency),
        high=_plus(actual, high, currency),
        method=f"{blend.words} The interval consists of the errors of this mean over {len(blend.errors)} earlier "
        f"windows of {left} days, with and without the most unusual day of each, and is wider because these overlap.",
    )


def daily_forecast(known: History, until: date, currency: str) -> DailyForecast | None:
    """Return the forecast of each day after the last known one up to ``until``, and its past errors; None if there are
    not enough days."""
    left = (until - known.last).days
    blend = _Blend.of(known.usual, left)
    if blend is None:
        return None
    again = known.expected_again(until)
    by_day = [sorted(each) for each in zip(*blend.errors, strict=True)]
    points = []
    for number, (middle, errors) in enumerate(zip(blend.expected, by_day, strict=True)):
        day = known.last + timedelta(days=number + 1)
        expected = middle + again.get(day, 0)
        low, high = _interval(errors)
        p10, p50, p90 = (_plus(_NOTHING, expected + each, currency) for each in (low, 0, high))
        points.append(ForecastPoint(date=day, p10=p10, p50=p50, p90=p90))
    return DailyForecast(
        method=blend.words,
        points=points,
        wape=blend.wape,
        bias=blend.bias,
        coverage=blend.coverage(by_day),
        origins=len(blend.errors),
        history_days=len(known.amounts),
    )


@dataclass(frozen=True)
class _Blend:
    """The forecast of some days, in parts of units: the mean of the methods, weighted by their past accuracy; and its
    errors on each day of earlier windows."""

    weights: Sequence[int]
    expected: Sequence[int]
    errors: Sequence[Sequence[int]]
    costs: Sequence[Sequence[int]]

    @classmethod
    def of(cls, parts: Sequence[int], length: int) -> Self | None:
        """Return the forecast of the ``length`` days after ``parts``; None if there are too few to estimate its past
        errors."""
        first = max(FEWEST_DAYS, len(parts) - length - MOST_RECENT + 1)
        starts = range(first, len(parts) - length + 1)
        if len(starts) < FEWEST_STRETCHES:
            return None
        guesses = [_guesses(parts[:start], length) for start in starts]
        costs = [parts[start : start + length] for start in starts]
        weights = _weights(
            [
                sum(abs(sum(cost) - sum(guess[number])) for guess, cost in zip(guesses, costs, strict=True))
                for number in range(len(_METHODS))
            ]
        )
        errors = [
            [cost - guess for cost, guess in zip(real, _mean(guess, weights), strict=True)]
            for guess, real in zip(guesses, costs, strict=True)
        ]
        return cls(weights, _mean(_guesses(parts, length), weights), errors, costs)

    @property
    def words(self) -> str:
        """Return the method in words."""
        whole = sum(self.weights)
        parts = sorted(zip(self.weights, _METHODS, strict=True), key=lambda each: -each[0])
        methods = "; ".join(f"{each.words} ({weight / whole:.0%})" for weight, each in parts if weight * 200 >= whole)
        return f"A mean of methods, weighted by their past accuracy. The cost of a day is {methods}."

    @property
    def wape(self) -> float | None:
        """Return the mean absolute error of a day, as a part of the charged costs."""
        return self._part_of_costs(abs)

    @property
    def bias(self) -> float | None:
        """Return the mean error, as a part of the charged costs; positive if forecasts were too high."""
        return self._part_of_costs(lambda error: -error)

    def coverage(self, by_day: Sequence[Sequence[int]]) -> float:
        """Return the part of days of earlier windows whose cost was in the interval made of all other windows."""
        inside = []
        for errors in by_day:
            for number, error in enumerate(errors):
                low, high = _interval([*errors[:number], *errors[number + 1 :]])
                inside.append(low <= error <= high)
        return round(sum(inside) / len(inside), 4)

    def _part_of_costs(self, measure: Callable[[int], int]) -> float | None:
        charged = sum(map(sum, self.costs))
        return (
            round(sum(measure(error) for errors in self.errors for error in errors) / charged, 4)
            if charged > 0
            else None
        )


def _guesses(parts: Sequence[int], length: int) -> list[list[int]]:
    """Return the estimates of each method for the ``length`` days after some days.

    >>> _guesses([28, 28, 28, 28, 28, 8, 8] * 3 + [396, 28, 28, 28, 28, 8, 8], 7)[0]
    [28, 28, 28, 28, 28, 8, 8]
    """
    usual = {
        weeks: [_median(parts[-weeks * WEEK :][weekday - WEEK :: -WEEK]) for weekday in range(WEEK)]
        for weeks in {each.weeks for each in _METHODS}
    }
    return [_expected(parts, length, method, usual[method.weeks]) for method in _METHODS]


def _expected(parts: Sequence[int], length: int, method: _Method, usual: Sequence[int]) -> list[int]:
    moved = 0
    if method.grows:
        days = min(method.weeks, len(parts) // (2 * WEEK)) * WEEK
        step = _middle(list(map(sub, parts[-days:], parts[-2 * days : -days])))
        # The median of some weeks is the level in the middle of these weeks.
        ahead = [2 * WEEK * (day // WEEK + 1) + WEEK * (method.weeks - 1) for day in range(length)]
        return [usual[day % WEEK] + step * ahead[day] // (2 * days) for day in range(length)]
    if method.days:
        last = zip(parts[-method.days :], list(usual) * (method.days // WEEK), strict=True)
        moved = _median([cost - of_weekday for cost, of_weekday in last])
    return [usual[day % WEEK] + moved for day in range(length)]


def _middle(values: Sequence[int]) -> int:
    """Return the mean of the middle half of some values: nearly as accurate as their mean, but robust."""
    ordered = sorted(values)
    out = len(ordered) // 4
    half = ordered[out : len(ordered) - out]
    return sum(half) // len(half)


def _weights(far_off: Sequence[int]) -> list[int]:
    """Return the weight of each method: the inverse square of its past error.

    >>> _weights([10, 20, 10]), _weights([0, 5])
    ([1000000, 250000, 1000000], [1000000, 0])
    """
    nearest = min(far_off)
    if not nearest:
        return [0 if each else _WEIGHT for each in far_off]
    return [_WEIGHT * nearest * nearest // (each * each) for each in far_off]


def _mean(guesses: Sequence[Sequence[int]], weights: Sequence[int]) -> list[int]:
    whole = sum(weights)
    return [sum(map(mul, day, weights)) // whole for day in zip(*guesses, strict=True)]


def _with_and_without(errors: Sequence[int]) -> tuple[int, int]:
    """Return the error of a window, and the error if its largest error of a day is replaced by the median of the
    others."""
    whole, middle = sum(errors), _median(errors)
    return whole, whole - max(errors, key=lambda each: abs(each - middle)) + middle


def _month_before(day: date, last: date) -> date:
    """Return the same day of the last known month, or its last day if it is shorter."""
    while day > last:
        month = month_of(month_of(day).start - ONE_DAY)
        day = min(month.start + timedelta(days=day.day - 1), month.end - ONE_DAY)
    return day


def _median(values: Sequence[int]) -> int:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


def _quantile(ordered: Sequence[int], share: Fraction) -> Fraction:
    """Return the value below which ``share`` of the ordered values lie, interpolated between two of them."""
    place = share * (len(ordered) - 1)
    below = place.numerator // place.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _interval(ordered: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return the bounds within which errors are in eight of ten cases."""
    return min(Fraction(), _quantile(ordered, _TENTH)), max(Fraction(), _quantile(ordered, 1 - _TENTH))


def _plus(actual: Decimal, parts: Fraction | int, currency: str) -> Decimal:
    """Return ``actual`` plus some parts of units, rounded to cents: a forecast is not exact enough for more digits."""
    return rounded_cents(total([actual, from_units(round(Fraction(parts, _PARTS)))]), currency)
