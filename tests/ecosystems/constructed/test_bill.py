"""From quantities and rates to billing lines."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.ecosystems.constructed.bill import (
    GIB,
    Charge,
    LineDefaults,
    billing_lines,
    coverage,
    exact_text,
    for_hours,
    gather,
    gib,
    gib_hours,
    measured,
)
from chargeback.ecosystems.constructed.meter import Reading
from chargeback.errors import SourceDataError, SourceTooLarge, SourceUnavailable
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange
from chargeback.model.money import total

DAY = date(2026, 11, 10)
DAILY = LineDefaults("kafka-prod", "kafka_cluster", "Production", "EUR", "daily")
HOURLY = LineDefaults("kafka-prod", "kafka_cluster", "Production", "EUR", "hourly")


def charge(quantity: Fraction | int, rate: str) -> Charge:
    """Return a charge at a rate."""
    return Charge("KAFKA", "THING", Fraction(quantity), "GiB", Decimal(rate))


def line(quantity: Fraction | int, rate: str) -> BillingLine:
    """Return the only daily line of a charge."""
    (found,) = billing_lines(charge(quantity, rate), DAILY, DAY)
    return found


def test_a_daily_line_says_everything() -> None:
    """A line is at midnight UTC and has quantity, unit, rate, cost, currency and resource."""
    found = line(72, "0.50")
    assert (found.timestamp, found.granularity, found.currency) == (datetime(2026, 11, 10, tzinfo=UTC), "daily", "EUR")
    assert (found.resource_id, found.resource_type, found.resource_name) == (
        "kafka-prod",
        "kafka_cluster",
        "Production",
    )
    assert (found.quantity, found.unit, found.unit_price) == (Decimal(72), "GiB", Decimal("0.5"))
    assert (found.total_cost, found.original_text) == (Decimal(36), None)


@pytest.mark.parametrize(
    ("quantity", "rate", "cost", "original"),
    [
        (Fraction(1, GIB), "1", "0.000000000931", "0.000000000931322574615478515625"),
        (Fraction(1, 3), "0.01", "0.003333333333", "1/300"),
        (Fraction(5, 10**13), "1", "0.000000000000", "0.0000000000005"),  # ties are rounded to the even neighbour …
        (Fraction(15, 10**13), "1", "0.000000000002", "0.0000000000015"),  # … in both directions
        (Fraction(10**25), "9.999999999999", "99999999999990000000000000.000000000000", None),
    ],
)
def test_the_cost_is_rounded_once_and_half_even(quantity: Fraction, rate: str, cost: str, original: str | None) -> None:
    """The cost has twelve decimals; an exact value with more is kept as text."""
    found = line(quantity, rate)
    assert f"{found.total_cost:.12f}" == cost
    kept = dict(part.split("=", 1) for part in (found.original_text or "").split(";") if part)
    assert kept.get("total_cost") == original


def test_the_cost_does_not_come_from_the_rounded_quantity() -> None:
    """A third of a GiB at three million costs exactly a million, although the quantity is shown as 0.333333333333."""
    found = line(Fraction(1, 3), "3000000")
    assert (found.quantity, found.total_cost) == (Decimal("0.333333333333"), Decimal(1_000_000))
    assert found.original_text == "quantity=1/3"


def test_a_cost_beyond_reason_is_refused() -> None:
    """A cost with more than 26 digits before the decimal point is an error of the source's data."""
    with pytest.raises(SourceDataError, match="too large"):
        line(Fraction(10**27), "1")


@given(
    quantity=st.fractions(min_value=0, max_value=10**12, max_denominator=2**40),
    rate=st.decimals(min_value=0, max_value=1000, places=12, allow_nan=False, allow_infinity=False),
)
def test_hourly_lines_add_up_to_the_daily_one(quantity: Fraction, rate: Decimal) -> None:
    """For any amount, the 24 hours sum to the day, and no two of them differ by more than one unit."""
    charged = Charge("KAFKA", "THING", quantity, "GiB", rate)
    (daily,) = billing_lines(charged, DAILY, DAY)
    hourly = billing_lines(charged, HOURLY, DAY)
    assert [each.timestamp.hour for each in hourly] == list(range(24))
    assert {each.granularity for each in hourly} == {"hourly"}
    assert total(each.total_cost for each in hourly) == daily.total_cost
    assert daily.quantity == total(each.quantity for each in hourly if each.quantity is not None)
    costs = [each.total_cost for each in hourly]
    assert max(costs) - min(costs) <= Decimal("1e-12")
    assert costs == sorted(costs, reverse=True)


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**9))
def test_an_exact_value_is_spelt_without_loss(value: Fraction) -> None:
    """The text of an exact value can be parsed to the same value."""
    assert Fraction(exact_text(value)) == value


def test_quantities() -> None:
    """Fixed units count 24 hours, bytes on disk their mean for 24 hours, traffic its sum; a GiB is 2³⁰ bytes."""
    reading = Reading(Fraction(3 * GIB, 2), 24, 24)
    assert (for_hours(3), gib_hours(reading), gib(reading)) == (Fraction(72), Fraction(36), Fraction(3, 2))


def test_no_reading_is_no_zero() -> None:
    """A day without a sample raises an error that names the metric."""
    with pytest.raises(SourceDataError, match=r"no sample of kafka_log_log_size on this day"):
        measured(None, "kafka_log_log_size")


def test_a_day_seen_in_part_says_so() -> None:
    """The description says how much of the day was measured; for a complete day it is empty."""
    assert coverage(Reading(Fraction(1), 21, 24)) == "measured at 21 of 24 steps"
    assert coverage(Reading(Fraction(1), 24, 24)) is None


def test_a_bad_day_is_its_own_error() -> None:
    """A day that cannot be measured has an error; the days around it have their bills."""
    days = DayRange(date(2026, 11, 10), date(2026, 11, 14))

    def charges(day: date) -> list[Charge]:
        if day.day == 11:
            raise SourceDataError("no sample", source="metrics")
        if day.day == 12:
            raise SourceTooLarge("too many samples", source="metrics")
        return [charge(1, "1")]

    found = list(gather(days, charges, DAILY))
    assert [each.day for each in found] == list(days)
    assert [each.error for each in found] == [
        None,
        "no sample (source metrics)",
        "too many samples (source metrics)",
        None,
    ]
    assert [len(each.lines) for each in found] == [1, 0, 0, 1]


def test_an_unreachable_source_fails_the_gathering() -> None:
    """If the source does not respond, the whole gathering fails, rather than single days."""

    def charges(day: date) -> list[Charge]:
        raise SourceUnavailable("connection refused", source="metrics")

    with pytest.raises(SourceUnavailable):
        list(gather(DayRange(date(2026, 11, 10), date(2026, 11, 12)), charges, DAILY))
