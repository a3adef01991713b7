"""The differences that `make readers` reports."""

from __future__ import annotations

from decimal import Decimal

import pytest
from readers.__main__ import differences

from tests.support.readable import Sums

OURS: Sums = {"billing": {"2026-01-01": (2, Decimal("0.30")), "2026-01-02": (1, Decimal("1.000000000001"))}}


@pytest.mark.parametrize(
    ("theirs", "count"),
    [
        (OURS, 0),
        ({"billing": OURS["billing"] | {"2026-01-02": (1, Decimal("1.000000000002"))}}, 1),
        ({"billing": OURS["billing"] | {"2026-01-01": (3, Decimal("0.30"))}}, 1),
        ({"billing": OURS["billing"] | {"2026-01-03": (1, Decimal(0))}}, 1),
        ({}, 2),
    ],
    ids=["equal", "a digit", "a row", "a day too many", "nothing"],
)
def test_each_day_that_differs_counts(theirs: Sums, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A day counts as different if its rows or the last digit differ, or if it is missing or additional."""
    assert differences("engine", OURS, theirs) == count
    assert ("DIFFERENT" in capsys.readouterr().out) == bool(count)
