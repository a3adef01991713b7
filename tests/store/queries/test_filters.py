"""Filters are SQL with bound values."""

from __future__ import annotations

from chargeback.store.queries.filters import Filters, TagFilter
from chargeback.store.queries.tags import TagBook


def test_values_are_bound_never_written() -> None:
    """What a client sends is no part of the SQL."""
    condition = Filters(identity_id="'; DROP", tags=(TagFilter("team", frozenset(["'x"])),)).condition(
        TagBook({"'y": {"team": "'x"}}, {})
    )
    assert "'" not in condition.sql.replace("''", "")
    assert condition.parameters["identity_id"] == "'; DROP"


def test_no_filters_is_no_condition() -> None:
    """Nothing asked, nothing narrowed."""
    assert Filters().condition().clauses == ()
    assert Filters().condition().sql == "TRUE"
