"""Traffic: exact sums over any window."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from chargeback.demo.organisation import Organisation
from chargeback.demo.traffic import CURVES, MINUTES, RHYTHMS, Deltas, Levels

MINUTE = st.integers(min_value=0, max_value=MINUTES)


@given(total=st.integers(min_value=0, max_value=10**16), rhythm=st.sampled_from(RHYTHMS), cut=MINUTE)
def test_windows_add_up_to_the_day(total: int, rhythm: str, cut: int) -> None:
    """Two windows side by side make exactly the day, whatever the total and wherever the cut."""
    series = Deltas({}, total, CURVES[rhythm])
    assert series.sum(0, cut) + series.sum(cut, MINUTES) == total
    assert series.sum(0, cut) >= 0


@given(total=st.integers(min_value=0, max_value=10**13), rhythm=st.sampled_from(RHYTHMS))
def test_minutes_add_up_to_the_day(total: int, rhythm: str) -> None:
    """The 1,440 minute samples are whole numbers ≥ 0 whose sum is the day's total to the last byte."""
    series = Deltas({}, total, CURVES[rhythm])
    minutes = [series.at(minute) for minute in range(MINUTES)]
    assert min(minutes) >= 0
    assert sum(minutes) == total


@given(start=st.integers(0, 10**15), step=st.integers(0, 10**9), first=MINUTE, end=MINUTE)
def test_levels_sum_their_samples(start: int, step: int, first: int, end: int) -> None:
    """The sum of a gauge over a window is the sum of its samples."""
    first, end = sorted((first, end))
    series = Levels({}, start, step)
    assert series.sum(first, end) == sum(series.at(minute) for minute in range(first, end))


def test_traffic_has_a_week_and_grows(organisation: Organisation) -> None:
    """Business traffic is lower on a Sunday than on the Wednesday before, and higher a year later."""
    cluster = organisation.inventory.clusters[0]

    def written(day: date) -> int:
        return sum(
            amount for member, amount, _ in organisation.traffic.members(cluster, day) if member.rhythm == "office"
        )

    assert written(date(2026, 11, 15)) < written(date(2026, 11, 11))
    whole = [
        sum(w for _, w, _ in organisation.traffic.members(cluster, date(2026, 11, 9) + timedelta(days=offset)))
        for offset in (*range(7), *range(364, 371))
    ]
    assert sum(whole[7:]) > sum(whole[:7])


def test_a_day_does_not_depend_on_other_days(organisation: Organisation) -> None:
    """A day asked for alone is the day asked for after others."""
    day = date(2026, 11, 12)
    again = Organisation.generate(organisation.spec)
    for offset in range(5):
        again.series("confluent_kafka_server_request_bytes", day - timedelta(days=offset))
    metric = "confluent_kafka_server_request_bytes"
    assert again.usage(metric, day) == organisation.usage(metric, day)
