"""Simulations are kept for a week, and one that no process calculates has failed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from chargeback.store.control.simulations import (
    FAILED,
    KEPT,
    MOST_KEPT,
    RUNNING,
    SILENCE,
    add_simulation,
    end_simulation,
    find_simulation,
    list_simulations,
    note_simulation,
)
from tests.support.clock import NOW
from tests.support.facts import tenant_store

SECOND = timedelta(seconds=1)


def test_a_simulation_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    """A simulation has its progress, then its result, and is removed after a week."""
    with tenant_store(tmp_path) as store, store.control.write() as connection:
        begun = add_simulation(connection, "one", {"policies": {}}, "ann", NOW)
        assert find_simulation(connection, "one", NOW) == begun
        note_simulation(connection, "one", NOW + SECOND, 1, 2)
        noted = find_simulation(connection, "one", NOW + SECOND)
        assert noted is not None
        assert (noted.state, noted.done, noted.days) == (RUNNING, 1, 2)
        end_simulation(connection, "one", 2, answer="{}", error=None)
        done = find_simulation(connection, "one", NOW + KEPT - SECOND)
        assert done is not None
        assert (done.answer, done.error, done.asked, done.done) == ("{}", None, {"policies": {}}, 2)
        assert [each.answer for each in list_simulations(connection, NOW)] == [None]
        assert find_simulation(connection, "one", NOW + KEPT) is None
        assert list_simulations(connection, NOW + KEPT) == []


def test_one_that_nobody_calculates_any_more_has_failed(tmp_path: Path) -> None:
    """A simulation whose process has ended has failed, and can be requested again."""
    with tenant_store(tmp_path) as store, store.control.write() as connection:
        add_simulation(connection, "one", {}, "ann", NOW)
        later = NOW + SILENCE + SECOND
        gone = find_simulation(connection, "one", later)
        assert gone is not None
        assert (gone.state, gone.error) == (FAILED, "the process that calculated it has ended: ask for it again")
        assert add_simulation(connection, "one", {}, "ben", later).state == RUNNING
        (again,) = list_simulations(connection, later)
        assert (again.state, again.asked_by) == (RUNNING, "ben")


def test_the_newest_are_kept(tmp_path: Path) -> None:
    """Only the newest simulations are kept, so that the database stays small."""
    with tenant_store(tmp_path) as store, store.control.write() as connection:
        for number in range(MOST_KEPT + 2):
            add_simulation(connection, f"{number}", {}, "ann", NOW + number * SECOND)
        kept = [each.id for each in list_simulations(connection, NOW)]
        assert kept == [f"{number}" for number in reversed(range(2, MOST_KEPT + 2))]
