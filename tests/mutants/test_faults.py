"""The faults of `make mutants` match the code."""

from __future__ import annotations

from pathlib import Path

import chargeback
from tests.mutants.faults import FAULTS

SOURCE = Path(chargeback.__file__).parent
TESTS = Path(__file__).parents[1]


def test_every_fault_can_be_made() -> None:
    """The source that a fault replaces occurs once, and its tests exist."""
    wrong = [(each.path, each.before) for each in FAULTS if (SOURCE / each.path).read_text().count(each.before) != 1]
    assert wrong == []
    assert {test for each in FAULTS for test in each.tests.split() if not (TESTS / test).exists()} == set()
