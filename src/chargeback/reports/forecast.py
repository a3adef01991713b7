"""What a month will have cost at its end, and how sure that is.

The method fits in one sentence, and its interval is made of its own past errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final, Self

from pydantic import Field

from chargeback.model.cents import rounded_cents
from chargeback.model.currency import Conversion
from chargeback.model.days import ONE_DAY, month_of
from chargeback.model.money import from_units, to_units, total
from chargeback.reports.answers import Amount, ResponseModel

#: The days whose mean is taken for every day to come: a whole week, so that weekends have their part.
WEEK: Final = 7
#: How many earlier stretches are needed to say how far off the method usually is.
MOST_RECENT: Final = 60
FEWEST_STRETCHES: Final = 10
#: How many days before the last one are looked at.
HISTORY: Final = MOST_RECENT + WEEK + 31

_TENTH: Final = Fraction(1, 10)


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


def forecast(last: date, daily: Sequence[Decimal], currency: str) -> CostForecast | None:
    """Return the forecast of the month of ``last``, the last calculated day; ``daily`` are the amounts of the days up
    to it, without a gap, in ``currency``. None if the month is over, or if there are not enough days.
    """
    until = month_of(last).end - ONE_DAY
    left = (until - last).days
    actual = total(daily[-last.day :])
    if left == 0 or len(daily) < last.day:
        return None
    units = [to_units(amount) for amount in daily]
    errors = _past_errors(units, left)
    if len(errors) < FEWEST_STRETCHES:
        return None
    rest = Fraction(sum(units[-WEEK:]) * left, WEEK)
    errors.sort()
    low, high = (rest + _quantile(errors, share) for share in (_TENTH, 1 - _TENTH))
    return CostForecast(
        until=until,
        actual_to=last,
        actual=actual,
        expected=_plus(actual, rest, currency),
        low=_plus(actual, min(low, rest), currency),
        high=_plus(actual, max(high, rest), currency),
        method=f"Every day to come is taken to cost the mean of the last {WEEK} calculated days. The interval is made "
        f"of the errors of that same method over {len(errors)} earlier stretches of {left} days, which overlap: eight "
        "of ten were no further off.",
    )


def _past_errors(units: Sequence[int], length: int) -> list[Fraction]:
    """Return the past forecast errors of ``length``-day windows."""
    errors = []
    for start in range(max(WEEK, len(units) - length - MOST_RECENT + 1), len(units) - length + 1):
        guess = Fraction(sum(units[start - WEEK : start]) * length, WEEK)
        errors.append(sum(units[start : start + length]) - guess)
    return errors


def _quantile(ordered: Sequence[Fraction], share: Fraction) -> Fraction:
    """Return the value below which ``share`` of the ordered values lie, between two of them where it falls there."""
    place = share * (len(ordered) - 1)
    below = place.numerator // place.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _plus(actual: Decimal, units: Fraction, currency: str) -> Decimal:
    """Return ``actual`` plus a number of 10⁻¹², rounded to cents: a forecast is not exact enough for more digits."""
    return rounded_cents(total([actual, from_units(round(units))]), currency)
