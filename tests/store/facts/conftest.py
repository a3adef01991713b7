"""Facts behave the same on a disk and in object storage: tests of both have a ``place``."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import FactTables
from tests.support.facts import facts_in
from tests.support.objects import PLACES, new_place

#: Marks a test of a disk only.
on_disk = pytest.mark.parametrize("place", ["folder"], indirect=True)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return empty storage for facts, of each kind."""
    return new_place(request.param, tmp_path)


@pytest.fixture
def tables(place: Place, tmp_path: Path) -> FactTables:
    """Return empty tables."""
    return facts_in(place, tmp_path)
