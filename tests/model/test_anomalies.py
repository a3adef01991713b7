"""Anomalies: the limits of the method on generated years, and each of its rules."""

from __future__ import annotations

from datetime import date

import pytest
from benchmarks.years import DAYS, change, years

from chargeback.model.anomalies import FEWEST, SHIFTED, Floors, Story, drift, stories

START = DAYS[0]
FLOORS = Floors()
#: How many years are generated for each limit.
YEARS = 40


def found(costs: dict[date, float], since: date = START) -> list[Story]:
    """Return the anomalies of a series in which every day is known."""
    return stories(costs, DAYS, FLOORS, since)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_false_alarms_are_rare(noise: float) -> None:
    """At most five anomalies are found in a hundred months of a steady series."""
    alarms = sum(len(found(costs)) for _, costs in years(YEARS, noise))
    months = YEARS * (len(DAYS) - FEWEST) / 30.4
    assert alarms <= 0.05 * months


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("length", [1, 90])
def test_what_happens_is_found_on_its_day(noise: float, length: int) -> None:
    """Of spikes and steps of five scales or more, up or down, 19 of 20 are found on their first day."""
    hits = 0
    for chance, costs in years(YEARS, noise):
        day = change(chance, costs, noise, length)
        hits += any(story.days[0].day == day for story in found(costs))
    assert hits >= 0.95 * YEARS


def flat(**changes: float) -> dict[date, float]:
    """Return a series of ten a day, except on given dates such as ``d0401``."""
    costs = dict.fromkeys(DAYS, 10.0)
    return costs | {date(2025, int(name[1:3]), int(name[3:])): cost for name, cost in changes.items()}


def test_a_step_is_one_story_and_then_the_level() -> None:
    """A step becomes the level after three days; a much later step back is a separate anomaly."""
    costs = {day: 20.0 if date(2025, 4, 1) <= day < date(2025, 8, 1) else 10.0 for day in DAYS}
    up, down = found(costs)
    assert (up.days[0].day, len(up.days), up.state, up.rises) == (date(2025, 4, 1), SHIFTED, "level_shift", True)
    assert (down.days[0].day, down.state, down.rises) == (date(2025, 8, 1), "level_shift", False)
    assert up.impact == pytest.approx(30)


def test_a_spike_ends_and_is_no_part_of_what_comes_later() -> None:
    """An anomaly is open while its last day is the last known one; a similar later one is an anomaly as well."""
    costs = flat(d0401=50.0, d0408=50.0)
    assert [(each.days[0].day, each.state) for each in found(costs)] == [
        (date(2025, 4, 1), "resolved"),
        (date(2025, 4, 8), "resolved"),
    ]
    known = [day for day in DAYS if day <= date(2025, 4, 8)]
    assert stories(costs, known, FLOORS, date(2025, 4, 2))[0].state == "open"


def test_what_comes_every_week_is_a_habit() -> None:
    """A weekly spike is reported twice; from the third week on it is usual, and only a higher cost is an anomaly."""
    sundays = [day for day in DAYS if day.weekday() == 6]
    costs = dict.fromkeys(DAYS, 10.0) | dict.fromkeys(sundays[10:], 50.0) | {sundays[30]: 200.0}
    assert [each.days[0].day for each in found(costs)] == [sundays[10], sundays[11], sundays[30]]
    grows = dict.fromkeys(DAYS, 10.0) | {day: 50.0 * 1.5**number for number, day in enumerate(sundays[10:14])}
    assert [each.days[0].day for each in found(grows)] == sundays[10:14]


def test_what_does_not_matter_does_not_stand_out() -> None:
    """A difference below the floors, in money or in percent, is not an anomaly."""
    assert found(flat(d0401=10.9)) == []
    assert found(flat(d0401=11.9)) == [], "less than twenty percent"
    assert len(found(flat(d0401=12.1))) == 1
    assert stories(flat(d0401=12.1), DAYS, Floors(amount=5), START) == []


def test_what_is_not_known_is_not_judged() -> None:
    """Nothing is found with fewer than 21 known days; a missing day is not a day without cost."""
    assert found(flat(d0120=90.0)) == []
    assert len(found(flat(d0122=90.0))) == 1
    known = [day for day in DAYS if day.day != 15]
    costs = {day: cost for day, cost in flat().items() if day in known}
    assert stories(costs, known, FLOORS, START) == []
    assert len(stories(costs, DAYS, FLOORS, START)) > 0, "a day without cost is one that is known"


def test_a_weekday_that_is_seldom_known_is_not_judged() -> None:
    """A weekday that is known only once before is not compared."""
    known = [day for day in DAYS if day.weekday() != 0 or day in {date(2025, 3, 31), date(2025, 4, 7)}]
    costs = flat(d0407=90.0)
    assert stories(costs, known, FLOORS, START) == []
    assert len(stories(costs, DAYS, FLOORS, START)) == 1


def test_what_is_usually_nothing_has_no_scale() -> None:
    """A series that is zero on most days has no anomalies."""
    assert found({day: 100.0 if day.day == 1 else 0.0 for day in DAYS}) == []


def test_days_put_aside_are_no_level() -> None:
    """Days set aside never become the level; later days are compared with those before."""
    raised = [day for day in DAYS if date(2025, 4, 1) <= day < date(2025, 4, 15)]
    costs = flat() | dict.fromkeys(raised, 20.0)
    (story,) = stories(costs, DAYS, FLOORS, START, frozenset(raised))
    assert ([each.day for each in story.days], story.state) == (raised, "resolved")
    first, second = stories(costs, DAYS, FLOORS, START, frozenset(raised[:3]))[:2]
    assert ([each.day for each in first.days], first.state) == (raised[:3], "resolved")
    assert (second.days[0].day, second.state) == (raised[3], "level_shift")


def test_what_moves_slowly_is_a_drift() -> None:
    """A drift compares the medians of the last week and the four weeks before; floors and a minimum of days apply."""
    grows = {day: 10.0 + number * 0.1 for number, day in enumerate(DAYS[:60])}
    assert stories(grows, DAYS[:60], FLOORS, START) == []
    found = drift(grows, DAYS[:60], Floors(part=0.1))
    assert found is not None
    assert found.before == pytest.approx(13.85)
    assert found.now == pytest.approx(15.6)
    assert drift(grows, DAYS[:60], Floors(amount=2, part=0.1)) is None
    assert drift(grows, DAYS[:60], FLOORS) is None, "less than twenty percent"
    assert drift(flat(d0401=90.0), DAYS[:95], FLOORS) is None, "a spike is none"
    assert drift(grows, DAYS[:27], Floors(part=0)) is None, "too few days"
    assert drift({}, DAYS[:60], FLOORS) is None


def test_a_series_begins_with_its_first_cost() -> None:
    """Days before a series' first cost are ignored: they neither hide nor cause an anomaly."""
    judged = DAYS[:60]
    costs = dict.fromkeys(judged[30:], 100.0) | {judged[-1]: 300.0}
    (story,) = stories(costs, judged, Floors(), judged[0])
    assert [each.day for each in story.days] == [judged[-1]]
    assert stories({judged[-1]: 300.0}, judged, Floors(), judged[0]) == []
