"""Signals."""

from __future__ import annotations

import signal
import threading

import pytest

from chargeback.cli.stopping import Stopper


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_once(number: signal.Signals) -> None:
    """The first signal stops, in a thread of its own; afterwards signals do what they did before."""
    before = signal.getsignal(number)
    stopped: list[str] = []
    stopper = Stopper(lambda: stopped.append(threading.current_thread().name))
    stopper.listen()
    signal.raise_signal(number)
    assert stopper.requested.is_set()
    assert signal.getsignal(number) is before
    stopper.request()
    stopper.finish()
    assert stopped == ["stop"]


def test_the_end_without_a_signal() -> None:
    """Work that ends by itself is stopped all the same, and the signals are given back."""
    before = signal.getsignal(signal.SIGTERM)
    stopped = threading.Event()
    stopper = Stopper(stopped.set)
    stopper.listen()
    stopper.finish()
    assert stopped.is_set()
    assert signal.getsignal(signal.SIGTERM) is before
