"""What a month will have cost at its end, and how sure that is.

Costs that follow their last week are told from those that only scatter by trying: of a few methods, the one counts that
would have been clearly the least far off before. A day that stands out changes neither what is expected nor that a
usual rest of the month is possible: what is usual is a median, and the interval is made of the method's own past
errors, with and without the most unusual day of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final, Self

from pydantic import Field

from chargeback.model.cents import rounded_cents
from chargeback.model.currency import Conversion
from chargeback.model.days import ONE_DAY, DayRange, month_of
from chargeback.model.money import from_units, to_units, total
from chargeback.reports.answers import Amount, ResponseModel
from chargeback.store.control.days import DayState

WEEK: Final = 7
#: The fewest days that a forecast is made of: every weekday twice.
FEWEST_DAYS: Final = 2 * WEEK
#: How many earlier stretches are needed to say how far off the method usually is.
MOST_RECENT: Final = 60
FEWEST_STRETCHES: Final = 10
#: How many days before the last one are looked at.
HISTORY: Final = MOST_RECENT + 8 * WEEK + 31

_TENTH: Final = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class _Method:
    """What a day to come is taken to cost: the median of its weekday in the last ``weeks``, and one ``part``-th of what
    the last ``days`` cost more or less than that, by their median; nothing of it without days."""

    weeks: int
    days: int = 0
    part: int = 1

    @property
    def words(self) -> str:
        """The method in words."""
        usual = f"Every day to come is taken to cost the median of its weekday in the last {self.weeks} weeks"
        if not self.days:
            return f"{usual}."
        share = "" if self.part == 1 else "half "
        return f"{usual}, and {share}as much more or less as the last {self.days} days did, by their median."


#: The first one follows what is new the soonest. It counts where none is clearly better: the best of several owes a
#: part of that to chance.
_METHODS: Final = (_Method(4, WEEK), _Method(8, 2 * WEEK, 2), _Method(8))
_CLEARLY: Final = Fraction(4, 5)
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


def forecast(last: date, daily: Sequence[Decimal], currency: str) -> CostForecast | None:
    """Return the forecast of the month of ``last``, the last calculated day; ``daily`` are the amounts of the days up
    to it, without a gap, in ``currency``. None if the month is over, or if there are not enough days.
    """
    until = month_of(last).end - ONE_DAY
    left = (until - last).days
    actual = total(daily[-last.day :])
    if left == 0 or len(daily) < last.day:
        return None
    parts = [to_units(amount) * _PARTS for amount in daily]
    tried = [(method, _past_errors(parts, left, method)) for method in _METHODS]
    best = min(tried, key=lambda each: _far_off(each[1]))
    method, errors = best if _far_off(best[1]) < _far_off(tried[0][1]) * _CLEARLY else tried[0]
    if len(errors) < FEWEST_STRETCHES:
        return None
    rest = sum(_expected(parts, left, method))
    # Stretches overlap: the fewer of them stand alone, the less they say of how far off the next one can be.
    wider = 1 + Fraction(left, len(errors))
    ordered = [sorted(each) for each in zip(*errors, strict=True)]
    low = rest + min([Fraction(), *(_quantile(each, _TENTH) * wider for each in ordered)])
    high = rest + max([Fraction(), *(_quantile(each, 1 - _TENTH) * wider for each in ordered)])
    return CostForecast(
        until=until,
        actual_to=last,
        actual=actual,
        expected=_plus(actual, rest, currency),
        low=_plus(actual, low, currency),
        high=_plus(actual, high, currency),
        method=f"{method.words} The interval is made of the errors of that same method over {len(errors)} earlier "
        f"stretches of {left} days, with and without the most unusual day of each, and is wider because these overlap. "
        f"Of {len(_METHODS)} methods, it is the one that counts by these errors.",
    )


def _expected(parts: Sequence[int], length: int, method: _Method) -> list[int]:
    """Return what each of the ``length`` days after some days is taken to cost.

    >>> _expected([28, 28, 28, 28, 28, 8, 8] * 3 + [396, 28, 28, 28, 28, 8, 8], 7, _Method(4, 7))
    [28, 28, 28, 28, 28, 8, 8]
    """
    recent = parts[-method.weeks * WEEK :]
    usual = [_median(recent[weekday - WEEK :: -WEEK]) for weekday in range(WEEK)]
    moved = 0
    if method.days:
        last = zip(recent[-method.days :], usual * (method.days // WEEK), strict=True)
        moved = _median([cost - of_weekday for cost, of_weekday in last]) // method.part
    return [usual[day % WEEK] + moved for day in range(length)]


def _past_errors(parts: Sequence[int], length: int, method: _Method) -> list[tuple[int, int]]:
    """Return the past forecast errors of ``length``-day windows; each as it was, and as it would have been if the day
    that was furthest off had been no further off than the others, by their median."""
    errors = []
    for start in range(max(FEWEST_DAYS, len(parts) - length - MOST_RECENT + 1), len(parts) - length + 1):
        guesses = _expected(parts[:start], length, method)
        off = [cost - guess for cost, guess in zip(parts[start : start + length], guesses, strict=True)]
        middle = _median(off)
        whole = sum(off)
        errors.append((whole, whole - max(off, key=lambda each: abs(each - middle)) + middle))
    return errors


def _far_off(errors: Sequence[tuple[int, int]]) -> int:
    return sum(abs(whole) for whole, _ in errors)


def _median(values: Sequence[int]) -> int:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


def _quantile(ordered: Sequence[int], share: Fraction) -> Fraction:
    """Return the value below which ``share`` of the ordered values lie, between two of them where it falls there."""
    place = share * (len(ordered) - 1)
    below = place.numerator // place.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _plus(actual: Decimal, parts: Fraction | int, currency: str) -> Decimal:
    """Return ``actual`` plus some parts of units, rounded to cents: a forecast is not exact enough for more digits."""
    return rounded_cents(total([actual, from_units(round(Fraction(parts, _PARTS)))]), currency)
