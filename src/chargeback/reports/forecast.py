"""What a month will have cost at its end, and how sure that is.

Whether a cost goes on growing or only scatters is unknown, so several methods estimate the coming days, each weighted
by how near it would have been in the past. Costs before a step count at the present level, as if the step had come
earlier: a step is where the median of two weeks differs from that of the four weeks before by a tenth, and by four
times what noise alone makes such medians differ by. Estimates decide where a step is; amounts stay whole numbers.

A day that stands out changes neither the expected costs nor the possibility that the rest of the month is usual: what
is usual is a median, and the interval is made of the past errors of the whole method, with and without the most unusual
day of each. What is billed on a few days of each month, such as fees, is expected on the same days again.
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
#: The fewest days that a forecast is made of: every weekday twice.
FEWEST_DAYS: Final = 2 * WEEK
#: How many earlier stretches are needed to say how far off the method usually is.
MOST_RECENT: Final = 60
FEWEST_STRETCHES: Final = 10
#: How many days before the last one are looked at: two times twelve weeks, also for the earliest of these stretches.
HISTORY: Final = MOST_RECENT + 24 * WEEK + 31

#: The days after and before a step, and how many are needed at least.
_AFTER, _BEFORE = 2 * WEEK, 4 * WEEK
_FEWEST_AFTER, _FEWEST_BEFORE = 5, 2 * WEEK
#: By how much a step differs at least, as a logarithm, and in units of what medians differ by.
_LEAST, _UNITS = 0.1, 4.0
#: A series is never taken to be steadier than this.
_STEADIEST: Final = 0.01
#: A median of many days is that much less sure than their mean, and a difference of two days than one of them.
_OF_A_MEDIAN: Final = 1.25
_NORMAL: Final = 1.4826 / sqrt(2)
#: Nothing is a smaller part of what is usual than this; what rises a thousandfold begins anew.
_LEAST_PART: Final = 1e-6
_BEGINS: Final = log(1000)
_MOST_STEPS: Final = 5
_SCALE: Final = 20


@dataclass(frozen=True, slots=True)
class _Step:
    """Where a step is, by which logarithm of a ratio, and how sure that is."""

    place: int
    change: float
    units: float


def at_present_level(costs: Sequence[int]) -> Sequence[int]:
    """Return daily costs, the last one being of the present, as they would have been without steps. What was before the
    first cost, or before something began anew, is left out.

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
    """What a day to come is taken to cost: the median of its weekday in the last ``weeks``, and what the last ``days``
    cost more or less than that, by their median; nothing of it without days. One that ``grows`` goes on as these weeks
    have beside as many before, or as many as are known."""

    weeks: int
    days: int = 0
    grows: bool = False

    @property
    def words(self) -> str:
        """The method in words."""
        usual = f"the median of its weekday in the last {self.weeks} weeks"
        if self.grows:
            return f"{usual}, growing or falling on as these have beside as many before"
        if not self.days:
            return usual
        return f"{usual}, and as much more or less as the last {self.days} days did, by their median"


_METHODS: Final = (_Method(4, WEEK), _Method(8), _Method(12, grows=True), _Method(16, grows=True))
#: The weights of the methods are whole numbers of this size.
_WEIGHT: Final = 10**6
#: What is billed on so few days of a month, on the same ones as in the month before, comes again.
_SCHEDULED_DAYS: Final = 3
#: A day's units of 10⁻¹² have so many parts: a median of two is a whole number of them, and one of two such again.
_PARTS: Final = 4


class CostForecast(ResponseModel):
    """What the month of the last calculated day will have cost, of what matches the filters."""

    until: date
    actual_to: date
    actual: Amount
    expected: Amount
    # Between these two in eight of ten cases.
    low: Amount
    high: Amount
    method: str = Field(description="How it was found, in words.")

    def converted(self, conversion: Conversion) -> Self:
        """Return the same in another currency: what is expected is rounded to cents again."""

        def in_cents(amount: Decimal) -> Decimal:
            return rounded_cents(conversion.convert(self.until, amount), conversion.currency)

        actual = conversion.convert(self.until, self.actual)
        expected, low, high = map(in_cents, (self.expected, self.low, self.high))
        return self.model_copy(update={"actual": actual, "expected": expected, "low": low, "high": high})


class ForecastPoint(ResponseModel):
    """What a day is expected to cost: in five of ten cases less than ``p50``, in eight between ``p10`` and ``p90``."""

    date: date
    p10: Amount
    p50: Amount
    p90: Amount


class DailyForecast(ResponseModel):
    """What days to come are expected to cost, and how near such a forecast would have been before."""

    method: str = Field(description="How it was found, in words.")
    points: list[ForecastPoint]
    wape: float | None = Field(
        description="How far it would have been off, day by day, as a part of what was charged; null if nothing was."
    )
    bias: float | None = Field(description="By how much it would have been too high, the same way.")
    coverage: float = Field(description="On which part of the days what came lay between `p10` and `p90`.")
    origins: int = Field(description="How many earlier stretches of as many days that is known from.")
    history_days: int = Field(description="How many days it is made of.")


def known_days(states: Mapping[date, DayState]) -> DayRange | None:
    """Return the days up to the last calculated one without a gap, as many as a forecast looks at; None if there are
    none."""
    calculated = {day for day, state in states.items() if state.was_calculated}
    if not calculated:
        return None
    first = last = max(calculated)
    while first > last - timedelta(days=HISTORY) and first - ONE_DAY in calculated:
        first -= ONE_DAY
    return DayRange(first, last + ONE_DAY)


@dataclass(frozen=True)
class History:
    """What some rows have cost on days without a gap, as many as a forecast looks at; ``scheduled`` is the part of it
    that is billed on a few days of each month, which is expected on the same days again."""

    days: DayRange
    amounts: Sequence[Decimal]
    scheduled: Mapping[date, Decimal] = field(default_factory=dict)

    @property
    def last(self) -> date:
        """The last known day."""
        return self.days.end - ONE_DAY

    @cached_property
    def usual(self) -> Sequence[int]:
        """What is not scheduled, at the present level, in parts of units."""
        pairs = zip(self.days, self.amounts, strict=True)
        return at_present_level(
            [(to_units(amount) - to_units(self.scheduled.get(day, _NOTHING))) * _PARTS for day, amount in pairs]
        )

    def expected_again(self, until: date) -> dict[date, int]:
        """Return what is scheduled on the days after the last one, as it was a month before; in parts of units."""
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
    """Return what selected rows have cost on some days; ``scheduled`` are the product types that come again, see
    :func:`scheduled_types`, and ``amounts`` those of the days, where they are known already.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    within = replace(selection, window=days.window)
    amounts = daily_amounts(reader, CHARGEBACKS, within) if amounts is None else amounts
    fees: dict[date, list[Decimal]] = {}
    if scheduled:
        for (day, (kind,)), amount in daily_sums_by(reader, CHARGEBACKS, within, ["product_type"], list(days)).items():
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
    # Stretches overlap: the fewer of them stand alone, the less they say of how far off the next one can be.
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
        method=f"{blend.words} The interval is made of the errors of that same mean over {len(blend.errors)} earlier "
        f"stretches of {left} days, with and without the most unusual day of each, and is wider because these overlap.",
    )


def daily_forecast(known: History, until: date, currency: str) -> DailyForecast | None:
    """Return what each day after the last known one up to ``until`` is expected to cost, and how near that would have
    been before; None if there are not enough days."""
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
    """What some days to come are expected to cost, in parts of units: the mean of the methods, weighted by how near
    they would have been before; and by how much it would have been off on each day of earlier stretches."""

    weights: Sequence[int]
    expected: Sequence[int]
    errors: Sequence[Sequence[int]]
    costs: Sequence[Sequence[int]]

    @classmethod
    def of(cls, parts: Sequence[int], length: int) -> Self | None:
        """Return what is expected of the ``length`` days after ``parts``; None if there are too few of them to say how
        far off that would have been."""
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
        """How it was found."""
        whole = sum(self.weights)
        parts = sorted(zip(self.weights, _METHODS, strict=True), key=lambda each: -each[0])
        said = "; ".join(f"{method.words} ({weight / whole:.0%})" for weight, method in parts if weight * 200 >= whole)
        return f"A mean of methods, the nearer they would have been before the more. A day to come costs {said}."

    @property
    def wape(self) -> float | None:
        """How far it would have been off on a day, as a part of what was charged."""
        return self._part_of_costs(abs)

    @property
    def bias(self) -> float | None:
        """By how much it would have been too high, as a part of what was charged; negative if too low."""
        return self._part_of_costs(lambda error: -error)

    def coverage(self, by_day: Sequence[Sequence[int]]) -> float:
        """Return on which part of the days of earlier stretches the interval, made of all others, held what came."""
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
    """Return what each method takes each of the ``length`` days after some days to cost.

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
        # The median of some weeks is that of their middle, half of the weeks between them before the last weekday.
        ahead = [2 * WEEK * (day // WEEK + 1) + WEEK * (method.weeks - 1) for day in range(length)]
        return [usual[day % WEEK] + step * ahead[day] // (2 * days) for day in range(length)]
    if method.days:
        last = zip(parts[-method.days :], list(usual) * (method.days // WEEK), strict=True)
        moved = _median([cost - of_weekday for cost, of_weekday in last])
    return [usual[day % WEEK] + moved for day in range(length)]


def _middle(values: Sequence[int]) -> int:
    """Return the mean of the middle half of some values: nearly as sure as their mean, and as robust as need be."""
    ordered = sorted(values)
    out = len(ordered) // 4
    half = ordered[out : len(ordered) - out]
    return sum(half) // len(half)


def _weights(far_off: Sequence[int]) -> list[int]:
    """Return how much each method counts: the less, by the square, the further off it would have been.

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
    """Return the error of a stretch, and as it would have been if the day that was furthest off had been no further off
    than the others, by their median."""
    whole, middle = sum(errors), _median(errors)
    return whole, whole - max(errors, key=lambda each: abs(each - middle)) + middle


def _month_before(day: date, last: date) -> date:
    """Return the same day of the last month that is known; the last day of a shorter one."""
    while day > last:
        month = month_of(month_of(day).start - ONE_DAY)
        day = min(month.start + timedelta(days=day.day - 1), month.end - ONE_DAY)
    return day


def _median(values: Sequence[int]) -> int:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


def _quantile(ordered: Sequence[int], share: Fraction) -> Fraction:
    """Return the value below which ``share`` of the ordered values lie, between two of them where it falls there."""
    place = share * (len(ordered) - 1)
    below = place.numerator // place.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _interval(ordered: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return by how much what comes is below or above what is expected in eight of ten cases."""
    return min(Fraction(), _quantile(ordered, _TENTH)), max(Fraction(), _quantile(ordered, 1 - _TENTH))


def _plus(actual: Decimal, parts: Fraction | int, currency: str) -> Decimal:
    """Return ``actual`` plus some parts of units, rounded to cents: a forecast is not exact enough for more digits."""
    return rounded_cents(total([actual, from_units(round(Fraction(parts, _PARTS)))]), currency)
