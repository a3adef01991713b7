"""An object store that dies, and whose answers get lost: what was committed is there, once, whatever writers heard."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.files import check_file, read_file
from chargeback.store.facts.places import LOG, Place, entry_name
from chargeback.store.facts.tables import MEMBERS_TABLE, FactTables
from tests.drills.cases import cases
from tests.drills.ledger import Drill, Ledger, StoredResult, tries
from tests.store.facts.test_tables import rows
from tests.support.databases import scratch_database
from tests.support.deployments import Deployment
from tests.support.network import Fault, network
from tests.support.objects import ObjectServer, object_server, own_object_server
from tests.support.processes import command, eventually

TWO = "two writers commit to one table in object storage"
KILLED = "object store killed for {} s while two write"
LOST = "object store loses every fifth answer to a commit"
WRONG = "object store answers every fifth commit with 409, 500 or 503"
FIRST = date(2026, 1, 1)
COMMITS = 60
#: The default of the setting; the tests' servers are given up sooner.
PATIENCE = 90


def place_in(server: ObjectServer, folder: Path) -> Bucket:
    """A new place in the bucket of a server."""
    return Bucket(server.location(), Copies(folder / "copies", 10**9))


def write(place: Place, days: Sequence[date]) -> float:
    """Commit each day by itself; return how long the longest took."""
    facts, longest = FactTables(place), 0.0
    for day in days:
        start = time.monotonic()
        facts.replace_day(MEMBERS_TABLE, day, rows(day, f"of {day}"), epoch=1)
        longest = max(longest, time.monotonic() - start)
    return longest


def two_write(pool: Executor, place: Place, each: int) -> tuple[list[date], list[Future[float]]]:
    """Let two writers begin to commit ``each`` days of their own; return all of the days."""
    FactTables(place).create()
    days = [FIRST + timedelta(days=number) for number in range(2 * each)]
    return days, [pool.submit(write, place, days[start::2]) for start in (0, 1)]


def has_begun(place: Place, writing: Sequence[Future[float]]) -> bool:
    """Whether some commits are there, and more are to come; looks now and then."""
    time.sleep(0.5)
    assert not any(each.done() for each in writing)
    return place.newest_version(MEMBERS_TABLE) >= COMMITS // 4


def processes() -> Executor:
    """Two processes."""
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


def audit(place: Place, days: Sequence[date], drill: Drill) -> None:
    """Every day is there with its row, once, as it was written; and the log has each commit once, none of which adds
    and removes one file."""
    snapshot = FactTables(place).snapshot(MEMBERS_TABLE)
    stored: Counter[tuple[date, str]] = Counter()
    size_of = place.sizes(MEMBERS_TABLE)
    for file in snapshot.files:
        check_file(file, thorough=True, size_of=size_of)
        assert file.day is not None
        stored.update((file.day, identity) for identity in read_file(file)["identity_id"].to_pylist())
    wanted = Counter((day, f"of {day}") for day in days)
    lost = (wanted - stored).total() + (stored - wanted).total()
    drill.lost_rows += lost
    assert lost == 0
    assert len(snapshot.files) == len(days)
    added: Counter[str] = Counter()
    for version in range(1, snapshot.version + 1):
        paths = paths_of_entry(place, version)
        assert not set(paths["add"]) & set(paths["remove"]), f"version {version} adds and removes one file"
        # The entry that creates the table has no files; it is there again if the answer to it was lost.
        assert paths["add"] or not (added or paths["remove"]), f"version {version} is a commit too many"
        added.update(paths["add"])
    assert set(added.values()) == {1}, "a file was added twice"
    assert len(added) == len(days)


def paths_of_entry(place: Place, version: int) -> Mapping[str, list[str]]:
    """The files that a commit adds and removes."""
    found: dict[str, list[str]] = {"add": [], "remove": []}
    for line in place.read(f"{MEMBERS_TABLE}/{LOG}/{entry_name(version)}").splitlines():
        for kind, action in json.loads(line).items():
            if kind in found:
                found[kind].append(action["path"])
    return found


@tries(0, 1, seconds=1800)
def test_two_writers(tmp_path: Path, ledger: Ledger, tries: int) -> None:
    """Nobody disturbs them but the other."""
    for _ in range(tries):
        place = place_in(replace(object_server(), retry_seconds=PATIENCE), tmp_path)
        with ledger.drill(TWO) as drill, processes() as pool:
            days, writing = two_write(pool, place, COMMITS)
            print(f"longest commit: {max(each.result() for each in writing):.1f} s")
            audit(place, days, drill)


@tries(0, 1, seconds=1800)
@pytest.mark.parametrize("seconds", [4, 20])
def test_a_store_that_is_killed(tmp_path: Path, ledger: Ledger, seconds: int, tries: int) -> None:
    """The writers wait until it is there again, and notice nothing else."""
    for number in range(tries):
        with (
            own_object_server(tmp_path / f"store-{number}") as (server, own),
            ledger.drill(KILLED.format(seconds)) as drill,
            processes() as pool,
        ):
            place = place_in(replace(server, retry_seconds=PATIENCE), tmp_path)
            days, writing = two_write(pool, place, COMMITS)
            eventually(lambda: has_begun(place, writing), 600)  # noqa: B023 - called at once
            own.kill()
            time.sleep(seconds)
            own.resume(server)
            assert not all(each.done() for each in writing)
            print(f"longest commit: {max(each.result() for each in writing):.1f} s")
            audit(place, days, drill)


_WRONG_ANSWERS = [Fault(5, status, before) for status in (409, 500, 503) for before in (False, True)]


@cases([Fault(5)], [Fault(5, before=True), *_WRONG_ANSWERS])
def test_answers_to_commits_get_lost(tmp_path: Path, ledger: Ledger, case: Fault, tries: int) -> None:
    """Who gets no answer, or another, looks whether the commit is there, and makes no second one of it. In a drill, two
    processes write."""
    each = COMMITS if tries > 1 else 5
    with network(replace(object_server(), retry_seconds=PATIENCE), fault=case) as seen:
        place = place_in(seen.server, tmp_path)
        with ledger.drill(WRONG if case.status else LOST) as drill:
            with processes() if tries > 1 else ThreadPoolExecutor(1) as pool:
                days, writing = two_write(pool, place, each)
                print(f"longest commit: {max(one.result() for one in writing):.1f} s; {seen.disturbed} disturbed")
            assert seen.disturbed
            audit(place, days, drill)


@tries(0, 1)
def test_a_run_whose_answers_get_lost(
    deployment: Deployment, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """It ends as if nothing had been: with the rows and the export of a tenant on a disk."""
    for _ in range(tries):
        with (
            network(replace(object_server(), retry_seconds=PATIENCE), fault=Fault(5)) as seen,
            scratch_database("postgresql", tmp_path) as connection_string,
            ledger.drill(LOST) as drill,
        ):
            deployment.store_in(connection_string, seen.server)
            assert command(deployment.config_file, "run").wait() == 0
            assert seen.disturbed
            drill.compare(undisturbed, deployment.store)
