"""Places for runs are limited, whoever takes them."""

from __future__ import annotations

import threading

from chargeback.pipeline.engine import RunSlots
from tests.support.processes import eventually


def test_as_many_as_there_are() -> None:
    """A place can be had once until it is given back; whoever does not want to wait is told."""
    places = RunSlots(2)
    assert [places.try_take() for _ in range(3)] == [True, True, False]
    places.give_back()
    assert places.take()
    assert places.waiting == 0


def test_whoever_waits_is_counted_and_gets_the_next_one() -> None:
    """A waiting thread goes on when a place is given back."""
    places = RunSlots(1)
    assert places.take()
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(places.take()))
    thread.start()
    eventually(lambda: places.waiting == 1)
    assert not got
    places.give_back()
    thread.join(30)
    assert (got, places.waiting) == ([True], 0)


def test_closed_places_let_everybody_go() -> None:
    """Nobody waits for a place that will never be given, and none is given any more."""
    places = RunSlots(0)
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(places.take()))
    thread.start()
    eventually(lambda: places.waiting == 1)
    places.close()
    thread.join(30)
    assert got == [False]
    assert not RunSlots(0).try_take()
