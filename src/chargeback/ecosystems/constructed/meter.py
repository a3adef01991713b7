"""Reads quantities of one UTC day from the metrics source, for bills and for splits.

A query is evaluated at the end of each step less one millisecond, so that windows as long as the step cover the day
without overlap, with Prometheus 2, whose ranges include both ends, and with Prometheus 3, whose ranges exclude the
start. All arithmetic is exact, on the source's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import chain

from chargeback.errors import SourceDataError
from chargeback.model.days import ONE_DAY, DayRange, InstantRange
from chargeback.model.usage import parse_quantity
from chargeback.sources.prometheus import PrometheusClient, render_duration
from chargeback.sources.windows import WindowSplitter

_MILLISECOND = timedelta(milliseconds=1)
_MINUTE = timedelta(minutes=1)
#: Prometheus refuses more than 11,000 points per series.
_MAX_POINTS = 10_000
_MAX_DIGITS = 400

#: One value: its time, its labels, its text.
Point = tuple[datetime, Mapping[str, str], str]


@dataclass(frozen=True, slots=True)
class Reading:
    """A quantity of one day, exactly; ``steps`` of ``expected`` steps had a value."""

    value: Fraction
    steps: int
    expected: int


@dataclass(frozen=True, slots=True)
class Shares:
    """A quantity of one day by label value; values without the label are under the empty text. ``dropped`` counts
    values that were NaN, infinite or negative."""

    values: Mapping[str, Decimal]
    dropped: int = 0


class Meter:
    """Queries one metrics source at one step, in as many pieces as it needs. Threads may share one object."""

    def __init__(self, client: PrometheusClient, step: timedelta) -> None:
        self._client = client
        self.step = step
        self._splitter = WindowSplitter(max_units=_MAX_POINTS)

    def mean(self, query: str, day: date) -> Reading | None:
        """Return the mean of a gauge over the day: its values at each step are added up, and averaged over the steps
        with a value.

        Steps without a value do not count: the quantity is assumed to be the same as at the others. Return None if the
        whole day has no value.

        Raises:
            SourceDataError: a value is infinite or negative.
            SourceError: as for :meth:`PrometheusClient.range`.
        """
        reading = self.total(query, day)
        return None if reading is None else Reading(reading.value / reading.steps, reading.steps, reading.expected)

    def total(self, query: str, day: date) -> Reading | None:
        """Return the sum over the day of a query that gives the increase of each step; otherwise as :meth:`mean`."""
        per_step: dict[datetime, Fraction] = {}
        for at, _, text in self.points(query, day):
            value = billable(text)
            if value is not None:
                per_step[at] = per_step.get(at, Fraction(0)) + value
        if not per_step:
            return None
        return Reading(sum(per_step.values(), Fraction(0)), len(per_step), ONE_DAY // self.step)

    def increase(self, selector: str, day: date) -> Reading | None:
        """Return the increase of the selected counters over the day, corrected for resets.

        It is one window as long as the day: a gap loses nothing, because the counter continued meanwhile. Return None
        if no counter has two samples.
        """
        values = [billable(text) for _, text in self._increases(selector, None, day)]
        known = [value for value in values if value is not None]
        return Reading(sum(known, Fraction(0)), 1, 1) if known else None

    def increase_by(self, selector: str, label: str, day: date) -> Shares:
        """Return the same by the values of a label."""
        return _shared((labels.get(label, ""), text) for labels, text in self._increases(selector, label, day))

    def total_by(self, query: str, label: str, day: date) -> Shares:
        """Return the sum over the day, by the values of a label, of a query that gives the increase of each step."""
        return shares_of(self.points(query, day), label)

    def presence(self, query: str, label: str, day: date) -> Shares:
        """Return at how many steps of the day the query had each value of a label, with any number."""
        seen = {(at, labels[label]) for at, labels, _ in self.points(query, day) if labels.get(label)}
        counts: dict[str, Decimal] = {}
        for _, name in seen:
            counts[name] = counts.get(name, Decimal(0)) + 1
        return Shares(counts)

    def points(self, query: str, day: date) -> Iterator[Point]:
        """Return every value of the query at the steps of the day.

        Raises:
            SourceDataError: the source evaluates at other times than requested.
        """

        def _ask(piece: InstantRange) -> list[Point]:
            first, last = piece.start + self.step - _MILLISECOND, piece.end - _MILLISECOND
            return [
                (at, series.labels, text)
                for series in self._client.range(query, first, last, self.step)
                for at, text in series.points
                if _is_on_step(at, first, self.step)
            ]

        return chain.from_iterable(self._splitter.query(query, DayRange.of_day(day).window, self.step, _ask))

    def _increases(self, selector: str, label: str | None, day: date) -> Iterator[tuple[Mapping[str, str], str]]:
        by = f" by ({label})" if label else ""

        def _ask(piece: InstantRange) -> list[tuple[Mapping[str, str], str]]:
            query = f"sum{by} (increase({selector}[{render_duration(piece.end - piece.start)}]))"
            return [(each.labels, each.value) for each in self._client.instant(query, piece.end - _MILLISECOND)]

        return chain.from_iterable(self._splitter.query(f"{selector} {by}", DayRange.of_day(day).window, _MINUTE, _ask))


def shares_of(points: Iterable[Point], label: str, kind: tuple[str, str] | None = None) -> Shares:
    """Return the sums of values by a label. With ``kind``, another label and its value, only those with it count."""
    return _shared(
        (labels.get(label, ""), text) for _, labels, text in points if kind is None or labels.get(kind[0]) == kind[1]
    )


def billable(text: str) -> Fraction | None:
    """Return a measured value exactly, or None if it is not a number (``0 / 0``).

    Raises:
        SourceDataError: it is infinite, negative or far too large to be billed.
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise SourceDataError(f"{text[:40]!r} is not a number", source="metrics") from None
    if value.is_nan():
        return None
    if value.is_infinite() or value < 0 or value.adjusted() > _MAX_DIGITS or value.adjusted() < -_MAX_DIGITS:
        raise SourceDataError(f"a quantity of {text[:40]} cannot be billed", source="metrics")
    return Fraction(value)


def _is_on_step(at: datetime, first: datetime, step: timedelta) -> bool:
    if (at - first) % step:
        raise SourceDataError(
            "the metrics source evaluates at other times than requested: disable the alignment of ranges with the"
            " step in the query front end, or bypass it",
            source="metrics",
        )
    return True


def _shared(values: Iterator[tuple[str, str]]) -> Shares:
    totals: dict[str, Fraction] = {}
    dropped = 0
    for name, text in values:
        try:
            value = billable(text)
        except SourceDataError:
            value = None
        if value is None:
            dropped += 1
            continue
        totals[name] = totals.get(name, Fraction(0)) + value
    quantities = {name: parse_quantity(_plain(total)) for name, total in totals.items()}
    kept = {name: quantity for name, quantity in quantities.items() if quantity is not None}
    return Shares(kept, dropped + len(quantities) - len(kept))


def _plain(value: Fraction) -> str:
    """Return a sum of decimals in plain notation; the prime factors of its denominator are only 2 and 5."""
    places = 0
    while value.denominator != 1:
        value *= 10
        places += 1
    return f"{value.numerator}e-{places}"
