"""Queries run in parallel, can be cancelled, raise the service's errors, and respect the limits of the machine."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.errors import QueryTimeout, StorageError
from chargeback.store.queries.engine import (
    SMALLEST_MEMORY,
    CancellationToken,
    KeptTables,
    QueryEngine,
    available_memory,
    available_processors,
    default_memory,
)
from tests.support.readers import Ask

HEAVY = "SELECT count(*) FROM range(10000000000) a(i) WHERE hash(i) % 7 = 8"


def _cancel_repeatedly(token: CancellationToken, done: threading.Event) -> None:
    time.sleep(0.2)
    while not done.is_set():
        token.cancel()
        time.sleep(0.02)


def test_tables_are_kept_as_far_as_there_is_room() -> None:
    """The most recently used tables stay, and a large one is not stored."""
    small, large = pa.table({"n": [0] * 16}), pa.table({"n": [0] * 32})
    kept = KeptTables(most_bytes=16 * small.nbytes)
    for name in range(17):
        assert kept.get(name, lambda: small) is small
        assert kept.get(0, lambda: large) is small
    assert len(kept) == 16
    assert kept.get(1, lambda: large) is large, "the oldest one went"
    assert kept.get(1, lambda: small) is small, "nor was the large one kept"


def test_a_cancelled_query_is_interrupted(engine: QueryEngine) -> None:
    """A heavy query ends soon after its token is cancelled, and the engine continues to work."""
    token, done = CancellationToken(), threading.Event()
    canceller = threading.Thread(target=_cancel_repeatedly, args=(token, done))
    canceller.start()
    with pytest.raises(QueryTimeout), engine.cursor(token) as cursor:
        cursor.rows(HEAVY)
    done.set()
    canceller.join()
    with engine.cursor(CancellationToken()) as cursor:
        assert cursor.rows("SELECT 1") == [(1,)]


def test_a_cancelled_stream_is_interrupted(engine: QueryEngine) -> None:
    """The error of the Arrow reader means the same: the query is cancelled."""
    token, done = CancellationToken(), threading.Event()
    canceller = threading.Thread(target=_cancel_repeatedly, args=(token, done))
    canceller.start()
    sql = "SELECT sum(hash(i)) FROM range(10000000000) a(i)"
    with pytest.raises(QueryTimeout), engine.cursor(token) as cursor:
        list(cursor.batches(sql, {}, size=1000))
    done.set()
    canceller.join()


def test_a_query_cancelled_before_its_start_never_runs(engine: QueryEngine) -> None:
    """A query whose time expired in the queue is not started."""
    token = CancellationToken()
    token.cancel()
    with pytest.raises(QueryTimeout), engine.cursor(token) as cursor:
        cursor.rows(HEAVY)


def test_cancelling_one_query_leaves_others_alone(engine: QueryEngine) -> None:
    """Each token has its own cursor."""
    other = CancellationToken()
    with engine.cursor(CancellationToken()) as cursor, engine.cursor(other):
        other.cancel()
        assert cursor.rows("SELECT count(*) FROM range(1000)") == [(1000,)]


def test_a_missing_file_is_a_storage_error(ask: Ask, tmp_path: Path) -> None:
    """Callers do not see DuckDB's errors."""
    with pytest.raises(StorageError):
        ask(lambda cursor: cursor.rows("SELECT * FROM read_parquet($f)", {"f": [str(tmp_path / "no.parquet")]}))


def test_more_than_memory_is_a_storage_error() -> None:
    """A result beyond the memory limit raises an error that mentions memory."""
    engine = QueryEngine(memory=20_000_000, threads=1)
    with pytest.raises(StorageError, match="memory"), engine.cursor(CancellationToken()) as cursor:
        cursor.rows("SELECT list(i::VARCHAR) FROM range(100000000) a(i)")
    engine.close()


def test_the_machine_bounds_an_engine_without_limits() -> None:
    """By default an engine uses a quarter of the memory and all processors available to the process."""
    for engine, memory, threads in (
        (QueryEngine(), default_memory(), available_processors()),
        (QueryEngine(memory=512 * 2**20, threads=3), 512 * 2**20, 3),
    ):
        with engine.cursor(CancellationToken()) as cursor:
            ((limit, count),) = cursor.rows("SELECT current_setting('memory_limit'), current_setting('threads')")
        engine.close()
        shown, unit = limit.split(" ")
        assert float(shown) * 1024 ** ("KMGT".index(unit[0]) + 1) == pytest.approx(memory, rel=0.1)
        assert count == threads
    assert SMALLEST_MEMORY <= default_memory() <= max(available_memory() // 4, SMALLEST_MEMORY)


def test_python_variables_are_not_tables(ask: Ask) -> None:
    """SQL cannot read the variables of Python."""
    secrets = "not a table"  # noqa: F841
    with pytest.raises(Exception, match="secrets"):
        ask(lambda cursor: cursor.rows("SELECT * FROM secrets"))


def test_what_runs_is_interrupted_and_nothing_else() -> None:
    """A callback is called only if the token is cancelled during its block."""
    token, calls = CancellationToken(), []
    with token.interruptible(lambda: calls.append("outer")):
        with token.interruptible(lambda: calls.append("inner")):
            pass
        token.cancel()
    token.cancel()
    assert calls == ["outer"]
    assert token.cancelled


def test_nothing_begins_after_it() -> None:
    """After cancellation, neither a check passes nor a block begins."""
    token = CancellationToken()
    token.check()
    token.cancel()
    with pytest.raises(QueryTimeout):
        token.check()
    with pytest.raises(QueryTimeout), token.interruptible(lambda: None):
        pytest.fail("it must not begin")


def test_a_token_expires_or_commits() -> None:
    """An expired token cannot be committed; a token being committed does not expire, and may be committed in parts."""
    expired, committed = CancellationToken(), CancellationToken()
    assert expired.expire()
    with pytest.raises(QueryTimeout):
        expired.begin_commit()
    committed.begin_commit()
    assert not committed.expire()
    committed.begin_commit()
    assert not committed.cancelled


GIB = 2**30


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return the files of a machine with 8 GiB and without control groups."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(f"MemFree: 1 kB\nMemTotal:       {8 * GIB // 1024} kB\n")
    return folder


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    """Return an empty tree of control groups."""
    folder = tmp_path / "cgroup"
    folder.mkdir()
    return folder


def _write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_this_machine_has_some() -> None:
    """This machine has memory and at least one processor, and the limits are not above those of the machine."""
    assert 2**27 < available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 1 <= available_processors() <= (os.cpu_count() or 1)


def test_without_control_groups_the_machine_counts(proc: Path, cgroups: Path) -> None:
    """Without limits, all memory and all processors of the process are available."""
    assert available_memory(proc, cgroups) == 8 * GIB
    assert available_processors(proc, cgroups) == len(os.sched_getaffinity(0))


def test_the_narrowest_group_of_version_2_holds(proc: Path, cgroups: Path) -> None:
    """A group without its own limit has those of the groups that contain it."""
    _write(proc / "self", cgroup="0::/pod/container")
    _write(cgroups / "pod", memory__max=str(2 * GIB), cpu__max="50000 100000")
    _write(cgroups / "pod" / "container", memory__max="max", cpu__max="max 100000")
    assert available_memory(proc, cgroups) == 2 * GIB
    assert available_processors(proc, cgroups) == 1


def test_a_container_finds_its_own_group_at_the_root(proc: Path, cgroups: Path) -> None:
    """The path of the host's group does not exist in a container, whose limits are at the root."""
    _write(proc / "self", cgroup="0::/../../system.slice/other")
    _write(cgroups, memory__max=str(GIB), cpu__max="max 100000")
    assert available_memory(proc, cgroups) == GIB


def test_limits_of_version_1(proc: Path, cgroups: Path) -> None:
    """Each controller has a separate tree; -1 and a number above all memory are no limits."""
    _write(proc / "self", cgroup="5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n1:name=systemd:/docker/x")
    _write(cgroups / "memory" / "docker" / "x", memory__limit_in_bytes=str(3 * GIB))
    _write(cgroups / "memory", memory__limit_in_bytes="9223372036854771712")
    _write(cgroups / "cpu" / "docker" / "x", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    _write(cgroups / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert available_memory(proc, cgroups) == 3 * GIB
    assert available_processors(proc, cgroups) == 1
