"""Conditions on rows."""

from __future__ import annotations

import pytest

from chargeback.access.scope import COLUMNS, RowScope


def test_the_same_conditions_are_the_same_scope() -> None:
    """The order in which names and values are written does not matter: a scope is a key of caches."""
    one = RowScope.of({"tag:team": ["a", "b"], "identity_id": ["x"]})
    other = RowScope.of({"identity_id": {"x"}, "tag:team": ("b", "a", "b")})
    assert one == other
    assert hash(one) == hash(other)
    assert one.as_json() == {"identity_id": ["x"], "tag:team": ["a", "b"]}


def test_a_scope_comes_back_from_json() -> None:
    """A scope is the same after it was written as JSON and read again."""
    scope = RowScope.of({"category:cost_center": ["a"], "cluster_id": []})
    assert RowScope.of(scope.as_json()) == scope


@pytest.mark.parametrize("name", [*COLUMNS, "tag:team", "category:cost_center", "tag:a.b-c_d"])
def test_names_of_conditions(name: str) -> None:
    """Columns, tags and cost categories."""
    assert RowScope.of({name: ["x"]}).conditions == ((name, frozenset({"x"})),)


@pytest.mark.parametrize("name", ["amount", "tag:", "category:", "tag:a b", "Tag:team", "tag:team\n", ""])
def test_what_rows_cannot_be_chosen_by(name: str) -> None:
    """The message names what they can be chosen by."""
    with pytest.raises(ValueError, match="choose from identity_id, "):
        RowScope.of({name: ["x"]})


def test_no_condition_is_no_scope() -> None:
    """A scope that is empty by mistake does not allow every row."""
    with pytest.raises(ValueError, match="at least one condition"):
        RowScope.of({})
