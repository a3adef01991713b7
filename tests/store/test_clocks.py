"""The difference of two clocks, from a single response."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from chargeback.store.clocks import USUAL, ClockReading
from chargeback.store.facts.places import Place
from tests.support.clock import NOW
from tests.support.databases import control_database
from tests.support.objects import PLACES, new_place

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("told", "rounding", "ahead", "difference"),
    [
        (5.0, 0, 4.0, 3.0),
        (-5.0, 0, -6.0, 5.0),
        (1.0, 0, 0.0, 0.0),
        (2.5, 0, 1.5, 0.5),
        (-1.0, 1, -1.5, 0.0),
        (-3.0, 1, -3.5, 2.0),
        (3.0, 1, 2.5, 1.0),
    ],
)
def test_a_reading(told: float, rounding: float, ahead: float, difference: float) -> None:
    """The reading allows for half of the two seconds of the response and half of the rounding; a smaller difference is
    zero."""
    reading = ClockReading(NOW, NOW + told * SECOND, NOW + 2 * SECOND, rounding * SECOND)
    assert reading.ahead == ahead * SECOND
    assert reading.difference == difference * SECOND


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_clock_of_the_database(kind: str, tmp_path: Path) -> None:
    """A server on this machine has its clock; the embedded database has no clock."""
    with control_database(kind, tmp_path) as database:
        reading = database.clock()
    assert (reading is None) == (kind == "sqlite")
    assert reading is None or reading.difference <= USUAL


@pytest.mark.parametrize("kind", PLACES)
def test_the_clock_of_the_facts(kind: str, tmp_path: Path) -> None:
    """Object storage on this machine has its clock, and nothing is left in it; a folder has no clock."""
    place: Place = new_place(kind, tmp_path)
    reading = place.clock()
    assert (reading is None) == (kind == "folder")
    assert reading is None or (reading.difference <= USUAL and place.is_empty())
