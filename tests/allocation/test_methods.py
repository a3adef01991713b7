"""Allocation methods are parsed from text."""

from __future__ import annotations

import pytest

from chargeback.allocation.methods import OUTCOMES, AllocationMethod, MethodKind


@pytest.mark.parametrize(
    "text", ["usage()", "usage(Bytes)", "even", "even(a + b)", "owner(x)", "owner()", "", "even(active"]
)
def test_invalid_methods(text: str) -> None:
    """Unknown methods and arguments that a method does not take are refused."""
    with pytest.raises(ValueError, match=r"method|takes"):
        AllocationMethod.parse(text)


def test_methods_are_read_and_written_alike() -> None:
    """A method that is written as text parses to the same method."""
    for text in ("usage(bytes_in + bytes_out)", "even(period)", "proportional", "owner", "unallocated"):
        assert str(AllocationMethod.parse(text)) == text
    assert AllocationMethod.parse("proportional").kind is MethodKind.PROPORTIONAL


def test_every_method_has_an_outcome() -> None:
    """Every kind of method has a cost type, a method and a detail for its rows."""
    assert OUTCOMES.keys() == set(MethodKind)
