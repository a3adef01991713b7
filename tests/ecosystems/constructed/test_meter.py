"""Quantities of one day, from a real Prometheus: gaps, resets, restarts, and days without samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from threading import Event

import pytest

from chargeback.ecosystems.constructed.meter import Meter, billable
from chargeback.errors import SourceDataError, SourceTooLarge
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from tests.sources.loopback import Answer, Asked, Loopback
from tests.support.openmetrics import MINUTES_OF_A_DAY, Scrapes, steady
from tests.support.prometheus import RealPrometheus

BEFORE, DAY, AFTER, NEVER = (date(2026, 11, day) for day in (9, 10, 11, 20))
HOUR = timedelta(hours=1)
RATE = 1_048_576


def of_day(minute: int) -> int:
    """Return the minute within DAY; negative before it."""
    return minute - MINUTES_OF_A_DAY


def restarted(minute: int) -> int | None:
    """Return a counter that rises steadily, but is missing from 10:00 to 10:05 of DAY and then restarts at zero."""
    at = of_day(minute)
    if 600 <= at < 605:
        return None
    return RATE * minute if at < 600 else RATE * (at - 605)


def scrapes() -> Scrapes:
    """Return three days of scrapes."""
    seen = Scrapes(BEFORE, AFTER)
    seen.counter("sent_total", {"who": "steady"}, steady(RATE))
    seen.counter("sent_total", {"who": "restarted"}, restarted)
    seen.counter("sent_total", {"who": "gap"}, lambda m: None if 300 <= of_day(m) < 540 else RATE * m)
    seen.counter("sent_total", {"who": "young"}, lambda m: RATE * (of_day(m) - 720) if of_day(m) >= 720 else None)
    seen.counter("sent_total", {}, steady(RATE))
    seen.gauge("size", {"disk": "a"}, lambda m: 100 if of_day(m) < 720 else 160)
    seen.gauge("size", {"disk": "b"}, lambda m: 10)
    seen.gauge("half", {}, lambda m: 7 if of_day(m) >= 720 else None)
    seen.gauge("odd", {}, lambda m: "NaN" if of_day(m) < 60 else 5)
    seen.gauge("endless", {}, lambda m: "+Inf" if of_day(m) == 119 else 5)
    seen.gauge("debt", {}, lambda m: -1)
    return seen


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """A server without limits."""
    with RealPrometheus(scrapes().text()) as server:
        yield server


@contextmanager
def meter(url: str, step: timedelta = HOUR) -> Iterator[Meter]:
    """Open a meter."""
    with PrometheusClient(MetricsSettings(url=url), stop=Event()) as client:
        yield Meter(client, step)


@pytest.fixture
def hourly(prometheus: RealPrometheus) -> Iterator[Meter]:
    """A meter of one-hour steps."""
    with meter(prometheus.url) as opened:
        yield opened


def test_a_gauge_is_averaged_over_the_day(hourly: Meter) -> None:
    """The mean of half a day at 100 and half at 160, plus a constant 10 of another series, is 140; all steps are
    measured."""
    reading = hourly.mean("size", DAY)
    assert reading is not None
    assert (reading.value, reading.steps, reading.expected) == (Fraction(140), 24, 24)


@pytest.mark.parametrize("seconds", [60, 900, 86400])
def test_the_step_only_says_how_closely_one_looks(prometheus: RealPrometheus, seconds: int) -> None:
    """A gauge's mean is the same at every step that covers the change; a single step sees only the evening."""
    with meter(prometheus.url, timedelta(seconds=seconds)) as opened:
        reading = opened.mean("size", DAY)
    assert reading is not None
    assert reading.value == (170 if seconds == 86400 else 140)
    assert reading.expected == 86400 // seconds


def test_what_was_not_seen_is_not_zero(hourly: Meter) -> None:
    """A gauge with samples for half a day has the mean of that half, and the reading has the number of steps."""
    reading = hourly.mean("half", DAY)
    assert reading is not None
    assert (reading.value, reading.steps) == (Fraction(7), 12)


@pytest.mark.parametrize("query", ["size", "sum(size)", "sum(increase(sent_total[3600s]))"])
def test_a_day_without_a_sample_has_no_reading(hourly: Meter, query: str) -> None:
    """A day without samples has no reading, rather than a quantity of zero."""
    assert hourly.mean(query, NEVER) is None
    assert hourly.total(query, NEVER) is None
    assert hourly.increase("sent_total", NEVER) is None


def test_what_is_no_number_was_not_seen(hourly: Meter) -> None:
    """An hour of NaN counts as an hour without a value."""
    reading = hourly.mean("odd", DAY)
    assert reading is not None
    assert (reading.value, reading.steps) == (Fraction(5), 23)


@pytest.mark.parametrize("query", ["endless", "debt"])
def test_what_nobody_could_bill_is_refused(hourly: Meter, query: str) -> None:
    """An infinite or negative quantity is an error."""
    with pytest.raises(SourceDataError, match="cannot be billed"):
        hourly.mean(query, DAY)


@pytest.mark.parametrize("text", ["1e999", "1e-999", "abc"])
def test_absurd_numbers_are_refused(text: str) -> None:
    """Numbers that are too large or too small, and other texts, are errors."""
    with pytest.raises(SourceDataError):
        billable(text)


def test_steps_tile_the_day(hourly: Meter) -> None:
    """The increases of all steps count every minute once: a steady counter gives its whole day."""
    reading = hourly.total('sum(increase(sent_total{who="steady"}[3600s]))', DAY)
    assert reading is not None
    assert (reading.value, reading.steps) == (Fraction(RATE * MINUTES_OF_A_DAY), 24)


def test_an_increase_is_that_of_the_day(hourly: Meter) -> None:
    """The increase of a steady counter is that of the day, without the days before and after."""
    reading = hourly.increase('sent_total{who="steady"}', DAY)
    assert reading is not None
    assert reading.value == RATE * MINUTES_OF_A_DAY


def test_a_gap_costs_nothing(hourly: Meter) -> None:
    """After four hours without scrapes, the increase over the day is complete; the sum of the steps lacks the gap."""
    whole = hourly.increase('sent_total{who="gap"}', DAY)
    steps = hourly.total('sum(increase(sent_total{who="gap"}[3600s]))', DAY)
    assert whole is not None
    assert steps is not None
    assert whole.value == RATE * MINUTES_OF_A_DAY
    assert steps.value == RATE * 20 * 60
    assert steps.steps == 20


def test_a_restart_is_made_good(hourly: Meter) -> None:
    """If a counter restarts at zero, the increases before and after are added."""
    shares = hourly.increase_by("sent_total", "who", DAY).values
    lost = RATE * MINUTES_OF_A_DAY - shares["restarted"]
    assert 0 <= lost <= 7 * RATE  # what was sent while it was missing


def test_a_young_counter_counts_from_its_beginning(hourly: Meter) -> None:
    """A counter that begins at noon counts half a day."""
    shares = hourly.increase_by("sent_total", "who", DAY).values
    assert abs(shares["young"] - RATE * 720) <= RATE


def test_what_has_no_label_is_kept_apart(hourly: Meter) -> None:
    """Series without the label are summed under the empty name."""
    shares = hourly.increase_by("sent_total", "who", DAY).values
    assert shares[""] == shares["steady"] == Decimal(RATE * MINUTES_OF_A_DAY)
    per_step = hourly.total_by("sum by (who) (increase(sent_total[3600s]))", "who", DAY).values
    assert per_step["steady"] == Decimal(RATE * MINUTES_OF_A_DAY)


def test_values_that_do_not_count_are_dropped_and_counted(hourly: Meter) -> None:
    """In a split, NaN, infinite and negative values are dropped and counted."""
    assert hourly.total_by("odd", "who", DAY).dropped == 1
    assert hourly.total_by("endless", "who", DAY).dropped == 1
    debt = hourly.total_by("debt", "who", DAY)
    assert (dict(debt.values), debt.dropped) == ({}, 24)


def test_presence_counts_steps(hourly: Meter) -> None:
    """The presence of an identity is the number of steps at which the query returns it, with any value."""
    assert hourly.presence("sent_total", "who", DAY).values == {
        "steady": Decimal(24),
        "restarted": Decimal(24),
        "gap": Decimal(20),
        "young": Decimal(12),
    }


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize("limit", [4000, 500, 65])
def test_a_question_that_is_too_large_is_asked_in_pieces(limit: int) -> None:
    """With any limit of samples the numbers are the same, although queries are split."""
    query = 'sum(avg_over_time(size{disk="b"}[3600s]))'
    with (
        RealPrometheus(scrapes().text(), arguments=(f"--query.max-samples={limit}",)) as server,
        meter(server.url) as opened,
    ):
        for day in (BEFORE, DAY):
            mean = opened.mean(query, day)
            assert mean is not None
            assert (mean.value, mean.steps) == (Fraction(10), 24)
        rise = opened.increase('sent_total{who="steady"}', DAY)
    assert rise is not None
    assert abs(rise.value - RATE * MINUTES_OF_A_DAY) < Fraction(1, 1000)


@pytest.mark.usefixtures("process")
def test_a_source_that_refuses_everything_is_an_error() -> None:
    """If even one step is too large, the query fails instead of being repeated endlessly."""
    with (
        RealPrometheus(scrapes().text(), arguments=("--query.max-samples=1",)) as server,
        meter(server.url) as opened,
        pytest.raises(SourceTooLarge),
    ):
        opened.mean("size", DAY)


def test_a_second_is_a_step_too(prometheus: RealPrometheus) -> None:
    """86,400 steps exceed the number of points of a response; they are requested in parts."""
    with meter(prometheus.url, timedelta(seconds=1)) as opened:
        reading = opened.mean('size{disk="b"}', DAY)
    assert reading is not None
    assert (reading.value, reading.steps) == (Fraction(10), 86_400)


def test_a_source_that_moves_evaluation_times_is_refused() -> None:
    """A front end that aligns ranges with the step is an error, because it would bill the wrong hours."""

    def aligned(request: Asked) -> Answer:
        step = int(request.form["step"].removesuffix("s"))
        first, last = (int(float(request.form[name])) // step * step for name in ("start", "end"))
        values = [[at, "1"] for at in range(first, last + 1, step)]
        data = {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}
        return Answer(json.dumps({"status": "success", "data": data}))

    with Loopback(aligned) as server, meter(server.url) as opened, pytest.raises(SourceDataError, match="alignment"):
        opened.mean("size", DAY)


def test_everything_is_asked_within_the_day() -> None:
    """The first step ends one millisecond before 01:00, the last one a millisecond before midnight."""
    asked: list[tuple[datetime, datetime]] = []

    def script(request: Asked) -> Answer:
        asked.append(
            (
                datetime.fromtimestamp(float(request.form["start"]), UTC),
                datetime.fromtimestamp(float(request.form["end"]), UTC),
            )
        )
        return Answer('{"status":"success","data":{"resultType":"matrix","result":[]}}')

    with Loopback(script) as server, meter(server.url) as opened:
        assert opened.mean("size", DAY) is None
    ((first, last),) = asked
    assert (first.isoformat(), last.isoformat()) == (
        "2026-11-10T00:59:59.999000+00:00",
        "2026-11-10T23:59:59.999000+00:00",
    )
