"""Data lost by a disk is reported, and rebuilt from stored evidence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import RunOutcome, RunResult
from chargeback.recompute.verify import DAMAGED, verify
from chargeback.store.facts.dimensions import stored_dimensions
from chargeback.store.facts.published import files_in_log
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    DIMENSIONS_TABLE,
    MEMBERS_TABLE,
    SCHEMAS,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    read_day,
)
from chargeback.store.facts.upkeep import STAMP
from tests.support.clock import TODAY
from tests.support.damage import DAMAGES, file_of, flip_a_bit
from tests.support.deployments import Deployment
from tests.support.sources import RECALCULATE

DAY = TODAY - timedelta(days=8)
EVIDENCE = (USAGE_TABLE, MEMBERS_TABLE, TOPIC_USAGE_TABLE)


def path_of(deployment: Deployment, name: str, day: date = DAY) -> Path:
    """Return the path of a table's file of a day."""
    return Path(file_of(deployment.store.facts, name, day).path)


def stored(deployment: Deployment, day: date = DAY) -> dict[str, pa.Table]:
    """Return all stored tables of a day."""
    by_day = [name for name, schema in SCHEMAS.items() if "date" in schema.names]
    return {name: read_day(deployment.store.facts, name, day) for name in by_day}


def upkeep_due(deployment: Deployment) -> None:
    """Make the next run check all files."""
    (deployment.store.facts.root / STAMP).unlink()


@contextmanager
def reopened(deployment: Deployment) -> Iterator[Deployment]:
    """Open the same tenant as a process that has not read its tables yet."""
    other = Deployment(deployment.server, deployment.config_file.parent)
    yield other
    other.store.close()


def named(result: RunResult, name: str, day: date = DAY) -> bool:
    """Return whether the run reports the loss once, and nothing else."""
    return [error.startswith(f"{day}: {name}: ") for error in result.errors] == [True]


@pytest.mark.parametrize("name", [BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE])
@pytest.mark.parametrize(("damage", "is_hidden"), DAMAGES.values(), ids=DAMAGES)
def test_results_and_bills_are_had_again(
    calculated: Deployment, name: str, damage: Callable[[Path], None], is_hidden: bool
) -> None:
    """The loss is reported, the day is rebuilt exactly, and the next run has no errors."""
    before = stored(calculated)
    asked = calculated.server.requests["/prometheus/api/v1/query"]
    damage(path_of(calculated, name))
    if is_hidden:
        upkeep_due(calculated)
    result = calculated.run()
    assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert named(result, name)
    assert stored(calculated) == before
    assert calculated.server.requests["/prometheus/api/v1/query"] == asked
    assert calculated.run().outcome is RunOutcome.COMPLETED


@pytest.mark.parametrize("name", EVIDENCE)
def test_what_was_calculated_from_lost_evidence_stays(calculated: Deployment, name: str) -> None:
    """Every run reports the loss; a recalculation fetches the evidence again."""
    rows = calculated.rows(DAY)
    before = stored(calculated)
    path_of(calculated, name).unlink()
    for _ in range(2):
        result = calculated.run()
        assert (result.outcome, result.dates_calculated) == (RunOutcome.COMPLETED_WITH_ERRORS, 0)
        assert named(result, name)
        assert calculated.rows(DAY).equals(rows)
    calculated.run(RunRequest(DAY, DAY, recalculate=True))
    assert calculated.run().outcome is RunOutcome.COMPLETED
    assert stored(calculated) == before


@pytest.mark.parametrize("names", [(CHARGEBACKS_TABLE, USAGE_TABLE), (CHARGEBACKS_TABLE, MEMBERS_TABLE)])
def test_a_day_that_lost_its_evidence_too_is_measured_anew(calculated: Deployment, names: tuple[str, ...]) -> None:
    """Without its rows and evidence, the day is calculated from new measurements."""
    before = stored(calculated)
    for name in names:
        path_of(calculated, name).unlink()
    result = calculated.run()
    assert (result.outcome, result.dates_calculated, len(result.errors)) == (RunOutcome.COMPLETED_WITH_ERRORS, 1, 2)
    assert stored(calculated) == before


def test_topics_that_lost_their_evidence_too_are_measured_anew(calculated: Deployment) -> None:
    """The overlay of the day is calculated from new measurements."""
    before = stored(calculated)
    for name in (TOPICS_TABLE, TOPIC_USAGE_TABLE):
        path_of(calculated, name).unlink()
    assert calculated.run().outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert stored(calculated) == before


@pytest.mark.extensive
def test_lost_evidence_does_not_cost_the_other_days(calculated: Deployment) -> None:
    """A day whose usage can neither be read nor measured waits with its error; other days are calculated."""
    other = DAY + timedelta(days=1)
    for name, day in ((CHARGEBACKS_TABLE, DAY), (USAGE_TABLE, DAY), (CHARGEBACKS_TABLE, other)):
        path_of(calculated, name, day).unlink()
    calculated.lose_metrics()
    assert calculated.run().dates_calculated == 1
    assert not calculated.state(DAY).chargebacks.is_current
    assert "metrics unavailable" in str(calculated.state(DAY).error)
    calculated.have_metrics()
    assert calculated.run().dates_calculated == 1


def test_a_bill_too_old_to_be_gathered_is_named(calculated: Deployment) -> None:
    """Beyond the window a lost bill needs a backup; rows calculated from it are still served."""
    rows = calculated.rows(DAY)
    path_of(calculated, BILLING_TABLE).unlink()
    calculated.configure(lookback_days=7)
    result = calculated.run()
    assert named(result, BILLING_TABLE)
    assert "restore it from a backup" in result.errors[0]
    assert calculated.rows(DAY).equals(rows)


def test_a_table_that_is_gone_is_made_again(calculated: Deployment) -> None:
    """A table without files is rebuilt, every day from its evidence."""
    before = calculated.all_rows()
    shutil.rmtree(calculated.store.facts.root / CHARGEBACKS_TABLE)
    with reopened(calculated) as deployment:
        result = deployment.run()
        assert result.dates_calculated == len(deployment.states()) == len(result.errors)
        assert all(f": {CHARGEBACKS_TABLE}: " in error and " is missing; " in error for error in result.errors)
        assert deployment.all_rows().equals(before)


def test_a_disk_that_is_not_mounted_is_refused(calculated: Deployment) -> None:
    """No new tables are created in place of missing ones that have recorded days."""
    root = calculated.store.facts.root
    root.rename(root.with_suffix(".away"))
    with reopened(calculated) as deployment:
        result = deployment.run()
        assert result.outcome is RunOutcome.FAILED
        assert "is its disk mounted?" in result.errors[0]
        assert not root.exists()
        root.with_suffix(".away").rename(root)
        assert deployment.run().outcome is RunOutcome.COMPLETED


def test_a_published_log_that_a_power_cut_tore_is_written_anew(calculated: Deployment) -> None:
    """No reader of the service is affected, and the next run that publishes something writes the log again."""
    before = calculated.all_rows()
    log = calculated.store.facts.root / CHARGEBACKS_TABLE / "_delta_log"
    for entry in log.glob("*.json"):
        entry.write_bytes(bytes(entry.stat().st_size))
    with reopened(calculated) as deployment:
        assert deployment.all_rows().equals(before)
        assert deployment.run(RECALCULATE).outcome is RunOutcome.COMPLETED
        files = {file.path for file in deployment.store.facts.snapshot(CHARGEBACKS_TABLE).files}
        place = deployment.store.facts.place
        assert {f"{place.root}/{path}" for path, *_ in files_in_log(place, CHARGEBACKS_TABLE)} == files


def test_the_register_of_dimensions_is_made_again(calculated: Deployment) -> None:
    """The register of dimensions is rebuilt from the days."""
    before = stored_dimensions(calculated.store.facts).sort_by("dimension_id")
    for file in calculated.store.facts.snapshot(DIMENSIONS_TABLE).files:
        flip_a_bit(Path(file.path))
    result = calculated.run()
    assert [error.startswith(f"{DIMENSIONS_TABLE}: ") for error in result.errors] == [True]
    assert stored_dimensions(calculated.store.facts).equals(before)


def test_hidden_damage_is_found_once_a_day(calculated: Deployment) -> None:
    """Not every run reads all files."""
    flip_a_bit(path_of(calculated, CHARGEBACKS_TABLE))
    assert calculated.run().outcome is RunOutcome.COMPLETED
    upkeep_due(calculated)
    assert named(calculated.run(), CHARGEBACKS_TABLE)


def test_verify_names_what_is_lost(calculated: Deployment) -> None:
    """Verification of bills and chargebacks reads everything, and continues after a day that it cannot read."""
    flip_a_bit(path_of(calculated, USAGE_TABLE))
    path_of(calculated, CHARGEBACKS_TABLE).unlink()
    wrong = [check for check in verify(calculated.store) if check.is_wrong]
    assert [(check.day, check.state) for check in wrong] == [(DAY, DAMAGED)]
    assert [damage.split("/")[0] for damage in wrong[0].damage] == ["the file chargebacks", "the file usage"]
