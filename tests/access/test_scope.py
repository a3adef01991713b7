"""Conditions on rows."""

from __future__ import annotations

import pytest

from chargeback.access.scope import COLUMNS, RowScope


def test_the_same_conditions_are_the_same_scope() -> None:
    """Scopes are equal whatever the order of names and values, because they are keys of caches."""
    one = RowScope.of({"tag:team": ["a", "b"], "identity_id": ["x"]})
    other = RowScope.of({"identity_id": {"x"}, "tag:team": ("b", "a", "b")})
    assert one == other
    assert hash(one) == hash(other)
    assert one.as_json() == {"identity_id": ["x"], "tag:team": ["a", "b"]}


def test_a_scope_comes_back_from_json() -> None:
    """A scope survives a round trip through JSON."""
    scope = RowScope.of({"category:cost_center": ["a"], "cluster_id": []})
    assert RowScope.of(scope.as_json()) == scope


@pytest.mark.parametrize("name", [*COLUMNS, "tag:team", "category:cost_center", "tag:a.b-c_d"])
def test_names_of_conditions(name: str) -> None:
    """Conditions name columns, tags and cost categories."""
    assert RowScope.of({name: ["x"]}).conditions == ((name, frozenset({"x"})),)


@pytest.mark.parametrize("name", ["amount", "tag:", "category:", "tag:a b", "Tag:team", "tag:team\n", ""])
def test_what_rows_cannot_be_chosen_by(name: str) -> None:
    """The error lists the valid names."""
    with pytest.raises(ValueError, match="choose from identity_id, "):
        RowScope.of({name: ["x"]})


def test_no_condition_is_no_scope() -> None:
    """A scope without conditions is refused, so that it does not allow every row."""
    with pytest.raises(ValueError, match="at least one condition"):
        RowScope.of({})
