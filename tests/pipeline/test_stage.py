"""Batches: when days are committed, and what happens to them if something fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import Connection

from chargeback.errors import LeaseLost, SourceUnavailable, StorageBusy, StorageError
from chargeback.model.days import Clock, DayRange
from chargeback.pipeline import stage
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.pipeline.stage import MAX_DAYS, MAX_ROWS, Batch
from chargeback.store.control.catalogue import every_file
from chargeback.store.control.lease import Lease
from chargeback.store.facts.files import content_key
from chargeback.store.facts.tables import DIMENSIONS_TABLE, SCHEMAS, FactTables
from tests.support.laws import one_first
from tests.support.sources import DAY, RECALCULATE, Laboratory, line

DAYS = [DAY - timedelta(days=number) for number in range(4)]
#: Bills, charges and topics.
_STAGES = 3


@pytest.fixture
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """Yield a tenant with four days whose batches end only when they are full, even on a slow machine."""
    monkeypatch.setattr(stage, "MAX_SECONDS", 1000.0)
    with _billed(tmp_path) as opened:
        yield opened


def _billed(folder: Path) -> Laboratory:
    opened = Laboratory(folder, days=len(DAYS))
    opened.sources.lines = {day: [line("100", day=day)] for day in DAYS}
    opened.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10}}
    opened.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3}}
    return opened


@pytest.fixture
def commits(laboratory: Laboratory) -> list[datetime]:
    """Return the instants of all transactions of the catalogue."""
    facts, found = laboratory.store.facts, list[datetime]()

    @contextmanager
    def commit(lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        with FactTables.commit(facts, lease, now) as (connection, at):
            found.append(at)
            yield connection, at

    facts.commit = commit  # type: ignore[method-assign]
    return found


def test_a_batch_ends_with_enough_days_rows_or_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends at the first of these limits; the rest is committed at the end."""
    seen: list[Sequence[int]] = []
    assert Batch(seen.append).seconds_left is None
    with Batch(seen.append) as batch:
        for number in range(MAX_DAYS + 2):
            batch.add(number, 1)
        batch.add(99, MAX_ROWS)
        monkeypatch.setattr(stage, "MAX_SECONDS", 0.0)
        batch.add(100, 1)
        monkeypatch.undo()
        batch.add(101, 1)
        assert batch.seconds_left is not None
    assert [len(days) for days in seen] == [MAX_DAYS, 3, 1, 1]


@pytest.mark.parametrize(
    ("error", "is_committed"),
    [(SourceUnavailable("away"), True), (RuntimeError("a plugin"), True), (LeaseLost("lost"), False)],
)
def test_the_last_days_of_a_failed_stage(error: Exception, *, is_committed: bool) -> None:
    """The last days are committed unless the storage has failed, and the error is unchanged."""
    seen: list[Sequence[int]] = []

    def commit(days: Sequence[int]) -> None:
        seen.append(days)
        raise StorageBusy("busy")

    def fail() -> None:
        with Batch(commit) as batch:
            batch.add(1, 1)
            raise error

    with pytest.raises(type(error)):
        fail()
    assert bool(seen) is is_committed


def test_a_run_commits_its_days_together(laboratory: Laboratory, commits: list[datetime]) -> None:
    """Each stage is one transaction, for any number of days, also if all of them change."""
    assert laboratory.run().errors == ()
    assert len(commits) == _STAGES
    laboratory.sources.lines = {day: [line("110", day=day)] for day in DAYS}
    assert laboratory.run().errors == ()
    assert len(commits) == 2 * _STAGES
    with laboratory.store.control.read() as connection:
        ended = {each.table for each in every_file(connection) if each.until is not None}
    assert ended == {"billing", "chargebacks", "topic_attributions"}


def test_days_before_an_answer_that_fails_the_run_are_stored(laboratory: Laboratory) -> None:
    """If the provider fails halfway, the days before are stored."""
    billing = laboratory.sources.billing

    def failing(days: DayRange) -> Iterator[object]:
        answers = billing(days)
        yield next(answers)
        yield next(answers)
        raise SourceUnavailable("HTTP 503", source="costs")

    laboratory.sources.billing = failing  # type: ignore[method-assign, assignment]
    assert laboratory.run().outcome is RunOutcome.FAILED
    assert [laboratory.state(day).billing_gathered for day in reversed(DAYS)] == [True, True, False, False]


def _stored(laboratory: Laboratory) -> list[str]:
    """Return the digests of all present files."""
    facts = laboratory.store.facts
    return sorted(
        f"{name} {file.day} {content_key(file.path)}"
        for name in SCHEMAS
        if name != DIMENSIONS_TABLE
        for file in facts.snapshot(name).files
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the files of the same tenant after one run."""
    with _billed(tmp_path_factory.mktemp("undisturbed")) as opened:
        assert opened.run().errors == ()
        return _stored(opened)


def _dying(facts: FactTables, step: int, *, is_committed: bool) -> None:
    """Let the process die before or after a commit."""
    commit, steps = FactTables.commit, iter(range(100))

    @contextmanager
    def commit_and_die(lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        number = next(steps)
        if number > step:
            raise StorageBusy("dead")
        with commit(facts, lease, now) as found:
            yield found
            if number == step and not is_committed:
                raise StorageBusy("dead")
        if number == step:
            raise StorageBusy("dead")

    facts.commit = commit_and_die  # type: ignore[method-assign]


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("step", one_first(range(_STAGES)))
def test_a_kill_at_a_commit_repeats_the_days(
    laboratory: Laboratory, undisturbed: list[str], step: int, *, is_committed: bool
) -> None:
    """Wherever a run ends in a batch, the next one gives the files of an undisturbed run, each once."""
    facts = laboratory.store.facts
    _dying(facts, step, is_committed=is_committed)
    laboratory.run()
    del facts.commit
    assert laboratory.run().errors == ()
    assert _stored(laboratory) == undisturbed
    assert {laboratory.state(day).chargebacks.revision for day in DAYS} == {1}


@pytest.mark.extensive
def test_an_error_of_the_storage_is_one_of_each_day(laboratory: Laboratory) -> None:
    """A failed commit is an error of all days of its batch, and is reported once."""

    def refuse(lease: Lease, now: Clock) -> NoReturn:
        raise StorageError("the table chargebacks cannot be used")

    laboratory.run()
    laboratory.store.facts.commit = refuse  # type: ignore[method-assign]
    result = laboratory.run(RECALCULATE)
    assert result.errors[0] == f"4 days ({DAYS[-1]} to {DAYS[0]}): the table chargebacks cannot be used"
    assert {laboratory.state(day).error for day in DAYS} == {"the table chargebacks cannot be used"}
