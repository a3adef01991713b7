"""What is true for some days only: a tag, a rule, a value of a cost category."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Period:
    """UTC days from ``first`` (inclusive) to ``end`` (exclusive); None means without limit on that side."""

    first: date | None = None
    end: date | None = None

    def __contains__(self, day: object) -> bool:
        return (
            isinstance(day, date) and (self.first is None or self.first <= day) and (self.end is None or day < self.end)
        )

    def __and__(self, other: Period) -> Period:
        """Return the days that are in both; see :attr:`is_empty`."""
        firsts = [each.first for each in (self, other) if each.first is not None]
        ends = [each.end for each in (self, other) if each.end is not None]
        return Period(max(firsts, default=None), min(ends, default=None))

    @property
    def is_empty(self) -> bool:
        """Whether no day is in it."""
        return self.first is not None and self.end is not None and self.first >= self.end

    def overlaps(self, other: Period) -> bool:
        """Return whether some day is in both."""
        return not (self & other).is_empty

    def without(self, other: Period) -> list[Period]:
        """Return the periods of the days that are in this one only, in order.

        >>> [str(each) for each in Period().without(Period(date(2026, 3, 1), date(2026, 10, 1)))]
        ['until 2026-03-01', 'since 2026-10-01']
        """
        if not self.overlaps(other):
            return [self]
        before = [] if other.first is None else [self & Period(None, other.first)]
        after = [] if other.end is None else [self & Period(other.end, None)]
        return [each for each in (*before, *after) if not each.is_empty]

    def __str__(self) -> str:
        """Return the period in words.

        >>> str(Period(date(2026, 3, 1), date(2026, 10, 1))), str(Period())
        ('2026-03-01 to 2026-10-01', 'for ever')
        """
        if self.first is None and self.end is None:
            return "for ever"
        if self.end is None:
            return f"since {self.first}"
        return f"until {self.end}" if self.first is None else f"{self.first} to {self.end}"


#: Every day.
FOREVER = Period()


@dataclass(frozen=True)
class DatedValue:
    """A value, and the days on which it holds."""

    value: str
    during: Period = FOREVER


def latest(values: Sequence[DatedValue]) -> str | None:
    """Return the last of some values, which are in the order of their days."""
    return values[-1].value if values else None


def value_on(values: Iterable[DatedValue], day: date) -> str | None:
    """Return the first of some values that holds on a day."""
    return next((each.value for each in values if day in each.during), None)
