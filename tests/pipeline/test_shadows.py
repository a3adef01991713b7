"""Policies that are calculated in addition to those in force, without effect on charges."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from chargeback.config.shadows import ShadowSettings
from chargeback.errors import ConfigurationError
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline import shadows
from chargeback.recompute.verify import verify_files
from chargeback.reports.shadows import files_of, list_shadows
from chargeback.store.control.events import read_events
from tests.recompute.test_simulate import random_bill, random_policies, simulated
from tests.support.clock import NOW
from tests.support.sources import DAY, Laboratory, line

FIRST = DAY - 3 * ONE_DAY
DAYS = DayRange(FIRST, DAY + ONE_DAY)
WRITE = "KAFKA_NETWORK_WRITE"
EVENLY = {WRITE: {"portions": [{"share": "1", "try": ["even(active)"]}]}}


def shadow(laboratory: Laboratory, policies: object, **more: Any) -> None:
    """Configure policies to be calculated in addition to those of the tenant."""
    file = Path(laboratory.tenant.folder) / "next.yaml"
    file.write_text(yaml.safe_dump(policies), encoding="utf-8")
    settings = ShadowSettings.model_validate({"file": str(file), "start_date": FIRST} | more)
    laboratory.configure(shadow_policies={"next": settings})


def rows_of(laboratory: Laboratory) -> dict[date, bytes]:
    """Return the files of the shadow, by day."""
    with laboratory.store.control.read() as connection:
        files = files_of(connection, laboratory.store.facts, "next")
    return {file.day: Path(file.path).read_bytes() for file in files if file.day is not None}


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant of four days, in which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=4) as opened:
        opened.share(DAYS)
        yield opened


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.drill) for seed in range(3, 40))])
def test_its_rows_are_those_of_the_day_after_promotion(tmp_path: Path, seed: int) -> None:
    """With random policies and bills, a shadow has the rows of a simulation, and of a run with the policies in force;
    charges are the same with and without it."""
    chance = random.Random(seed)
    names = ("one", "other", "plain")
    with (
        Laboratory(tmp_path / names[0], days=4) as beside,
        Laboratory(tmp_path / names[1], days=4) as promoted,
        Laboratory(tmp_path / names[2], days=4) as plain,
    ):
        random_bill(beside, chance)
        for other in (promoted, plain):
            vars(other.sources).update(vars(beside.sources))
        policies = random_policies(chance)
        shadow(beside, policies)
        promoted.set_policies(policies)
        for each in (beside, promoted, plain):
            each.run()
        assert rows_of(beside) == promoted.rows()
        assert beside.rows() == plain.rows()
        found = simulated(beside, policies, tmp_path / "simulated").days
        assert rows_of(beside) == {each.day: Path(each.file.path).read_bytes() for each in found if each.file}
        before = rows_of(beside)
        assert beside.run().dates_calculated == 0
        assert rows_of(beside) == before


def test_it_follows(laboratory: Laboratory) -> None:
    """A recalculated day is recalculated in the shadow, other policies recalculate all days, and without its
    configuration the shadow is removed."""
    shadow(laboratory, EVENLY)
    laboratory.run()
    before = rows_of(laboratory)
    laboratory.sources.lines[DAY] = [line("120", day=DAY)]
    laboratory.run()
    changed = rows_of(laboratory)
    assert {day for day in DAYS if changed[day] != before[day]} == {DAY}
    shadow(laboratory, {})
    laboratory.run()
    assert rows_of(laboratory) == laboratory.rows(), "the same policies have the same bytes"
    assert not list(verify_files(laboratory.store, NOW))
    laboratory.configure(shadow_policies={})
    laboratory.run()
    assert rows_of(laboratory) == {}
    assert not list(verify_files(laboratory.store, NOW))


def test_a_day_that_is_past_its_retention(laboratory: Laboratory) -> None:
    """Rows of the shadow are removed with those of the day, and when the shadow no longer includes the day."""
    shadow(laboratory, EVENLY)
    laboratory.run()
    laboratory.configure(retention_days=7, lookback_days=6)
    laboratory.run()
    left = sorted(laboratory.rows())
    assert left < sorted(DAYS) or len(left) < len(DAYS)
    laboratory.run()
    assert sorted(rows_of(laboratory)) == left
    shadow(laboratory, EVENLY, start_date=left[-1], end_date=left[-1])
    laboratory.run()
    assert sorted(rows_of(laboratory)) == left[-1:]


def test_it_says_when_it_is_ready(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one event when enough days are calculated and none is missing, and another for other policies."""

    def told() -> list[Any]:
        with laboratory.store.control.read() as connection:
            found = read_events(connection, after=0, kind="shadow.ready", limit=9)
        return [(each["subject"], each["body"]) for each in found]

    shadow(laboratory, EVENLY)
    laboratory.run()
    assert told() == []
    monkeypatch.setattr(shadows, "ENOUGH_DAYS", len(DAYS))
    laboratory.run()
    assert told() == [], "nothing was calculated"
    shadow(laboratory, {})
    laboratory.run()
    laboratory.run()
    assert told() == [("shadow/next", {"days": len(DAYS)})]
    shadow(laboratory, EVENLY)
    laboratory.run()
    assert len(told()) == 2


def test_how_far_it_is(laboratory: Laboratory) -> None:
    """A shadow has its days, the amount that it moves, and a verdict; its end is reported once."""
    shadow(laboratory, EVENLY, end_date=DAY - ONE_DAY)

    def listed(today: date = DAY) -> Any:
        with laboratory.store.control.read() as connection:
            (found,) = list_shadows(connection, laboratory.tenant.shadows, today)
        return found.model_dump(mode="json")

    assert listed()["verdict"] == "not ready: 0 complete days, moved 0.00 %"
    laboratory.run()
    found = listed()
    assert (found["days"], found["missing"], found["moved"], found["moved_share"]) == (3, 0, "75.00", "25.00")
    assert found["verdict"] == "not ready: 3 complete days, moved 25.00 % ± 0.00"
    assert [listed(day)["state"] for day in (FIRST - ONE_DAY, FIRST, DAY)] == ["coming", "running", "ended"]
    laboratory.run()
    laboratory.run()
    with laboratory.store.control.read() as connection:
        told = read_events(connection, after=0, kind="shadow.ended", limit=9)
    assert [each["subject"] for each in told] == ["shadow/next"]


@pytest.mark.parametrize("text", ["{", "7", "A: {portions: []}"])
def test_a_file_that_has_no_policies(laboratory: Laboratory, text: str) -> None:
    """The error is reported, and the charges are still calculated."""
    shadow(laboratory, {})
    (Path(laboratory.tenant.folder) / "next.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError):
        _ = laboratory.tenant.shadows
    done = laboratory.run()
    assert done.dates_calculated == len(DAYS)
    assert any(error.startswith("shadows: ") for error in done.errors)


def test_one_that_began_long_ago(laboratory: Laboratory) -> None:
    """A shadow that began before the first day has all existing days."""
    shadow(laboratory, EVENLY, start_date=DAY - timedelta(days=400), end_date=DAY)
    laboratory.run()
    assert sorted(rows_of(laboratory)) == list(DAYS)
