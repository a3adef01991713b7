"""Names that can be told apart."""

from __future__ import annotations

import pytest

from chargeback.api.authentication import Identity
from chargeback.api.problems import Unauthenticated


def test_names_are_stripped() -> None:
    """Spaces around names, and empty groups, are no part of them."""
    assert Identity.of(" ann ", [" a", "", "b "]) == Identity("ann", ("a", "b"))


@pytest.mark.parametrize("user", ["", "  ", "api", "command line", "token:ci", "x" * 256, "a\nb", "a\0", "a\u202eb"])
def test_names_that_nobody_can_have(user: str) -> None:
    """Empty ones, those that the service writes to the audit log itself, and what cannot be shown."""
    with pytest.raises(Unauthenticated):
        Identity.of(user)


def test_groups_have_limits() -> None:
    """A group that cannot be shown, and more groups than anybody can read, are refused."""
    with pytest.raises(Unauthenticated, match="cannot be shown"):
        Identity.of("ann", ["a\tb"])
    assert len(Identity.of("ann", map(str, range(1000))).groups) == 1000
    with pytest.raises(Unauthenticated, match="1,001 groups"):
        Identity.of("ann", map(str, range(1001)))
