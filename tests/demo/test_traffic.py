"""Traffic: exact sums over any window."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from chargeback.demo.organisation import Organisation
from chargeback.demo.traffic import BURST_DAYS, CURVES, MINUTES, RHYTHMS, Burst, Deltas, Levels

MINUTE = st.integers(min_value=0, max_value=MINUTES)


@given(total=st.integers(min_value=0, max_value=10**16), rhythm=st.sampled_from(RHYTHMS), cut=MINUTE)
def test_windows_add_up_to_the_day(total: int, rhythm: str, cut: int) -> None:
    """Two adjacent windows sum to the day, for any total and any cut."""
    series = Deltas({}, total, CURVES[rhythm])
    assert series.sum(0, cut) + series.sum(cut, MINUTES) == total
    assert series.sum(0, cut) >= 0


@given(total=st.integers(min_value=0, max_value=10**13), rhythm=st.sampled_from(RHYTHMS))
def test_minutes_add_up_to_the_day(total: int, rhythm: str) -> None:
    """The 1,440 minute samples are integers ≥ 0 whose sum is the day's total to the last byte."""
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
    """A day requested alone equals the day requested after others."""
    day = date(2026, 11, 12)
    again = Organisation.generate(organisation.spec)
    for offset in range(5):
        again.series("confluent_kafka_server_request_bytes", day - timedelta(days=offset))
    metric = "confluent_kafka_server_request_bytes"
    assert again.usage(metric, day) == organisation.usage(metric, day)


def test_a_burst_costs_more_while_it_lasts(organisation: Organisation) -> None:
    """For its days, a burst multiplies what one account reads and what is read from one topic; other traffic does not
    change."""
    begins = date(2026, 11, 12)
    wild = Organisation.generate(replace(organisation.spec, burst=begins))
    test, burst = wild.traffic.bursts
    assert (test, test.first_day) == (wild.load_test, begins - timedelta(days=14))
    assert test.member is not burst.member
    cluster = next(each for each in wild.inventory.clusters if each.id == burst.member.cluster)
    for offset in range(-1, BURST_DAYS + 1):
        day = begins + timedelta(days=offset)
        factor = burst.factor if 0 <= offset < BURST_DAYS else 1
        tame_members = organisation.traffic.members(cluster, day)
        tame_topics = organisation.traffic.topics(cluster, day)
        assert [(member.principal, written, read) for member, written, read in wild.traffic.members(cluster, day)] == [
            (member.principal, written, read * (factor if member.principal == burst.member.principal else 1))
            for member, written, read in tame_members
        ]
        assert [(topic.name, read) for topic, _, read, _ in wild.traffic.topics(cluster, day)] == [
            (topic.name, read * (factor if topic.name == burst.topic.name else 1)) for topic, _, read, _ in tame_topics
        ]
        if factor == 1:
            assert wild.cost_rows(day) == organisation.cost_rows(day)
    end = begins + timedelta(days=BURST_DAYS)
    assert wild.cost_total(begins, end) > organisation.cost_total(begins, end)


def test_a_burst_needs_somebody_who_reads(organisation: Organisation) -> None:
    """If no service account reads anything, there is no burst."""
    nobody = replace(organisation.inventory, service_accounts=[])
    assert Burst.of(nobody, organisation.spec.today) is None
