"""A rate limit that processes share."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from chargeback.errors import SourceUnavailable, Stopped
from chargeback.sources.rate_limit import RateLimiter

FAR = float("inf")


def file_of(folder: Path) -> Path:
    """Return the only file in the folder."""
    (file,) = folder.iterdir()
    return file


def test_a_burst_then_a_pace(tmp_path: Path) -> None:
    """A burst is allowed at once, then one request per interval."""
    limiter = RateLimiter(tmp_path, "org", rate=1, burst=3)
    delays = [limiter.reserve() for _ in range(4)]
    assert delays[:3] == [0, 0, 0]
    assert 0 < delays[3] <= 1


def test_waiting_for_a_turn_keeps_the_rate(tmp_path: Path) -> None:
    """Ten turns at fifty per second without a burst take at least a little less than 0.2 s."""
    limiter = RateLimiter(tmp_path, "org", rate=50, burst=1)
    started = time.monotonic()
    for _ in range(10):
        limiter.acquire(threading.Event(), FAR)
    assert time.monotonic() - started >= 0.17


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_link_is_not_followed(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """A link in place of the file is not followed; the limit then applies to this process only."""
    state, victim = tmp_path / "state", tmp_path / "victim"
    state.mkdir()
    RateLimiter(state, "org", rate=0.1, burst=1).reserve()
    name = file_of(state)
    name.unlink()
    victim.write_text("x" * 10_000)
    name.symlink_to(victim) if kind == "symbolic" else name.hardlink_to(victim)
    limiter = RateLimiter(state, "org", rate=0.1, burst=1)
    assert limiter.reserve() == 0
    assert limiter.reserve() > 0
    assert victim.read_text() == "x" * 10_000
    assert "applies to this process only" in caplog.text


def test_everybody_with_the_same_key_shares_it(tmp_path: Path) -> None:
    """Limiters with the same key share a limit; those with different keys do not."""
    one, same, other = (RateLimiter(tmp_path, key, rate=0.1, burst=1) for key in ("a", "a", "b"))
    assert one.reserve() == 0
    assert same.reserve() > 0
    assert other.reserve() == 0


def _take(folder: str, turns: int) -> None:
    limiter = RateLimiter(folder, "org", rate=40, burst=1)
    for _ in range(turns):
        limiter.acquire(threading.Event(), FAR)


@pytest.mark.extensive
def test_processes_share_it(tmp_path: Path) -> None:
    """Two processes together are as slow as one."""
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_take, args=(str(tmp_path), 20)) for _ in range(2)]
    # The clock begins with the first turn of any process, not with the start of the interpreters.
    RateLimiter(tmp_path, "org", rate=40, burst=1).reserve()
    started = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert time.monotonic() - started >= 39 / 40


def _reserve(folder: str, turns: int) -> None:
    limiter = RateLimiter(folder, "org", rate=0.001, burst=400)
    for _ in range(turns):
        limiter.reserve()


@pytest.mark.extensive
def test_no_turn_is_lost_between_processes(tmp_path: Path) -> None:
    """Processes that take turns as fast as possible use exactly the allowed number."""
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_reserve, args=(str(tmp_path), 100)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert RateLimiter(tmp_path, "org", rate=0.001, burst=400).reserve() > 0


def test_a_block_holds_for_all_and_no_burst_follows(tmp_path: Path) -> None:
    """After a block by the provider, one request goes first rather than a burst."""
    limiter, other = (RateLimiter(tmp_path, "org", rate=1, burst=5) for _ in range(2))
    limiter.block(0.2)
    assert 0 < other.reserve() <= 0.2
    other.acquire(threading.Event(), FAR)
    assert limiter.reserve() > 0


def test_stop_ends_the_wait(tmp_path: Path) -> None:
    """A stop ends the wait for a turn."""
    limiter = RateLimiter(tmp_path, "org", rate=1, burst=1)
    limiter.block(600)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        limiter.acquire(stop, FAR)
    assert time.monotonic() - started < 5


def test_a_turn_past_the_deadline_is_not_waited_for(tmp_path: Path) -> None:
    """If the turn is after the deadline, the caller gets an error at once."""
    limiter = RateLimiter(tmp_path, "org", rate=1, burst=1)
    limiter.block(600)
    with pytest.raises(SourceUnavailable):
        limiter.acquire(threading.Event(), time.monotonic() + 1)


@pytest.mark.parametrize("content", [b"", b"garbage", b"nan", b"-5", b"1e300", b"\xff" * 40, b"9999999999999"])
def test_a_broken_file_is_no_limit(tmp_path: Path, content: bytes) -> None:
    """A file that is invalid, or from before a restart of the host, is replaced."""
    limiter = RateLimiter(tmp_path, "org", rate=1, burst=1)
    limiter.reserve()
    file_of(tmp_path).write_bytes(content)
    assert limiter.reserve() == 0
    assert 0 < limiter.reserve() <= 1


def test_a_folder_that_cannot_be_written_limits_this_process_alone(tmp_path: Path) -> None:
    """Without write access to the folder, the limit applies within the process."""
    (tmp_path / "file").write_text("in the way")
    limiter = RateLimiter(tmp_path / "file", "org", rate=1, burst=1)
    assert limiter.reserve() == 0
    assert limiter.reserve() > 0


def test_the_key_is_not_in_the_name_of_the_file(tmp_path: Path) -> None:
    """The file name does not reveal the key."""
    RateLimiter(tmp_path, "key-id-abc", rate=1, burst=1).reserve()
    assert "key-id-abc" not in file_of(tmp_path).name
    assert file_of(tmp_path).stat().st_mode & 0o077 == 0
    assert os.sep not in file_of(tmp_path).name
