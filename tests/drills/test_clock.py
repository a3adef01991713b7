"""A wrong clock does no lasting damage: a run is refused because the provider's responses have the right time, and
after the correction, wrong timestamps block no run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml
from sqlalchemy import update

from chargeback.demo.server import DemoServer
from chargeback.model.days import utc_now
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.rules import topic_plan
from chargeback.recompute.verify import ATTRIBUTED, verify_topics
from chargeback.store.control import schema
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.control.runs import pipeline_state
from chargeback.store.facts.upkeep import STAMP
from tests.drills.cases import cases
from tests.drills.ledger import TODAY, Ledger, StoredResult
from tests.support.clock import FAKED
from tests.support.deployments import Deployment
from tests.support.processes import command, eventually
from tests.support.runs import Ended, recorded_runs, run_to_its_end

FAULT = "clock put back"
LOOKBACK = 42
RIGHT = "+0d"


@dataclass(frozen=True)
class Case:
    """Consecutive runs, each under a clock some days ahead (``+2d``) or behind (``-3d``), of a tenant that has never
    run or is calculated."""

    clocks: tuple[str, ...]
    is_calculated: bool = False

    def __str__(self) -> str:
        return " then ".join(("calculated", *self.clocks) if self.is_calculated else self.clocks)


CASES = (
    Case(("+2d", RIGHT)),
    Case(("-3d", RIGHT), is_calculated=True),
    Case(("+400d", RIGHT), is_calculated=True),
    Case(("+2d", RIGHT), is_calculated=True),
    Case(("-3d", RIGHT)),
    Case(("+400d", RIGHT)),
    Case(("+100d", RIGHT), is_calculated=True),
    Case(("-400d", RIGHT), is_calculated=True),
    Case(("+2d", "-3d", "+400d", RIGHT)),
)


@cases([], CASES)
def test_a_clock_that_is_put_right(
    case: Case,
    server: DemoServer,
    prepared: Path,
    tmp_path: Path,
    undisturbed: StoredResult,
    ledger: Ledger,
    tries: int,
) -> None:
    """A run under the wrong clock reports it and changes nothing; in the end, the result equals that of a tenant whose
    clock was always right, and nothing waits for the wrong time."""
    for number in range(tries):
        folder = tmp_path / f"{number}"
        is_calculated = case.is_calculated
        deployment = Deployment.copied(prepared, server, folder) if is_calculated else Deployment.within(server, folder)
        with ledger.drill(FAULT) as drill:
            for clock in case.clocks:
                ended = _run_under(clock, deployment)
                is_calculated = is_calculated or clock == RIGHT
                assert ended.code == (0 if clock == RIGHT else 1), ended.said
                assert ("set the clock" in ended.said) == (clock != RIGHT)
                if is_calculated:
                    drill.compare(undisturbed, deployment.store)
                    _every_topic_has_its_share(deployment)
            _nothing_is_ahead(deployment)
        deployment.store.close()


def _run_under(clock: str, deployment: Deployment) -> Ended:
    """Run once under another time of day."""
    ended = run_to_its_end(deployment.config_file, under=("faketime", "-f", clock), environment=FAKED)
    assert "Traceback" not in ended.said
    return ended


def _every_topic_has_its_share(deployment: Deployment) -> None:
    plan = topic_plan(deployment.tenant)
    assert plan is not None
    checks = [check for check in verify_topics(deployment.store, plan, TODAY) if check.billed]
    assert {check.state for check in checks} == {ATTRIBUTED}
    assert not [check for check in checks if check.is_wrong or not check.attributed]


def _nothing_is_ahead(deployment: Deployment) -> None:
    """Check that neither the last recorded run nor the upkeep is in the future."""
    with deployment.store.control.read() as connection:
        last = pipeline_state(connection).last_ended
    assert last is not None
    assert last["ended_at"] <= utc_now()
    upkeep = (deployment.store.facts.root / STAMP).read_text().strip()
    assert datetime.fromisoformat(upkeep) <= utc_now()


@pytest.mark.drill
def test_the_service_does_not_wait_for_the_wrong_time(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger
) -> None:
    """A worker with a pause between runs starts at once, although the last run seems to end in two days."""
    deployment = Deployment.within(server, tmp_path / "served")
    document = yaml.safe_load(deployment.config_file.read_text())
    document["tenants"]["acme"]["plugin_settings"]["min_refresh_gap_seconds"] = 3600
    deployment.config_file.write_text(yaml.safe_dump(document))
    with ledger.drill(FAULT) as drill:
        assert _run_under("+2d", deployment).code == 1
        worker = command(deployment.config_file, "serve", "--mode", "worker")
        try:
            eventually(lambda: [run.outcome for run in recorded_runs(deployment.store)] == ["failed", "completed"])
            worker.terminate()
            assert worker.wait(30) == 0
        finally:
            worker.kill()
            worker.wait()
        drill.compare(undisturbed, deployment.store)
    deployment.store.close()


@pytest.mark.drill
def test_a_lease_of_the_wrong_time_is_nobodys(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger
) -> None:
    """The lease of a process on another host that died under a clock two days ahead does not lock the tenant."""
    deployment = Deployment.within(server, tmp_path / "locked")
    with ledger.drill(FAULT) as drill:
        with deployment.store.control.write() as connection:
            owner = LeaseOwner("elsewhere", "another boot", 1, "1", "token")
            ahead = utc_now() + timedelta(days=2)
            connection.execute(
                update(schema.tenant).values(lease_owner=str(owner), lease_expires_at=ahead, lease_epoch=1)
            )
        assert deployment.run().outcome is RunOutcome.COMPLETED
        drill.compare(undisturbed, deployment.store)
    deployment.store.close()


@pytest.mark.drill
def test_old_days_are_asked_for_again(server: DemoServer, tmp_path: Path, ledger: Ledger) -> None:
    """A day that is fetched once in 24 hours is fetched again, although it seems to have been gathered in two days."""
    day = TODAY - timedelta(days=LOOKBACK)
    deployment, peaceful = (Deployment.within(server, tmp_path / name) for name in ("old", "right"))
    for each in (deployment, peaceful):
        each.configure(lookback_days=LOOKBACK)
    with ledger.drill(FAULT) as drill:
        assert deployment.run().outcome is RunOutcome.COMPLETED
        with deployment.store.control.write() as connection:
            connection.execute(update(schema.days).values(gathered_at=utc_now() + timedelta(days=2)))
        server.changes.edit_costs(day, lambda rows: rows[1:])
        for each in (deployment, peaceful):
            assert each.run().outcome is RunOutcome.COMPLETED
        drill.compare(StoredResult.of(peaceful.store), deployment.store)
    for each in (deployment, peaceful):
        each.store.close()
