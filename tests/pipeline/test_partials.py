"""A run writes the partial aggregates of its files, and does not fail without them."""

from __future__ import annotations

import logging
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from chargeback.model.days import week_of
from chargeback.model.run_request import RunRequest
from chargeback.pipeline import partials
from chargeback.pipeline.partials import PartialsWriter
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.store.facts.partial_files import PARTIALS
from chargeback.store.facts.tables import FactTables
from chargeback.store.facts.upkeep import STAMP
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.partials import partial_kinds
from tests.support.clock import TODAY
from tests.support.deployments import Deployment
from tests.support.facts import Share, days_from, new_facts, write_shares


def _files(facts: FactTables) -> set[Path]:
    return set((facts.root / PARTIALS).rglob("*.parquet"))


def _expected(facts: FactTables) -> set[tuple[str, str]]:
    """Return kind and week of every expected partial file."""
    return {
        (kind, str(week_of(day).start))
        for table, kinds in partial_kinds().items()
        for day in facts.snapshot(table).days
        for kind in kinds
    }


def _there(facts: FactTables) -> set[tuple[str, str]]:
    return {(path.parent.name, path.name[:10]) for path in _files(facts)}


def test_a_run_makes_them_of_all_that_it_writes(deployment: Deployment) -> None:
    """There is one file for each kind and week, and a run without changes keeps them."""
    assert deployment.run().outcome is RunOutcome.COMPLETED
    facts = deployment.store.facts
    made = _files(facts)
    assert _there(facts) == _expected(facts)
    assert len(made) == len(_expected(facts)) > 0
    deployment.run()
    assert _files(facts) == made


@pytest.mark.extensive
def test_a_run_makes_what_is_missing(deployment: Deployment) -> None:
    """A run writes missing partials, also of days that it does not change."""
    deployment.run()
    facts = deployment.store.facts
    made = _files(facts)
    shutil.rmtree(facts.root / PARTIALS)
    assert deployment.run().dates_calculated == 0
    assert _files(facts) == made


@pytest.mark.extensive
def test_upkeep_removes_what_belongs_to_nothing(deployment: Deployment) -> None:
    """Partials of other versions, and of removed data files, are deleted once a day."""
    deployment.run()
    facts = deployment.store.facts
    made = _files(facts)
    old = next(iter(made)).parent.with_name("identity_id-0000000000000000") / "2026-01-05-0.parquet"
    old.parent.mkdir()
    old.write_bytes(b"of another version")
    deployment.run()
    assert old.exists()
    (facts.root / STAMP).unlink()
    deployment.run()
    assert not old.parent.exists()
    assert _files(facts) == made


@pytest.mark.extensive
def test_a_run_does_without_them(deployment: Deployment) -> None:
    """If partials cannot be written, the run still completes."""
    deployment.store.facts.root.mkdir(parents=True, exist_ok=True)
    (deployment.store.facts.root / PARTIALS).write_text("no folder")
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert deployment.run(RunRequest(recalculate=True)).outcome is RunOutcome.COMPLETED


def test_weeks_are_made_when_another_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While many days are written, each week is summed once: when another one begins and there are many rows, else at
    the end."""
    monkeypatch.setattr(partials, "ROWS_AT_ONCE", 5)
    facts = new_facts(tmp_path / "facts")
    monday = week_of(TODAY).start
    days = days_from(monday, 15)
    write_shares(facts, [Share(day, "sa-1", "1") for day in days])
    writer = PartialsWriter(facts, CHARGEBACKS)
    for day in days[:7]:
        writer.day_written(day, 1)
    assert _files(facts) == set()
    writer.day_written(days[7], 1)
    assert {week for _, week in _there(facts)} == {str(monday)}
    writer.day_written(days[8], 1)
    writer.day_written(days[14], 1)
    assert {week for _, week in _there(facts)} == {str(monday)}
    writer.close()
    assert {week for _, week in _there(facts)} == {str(monday + timedelta(days=each)) for each in (0, 7, 14)}


def test_a_table_that_cannot_be_read_costs_only_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An unreadable table is a warning here; other stages of the run report the error."""
    facts = new_facts(tmp_path / "facts")
    write_shares(facts, [Share(TODAY, "sa-1", "1")])
    writer = PartialsWriter(facts, CHARGEBACKS)
    writer.day_written(TODAY, 1)
    facts.root.with_suffix(".db").unlink()
    facts.control.close()
    with caplog.at_level(logging.WARNING):
        writer.close()
    assert "queries read the rows instead" in caplog.text
