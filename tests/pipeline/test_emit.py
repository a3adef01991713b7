"""The emitting stage of a run, against a served organisation."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from chargeback.config import load_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import ONE_DAY, DayRange, utc_today
from chargeback.model.money import total
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import Progress, RunOutcome, Stage, StopSignal
from chargeback.store.control.emissions import Emission, read_emissions
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from tests.emitters.plugins import installed
from tests.support.clock import TODAY
from tests.support.deployments import DAYS, Deployment

CUTOFF = 5
WINDOW = [TODAY - timedelta(days=offset) for offset in range(DAYS, CUTOFF, -1)]
DAY = WINDOW[3]


class Emitting(Deployment):
    """A tenant with emitters, and for speed without the topic overlay."""

    def emitters(self, *emitters: dict[str, Any]) -> None:
        """Configure these emitters for the next runs."""
        document = yaml.safe_load(self.config_file.read_text())
        settings = document["tenants"]["acme"]["plugin_settings"]
        settings["topic_attribution"] = {"enabled": False}
        settings["emitters"] = list(emitters)
        self.config_file.write_text(yaml.safe_dump(document))
        self.tenant = load_configuration(self.config_file).tenants["acme"]

    def emissions(self, name: str = "finance") -> dict[date, Emission]:
        """Return the emission of each date."""
        with self.store.control.read() as connection:
            return read_emissions(connection, name)

    def ended(self, name: str = "finance") -> dict[date, str]:
        """Return the state of each date of an emitter."""
        return {day: each.state for day, each in self.emissions(name).items()}

    @property
    def out(self) -> Path:
        """Return the folder for files."""
        return self.config_file.parent / "out"

    def changed(self) -> set[str]:
        """Return the files written since the last call."""
        now = {path.name: path.stat().st_ino for path in self.out.glob("*")}
        seen, self._seen = getattr(self, "_seen", {}), now
        return {name for name, inode in now.items() if seen.get(name) != inode}


def finance(**more: Any) -> dict[str, Any]:
    """Return the configuration of a CSV emitter."""
    return {"type": "csv", "name": "finance", "params": {"output_dir": "out"}} | more


def amounts_of(path: Path) -> list[Decimal]:
    """Return the amounts in a CSV file."""
    with path.open(newline="") as file:
        return [Decimal(row["amount"]) for row in csv.DictReader(file)]


def tiny(deployment: Emitting, name: str = "tiny", **params: Any) -> dict[str, Any]:
    """Return the configuration of the third-party emitter."""
    return {"type": "tiny", "name": name, "params": {"file": str(deployment.config_file.parent / name)} | params}


@pytest.fixture
def deployment(prepared: Path, server: DemoServer, tmp_path: Path) -> Iterator[Emitting]:
    """Yield a tenant whose days are calculated but not emitted yet."""
    deployment = Emitting.copied(prepared, server, tmp_path)
    yield deployment
    deployment.store.close()


@pytest.fixture
def fresh(server: DemoServer, tmp_path: Path) -> Iterator[Emitting]:
    """Yield a tenant that has never run."""
    deployment = Emitting.within(server, tmp_path / "fresh")
    yield deployment
    deployment.store.close()


@pytest.fixture
def emitted(deployment: Emitting) -> Emitting:
    """Return a tenant whose files are written."""
    deployment.emitters(finance())
    assert deployment.run().outcome is RunOutcome.COMPLETED
    deployment.changed()
    return deployment


def test_a_first_run_writes_every_day_to_the_last_digit(fresh: Emitting) -> None:
    """A first run writes one file for each calculated day; together they sum to the chargebacks."""
    fresh.emitters(finance())
    assert fresh.run().outcome is RunOutcome.COMPLETED
    assert fresh.ended() == dict.fromkeys(WINDOW, "emitted")
    assert sorted(path.name for path in fresh.out.iterdir()) == [f"acme_{day}.csv" for day in WINDOW]
    for day in WINDOW:
        assert total(amounts_of(fresh.out / f"acme_{day}.csv")) == total(fresh.rows(day)["amount"].to_pylist())
    assert {each.attempts for each in fresh.emissions().values()} == {1}


def test_the_stage_is_told(emitted: Emitting) -> None:
    """The listener gets the progress of the stage until all periods are done."""
    heard = [progress for progress in emitted.progress if progress.stage is Stage.EMITTING]
    assert (heard[0].done, heard[-1].done, heard[-1].total) == (0, len(WINDOW), len(WINDOW))


def test_a_second_run_writes_nothing(emitted: Emitting) -> None:
    """Without changes, a second run writes nothing."""
    assert emitted.run().outcome is RunOutcome.COMPLETED
    assert emitted.changed() == set()


def test_a_recalculated_day_is_written_again(emitted: Emitting) -> None:
    """The day is written again after a correction of the bill, or on request; no other day is."""
    changes = emitted.server.changes
    changes.add_cost(DAY, {**changes.cost_rows(DAY)[0], "id": "late", "amount": Decimal("1.25")})
    emitted.run()
    assert emitted.changed() == {f"acme_{DAY}.csv"}
    emitted.run(RunRequest(WINDOW[0], WINDOW[0], recalculate=True))
    assert emitted.changed() == {f"acme_{WINDOW[0]}.csv"}


def test_other_settings_write_everything_again(emitted: Emitting) -> None:
    """A new template for file names writes all files again."""
    emitted.emitters(finance(params={"output_dir": "out", "filename_template": "new-{date}.csv"}))
    emitted.run()
    assert emitted.changed() == {f"new-{day}.csv" for day in WINDOW}


def test_the_lookback_of_an_emitter(deployment: Emitting) -> None:
    """Older days are skipped and have no file; emitters do not share their states."""
    lookback = (TODAY - DAY).days
    deployment.emitters(finance(lookback_days=lookback), finance(name="all", params={"output_dir": "all"}))
    deployment.run()
    assert deployment.ended() == {day: "emitted" if day >= DAY else "skipped" for day in WINDOW}
    assert deployment.changed() == {f"acme_{day}.csv" for day in WINDOW if day >= DAY}
    assert deployment.ended("all") == dict.fromkeys(WINDOW, "emitted")


@pytest.mark.extensive
def test_weeks_are_written_again_while_they_grow(fresh: Emitting) -> None:
    """A later day is added to the file of its week."""
    fresh.emitters(finance(aggregation="weekly"))
    fresh.run(RunRequest(end=WINDOW[-2]))
    before = fresh.changed()
    assert before
    fresh.run()
    monday = WINDOW[-1] - timedelta(days=WINDOW[-1].weekday())
    assert fresh.changed() == {f"acme_{monday}.csv"}
    written = [amount for path in fresh.out.iterdir() for amount in amounts_of(path)]
    assert total(written) == total(fresh.all_rows()["amount"].to_pylist())


def test_a_failing_date_is_its_own_error_and_is_tried_again(deployment: Emitting, tmp_path: Path) -> None:
    """A failed date affects no other date or emitter, and the next run retries only that date."""
    with installed(tmp_path):
        deployment.emitters(tiny(deployment, broken_on=str(DAY)), finance())
        for attempts in (1, 2):
            result = deployment.run()
            assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
            assert result.errors == (f"emitter tiny: {DAY}: the printer is on fire",)
            failed = deployment.emissions("tiny")[DAY]
            assert (failed.state, failed.attempts, failed.error) == ("failed", attempts, "the printer is on fire")
        states = dict.fromkeys(WINDOW, "emitted")
        assert deployment.ended("tiny") == states | {DAY: "failed"}
        assert deployment.ended() == states
        deployment.emitters(tiny(deployment, colour="red"), finance())
        assert deployment.run().outcome is RunOutcome.COMPLETED
        assert deployment.ended("tiny") == states


@pytest.mark.parametrize("error", ["ZeroDivisionError", "SystemExit"])
def test_a_plugin_may_fail_in_any_way(deployment: Emitting, tmp_path: Path, error: str) -> None:
    """Any error of the plugin is an error of its date, in one line with the plugin and the place in its code."""
    with installed(tmp_path):
        deployment.emitters(tiny(deployment, broken_on=str(DAY), error=error))
        (told,) = deployment.run().errors
        assert set(deployment.ended("tiny").values()) == {"emitted", "failed"}
    expected = rf"plugin tiny: emit raised {error}: the printer is on fire \(tiny_emitter.py, line \d+\)"
    assert re.fullmatch(f"emitter tiny: {DAY}: {expected}", told)


def test_an_emitter_that_cannot_start(deployment: Emitting, tmp_path: Path) -> None:
    """An emitter that cannot start is one error and fails all of its dates; other emitters work."""
    with installed(tmp_path):
        deployment.emitters(tiny(deployment, error="open"), finance())
        result = deployment.run()
    assert result.errors == (f"emitter tiny: {WINDOW[0]} to {WINDOW[-1]}: it cannot start: no ink",)
    assert deployment.ended("tiny") == dict.fromkeys(WINDOW, "failed")
    assert deployment.ended() == dict.fromkeys(WINDOW, "emitted")


def test_a_place_that_cannot_be_written(deployment: Emitting) -> None:
    """A file in the place of the folder is an error of each date; once it is removed, all files are written."""
    deployment.emitters(finance())
    deployment.out.write_text("")
    result = deployment.run()
    assert len(result.errors) == len(WINDOW)
    assert all("cannot be written" in error for error in result.errors)
    deployment.out.unlink()
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert len(deployment.changed()) == len(WINDOW)


def test_a_stopped_run_keeps_what_is_written(deployment: Emitting) -> None:
    """The next run writes the remaining dates, and none twice."""
    deployment.emitters(finance())
    stop = StopSignal()

    def listen(progress: Progress) -> None:
        if progress.stage is Stage.EMITTING and progress.done == 2:
            stop.set()

    assert deployment.run(stop=stop, listener=listen).outcome is RunOutcome.INTERRUPTED
    assert deployment.ended() == dict.fromkeys(WINDOW[:2], "emitted")
    assert len(deployment.changed()) == 2
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert deployment.changed() == {f"acme_{day}.csv" for day in WINDOW[2:]}


def test_a_hanging_emitter_ends_with_the_run(deployment: Emitting, tmp_path: Path) -> None:
    """A stopped run interrupts the emitter, which is not recorded as a failure."""
    stop = StopSignal()

    def listen(progress: Progress) -> None:
        if progress.stage is Stage.EMITTING:
            threading.Timer(0.3, stop.set).start()

    with installed(tmp_path):
        deployment.emitters(tiny(deployment, hangs=True))
        began = time.monotonic()
        assert deployment.run(stop=stop, listener=listen).outcome is RunOutcome.INTERRUPTED
    assert time.monotonic() - began < 40
    assert deployment.ended("tiny") == {}


def test_facts_that_are_gone_are_the_dates_error(emitted: Emitting) -> None:
    """A file that is lost during a run fails its date and no other."""
    emitted.emitters(finance(name="again", params={"output_dir": "again"}))
    (file,) = emitted.store.facts.snapshot(CHARGEBACKS_TABLE).within(DayRange(DAY, DAY + ONE_DAY))

    def lose(progress: Progress) -> None:
        if progress.stage is Stage.EMITTING:
            Path(file.path).unlink(missing_ok=True)

    result = emitted.run(listener=lose)
    assert [error.startswith(f"emitter again: {DAY}: ") for error in result.errors] == [True]
    assert emitted.ended("again") == dict.fromkeys(WINDOW, "emitted") | {DAY: "failed"}


def test_only_the_newest_day_of_an_endpoint_counts(deployment: Emitting) -> None:
    """Without a history, the emitter prometheus writes the newest day only."""
    deployment.emitters({"type": "prometheus", "name": "grafana"})
    deployment.run()
    assert deployment.ended("grafana") == dict.fromkeys(WINDOW[:-1], "skipped") | {WINDOW[-1]: "emitted"}


def test_a_history_of_the_lookback(deployment: Emitting) -> None:
    """The file has every day of the lookback, and is written again when one of them changes."""
    params = {"history_path": "out/history.om"}
    lookback = (TODAY - DAY).days
    deployment.emitters({"type": "prometheus", "name": "grafana", "lookback_days": lookback, "params": params})
    deployment.run()
    lines = (deployment.out / "history.om").read_text().splitlines()
    assert len({line.rsplit(" ", 1)[1] for line in lines if not line.startswith("#")}) == len(WINDOW) - 3
    deployment.changed()
    deployment.run()
    assert deployment.changed() == set()
    deployment.run(RunRequest(DAY, DAY, recalculate=True))
    assert deployment.changed() == {"history.om"}


@pytest.mark.usefixtures("process")
def test_a_third_party_emitter_works_in_the_service(tmp_path: Path) -> None:
    """A third-party distribution is configured, checked and run by the command line, in its child process."""
    folder = tmp_path / "site"
    folder.mkdir()
    organisation = Organisation.generate(DemoSpec(today=utc_today(), size="small", days=DAYS))
    with DemoServer(organisation) as server:
        deployment = Emitting(server, tmp_path)
        with installed(folder):
            deployment.emitters(tiny(deployment, "printer", token="very-secret-7"))
        command = [sys.executable, "-m", "chargeback", "run", "--config", str(deployment.config_file)]
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "very-secret-7" not in done.stdout + done.stderr
    written = (tmp_path / "printer").read_text().splitlines()
    days = [state.tracking_date for state in deployment.states()]
    assert len(days) == len(WINDOW)
    assert written == [f"printer {day} {deployment.rows(day).num_rows} blue" for day in days]
    deployment.store.close()
