"""Anomalies in runs: an event is recorded when one begins, has doubled, is over, or is withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from chargeback.config.settings import AnomalySettings
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import Resource
from chargeback.pipeline import anomalies as stage
from chargeback.store.control.anomalies import MarkedDays, add_mark, read_anomalies
from chargeback.store.control.events import read_events
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line

LAST = DAY - 3 * ONE_DAY
DAYS = DayRange(DAY - timedelta(days=45), LAST + ONE_DAY)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant with six weeks of 100 a day for one identity, already examined."""
    with Laboratory(tmp_path / "laboratory", days=46) as opened:
        opened.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 1}}
        opened.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        run_until(opened, LAST)
        yield opened


def run_until(laboratory: Laboratory, day: date) -> None:
    """Run with ``day`` as the newest known day."""
    laboratory.clock = FixedClock(NOW + (day - DAY))
    laboratory.run()


def told(laboratory: Laboratory) -> list[str]:
    """Return the kinds of anomaly events."""
    with laboratory.store.control.read() as connection:
        found = read_events(connection, after=0, kind=None, limit=99)
    return [each["kind"].removeprefix("anomaly.") for each in found if each["kind"].startswith("anomaly.")]


def bill(laboratory: Laboratory, day: date, amount: str) -> list[str]:
    """Bill a day, run, and return the kinds of the events so far."""
    laboratory.sources.lines[day] = [line(amount, day=day)]
    run_until(laboratory, max(laboratory.sources.lines))
    return told(laboratory)


def test_what_was_planned_is_not_told(laboratory: Laboratory) -> None:
    """Planned days have no events, neither at their beginning nor at their end; later days do."""
    day = LAST + ONE_DAY
    with laboratory.store.control.write() as connection:
        add_mark(connection, MarkedDays("", "sa-a", None, "planned", day, day, "Load test", "ann"))
    assert bill(laboratory, day, "300") == []
    assert bill(laboratory, LAST + 2 * ONE_DAY, "300") == ["opened"]


def test_what_was_told_and_dismissed_is_told_no_more(laboratory: Laboratory) -> None:
    """A dismissed anomaly has no event when it grows or ends."""
    assert bill(laboratory, LAST + ONE_DAY, "300") == ["opened"]
    with laboratory.store.control.write() as connection:
        days = (LAST + ONE_DAY, LAST + 9 * ONE_DAY)
        add_mark(connection, MarkedDays("", "sa-a", None, "dismissed", *days, "Known", "ann"))
    assert bill(laboratory, LAST + 2 * ONE_DAY, "900") == ["opened"]
    assert bill(laboratory, LAST + 3 * ONE_DAY, "100") == ["opened"]


def test_a_story_from_its_beginning_to_its_end(laboratory: Laboratory) -> None:
    """Each change has one event with the name of its resource; a run without news examines nothing."""
    cluster = Resource("lkc-1", "kafka_cluster", display_name="prod")
    laboratory.sources.listed = replace(laboratory.sources.listed, resources=[cluster])
    assert told(laboratory) == []
    assert bill(laboratory, LAST + ONE_DAY, "300") == ["opened"]
    laboratory.run()
    assert told(laboratory) == ["opened"]
    assert bill(laboratory, LAST + 2 * ONE_DAY, "900") == ["opened", "grew"]
    assert bill(laboratory, LAST + 3 * ONE_DAY, "100") == ["opened", "grew", "resolved"]
    with laboratory.store.control.read() as connection:
        found = read_events(connection, after=0, kind="anomaly.grew", limit=9)
    body = found[0]["body"]
    assert (body["identity_id"], body["impact"], body["currency"]) == ("sa-a", "1000.00", "USD")
    assert body["first_date"] == f"{LAST + ONE_DAY}"
    assert body["sentence"].endswith("2 days in a row; mostly KAFKA_NETWORK_WRITE of prod")


def test_what_a_late_bill_takes_away_is_taken_back(laboratory: Laboratory) -> None:
    """An anomaly that a late bill removes is withdrawn once, and reported again if it returns."""
    day = LAST + ONE_DAY
    assert bill(laboratory, day, "300") == ["opened"]
    assert bill(laboratory, day, "101") == ["opened", "withdrawn"]
    assert bill(laboratory, day + ONE_DAY, "100") == ["opened", "withdrawn"]
    assert bill(laboratory, day, "302") == ["opened", "withdrawn", "opened"]


def test_what_was_over_a_week_ago_is_no_news(tmp_path: Path) -> None:
    """The first run reports anomalies of the last seven days, and no earlier ones."""
    with Laboratory(tmp_path / "laboratory", days=46) as laboratory:
        laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 1}}
        amounts = dict.fromkeys(DAYS, "100") | {LAST - 8 * ONE_DAY: "400", LAST - 3 * ONE_DAY: "500"}
        laboratory.sources.lines = {day: [line(amount, day=day)] for day, amount in amounts.items()}
        run_until(laboratory, LAST)
        with laboratory.store.control.read() as connection:
            events = read_events(connection, after=0, kind="anomaly.opened", limit=9)
    assert [each["body"]["first_date"] for each in events] == [f"{LAST - 3 * ONE_DAY}"]


def test_the_largest_are_told_and_the_others_counted(laboratory: Laboratory) -> None:
    """At most a fixed number of anomalies is reported in a week; the others are counted."""
    day = LAST + ONE_DAY
    laboratory.configure(anomalies=AnomalySettings(most_a_week=2))
    names = ("sa-a", "sa-b", "sa-c", "sa-d")
    laboratory.sources.totals = {"bytes_in": {(f"lkc-{name}", name): 1 for name in names}}
    for each in DAYS:
        laboratory.sources.lines[each] = [line("100", day=each, resource=f"lkc-{name}") for name in names]
    laboratory.run()
    assert told(laboratory) == []
    laboratory.sources.lines[day] = [
        line(f"{300 + 10 * number}", day=day, resource=f"lkc-{name}") for number, name in enumerate(names)
    ]
    run_until(laboratory, day)
    with laboratory.store.control.read() as connection:
        events = read_events(connection, after=0, kind="anomaly.opened", limit=9)
    assert [(each["body"]["identity_id"], each["body"]["more"]) for each in events] == [("sa-d", 2), ("sa-c", 2)]


def test_nobody_is_told_who_does_not_want_to_be(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """With anomalies disabled, nothing is examined."""

    def refuse(*_: object) -> None:
        raise AssertionError("it was looked at")

    monkeypatch.setattr(stage, "anomalies", refuse)
    laboratory.configure(anomalies=AnomalySettings(enabled=False))
    assert bill(laboratory, LAST + ONE_DAY, "300") == []


def test_less_because_others_used_more_is_not_told(tmp_path: Path) -> None:
    """If the cost stays the same, only the identity that uses more is reported, not those whose share falls; a lower
    cost is reported."""
    with Laboratory(tmp_path / "laboratory", days=46) as laboratory:
        laboratory.sources.totals = {"bytes_in": {("lkc-1", name): 1 for name in ("sa-a", "sa-b")}}
        laboratory.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        run_until(laboratory, LAST)
        laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 19, ("lkc-1", "sa-b"): 1}}
        assert bill(laboratory, LAST + ONE_DAY, "100") == ["opened"]
        with laboratory.store.control.read() as connection:
            (event,) = read_events(connection, after=0, kind="anomaly.opened", limit=9)
            assert len(read_anomalies(connection)) == 2
        assert event["body"]["identity_id"] == "sa-a"
        laboratory.sources.totals = {"bytes_in": {("lkc-1", name): 1 for name in ("sa-a", "sa-b")}}
        assert bill(laboratory, LAST + 2 * ONE_DAY, "100") == ["opened", "resolved"]
        assert bill(laboratory, LAST + 3 * ONE_DAY, "20") == ["opened", "resolved", "opened", "opened"]
