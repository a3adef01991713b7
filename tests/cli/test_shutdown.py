"""Signals."""

from __future__ import annotations

import signal
import threading

import pytest

from chargeback.cli.shutdown import ShutdownHandler


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_once(number: signal.Signals) -> None:
    """The first signal calls the handler in a thread of its own, and the previous signal handlers are restored."""
    before = signal.getsignal(number)
    stopped: list[str] = []
    stopper = ShutdownHandler(lambda: stopped.append(threading.current_thread().name))
    stopper.listen()
    signal.raise_signal(number)
    assert stopper.requested.is_set()
    assert signal.getsignal(number) is before
    stopper.request()
    stopper.finish()
    assert stopped == ["stop"]


def test_the_end_without_a_signal() -> None:
    """The handler is called as well, and the signal handlers are restored."""
    before = signal.getsignal(signal.SIGTERM)
    stopped = threading.Event()
    stopper = ShutdownHandler(stopped.set)
    stopper.listen()
    stopper.finish()
    assert stopped.is_set()
    assert signal.getsignal(signal.SIGTERM) is before


def test_whoever_waits_for_the_end_may_finish_at_once() -> None:
    """A thread that waits for the shutdown may finish as soon as another thread requests it."""
    for _ in range(300):
        stopped = threading.Event()
        stopper = ShutdownHandler(stopped.set)
        asking = threading.Thread(target=stopper.request)
        asking.start()
        stopper.requested.wait()
        stopper.finish()
        assert stopped.is_set()
        asking.join()
