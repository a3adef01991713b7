"""Sizes of the demo."""

from __future__ import annotations

from dataclasses import astuple

from chargeback.demo.sizes import CLUSTER_PLAN, DAILY_BYTES, SIZES


def test_each_scale_is_larger_than_the_one_before() -> None:
    """Every count of a size is at least that of the next smaller size."""
    small, usual, large = (astuple(SIZES[size]) for size in ("small", "usual", "large"))
    assert all(one <= two <= three for one, two, three in zip(small, usual, large, strict=True))


def test_even_the_small_scale_has_every_kind() -> None:
    """The first clusters of the plan include every kind."""
    assert {kind for _, kind in CLUSTER_PLAN[: SIZES["small"].clusters]} == set(DAILY_BYTES)
