"""The rights that a right includes."""

from __future__ import annotations

import pytest

from chargeback.access.caller import ALL_RIGHTS, Right, rights_of


def test_admin_is_every_right() -> None:
    """The right ``admin`` includes every other right, also if it is listed together with others."""
    assert rights_of([Right.ADMIN]) == rights_of([Right.ADMIN, Right.TAG]) == ALL_RIGHTS


@pytest.mark.parametrize("right", sorted(ALL_RIGHTS - {Right.ADMIN}))
def test_who_may_do_something_may_read(right: Right) -> None:
    """Every right but ``admin`` includes ``read``, and nothing else."""
    assert rights_of([right]) == {right, Right.READ}


def test_nothing_is_nothing() -> None:
    """An empty list gives no right, not even to read."""
    assert rights_of([]) == frozenset()
