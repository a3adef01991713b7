"""A selection is SQL with bound values."""

from __future__ import annotations

from datetime import date

import pytest

from chargeback.model.days import instants
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.selection import Selection, TagFilter
from chargeback.store.queries.tag_index import TagIndex

WINDOW = instants(date(2026, 1, 1), date(2026, 1, 31))


def test_values_are_bound_never_written() -> None:
    """What a client sends is no part of the SQL."""
    selection = Selection(WINDOW, {"identity_id": "'; DROP"}, (TagFilter("team", frozenset(["'x"])),))
    condition = selection.condition(CHARGEBACKS, TagIndex({"'y": {"team": "'x"}}, {}))
    assert "'" not in condition.sql.replace("''", "")
    assert condition.parameters["identity_id"] == "'; DROP"


def test_no_filters_is_no_condition() -> None:
    """Nothing asked, nothing narrowed."""
    condition = Selection(WINDOW).condition(CHARGEBACKS, TagIndex())
    assert condition.clauses == ()
    assert condition.sql == "TRUE"


def test_only_declared_columns_filter() -> None:
    """A name that the dataset does not declare never becomes SQL."""
    with pytest.raises(ValueError, match="billing cannot be filtered by identity_id"):
        Selection(WINDOW, {"identity_id": "x"}).condition(BILLING_LINES, TagIndex())


def test_only_values_that_the_sql_names_are_bound() -> None:
    """The database refuses a value that is not used."""
    tags = TagIndex({"sa": {"team": "a"}}, {"lkc": {"team": "b"}})
    for values in (None, {"a"}, {"b"}, {"c"}, {"UNTAGGED"}, {"a", "UNTAGGED"}):
        for dataset in (CHARGEBACKS, BILLING_LINES, TOPIC_ATTRIBUTIONS):
            tag = TagFilter("team", None if values is None else frozenset(values))
            condition = Selection(WINDOW, tags=(tag,)).condition(dataset, tags)
            assert all(f"${name}:" in condition.sql for name in condition.parameters)


def test_without_such_a_tag_everything_is_untagged() -> None:
    """Rows without a tag are all rows where nothing has it, and need no condition."""
    tag = TagFilter("team", frozenset(["x", "UNTAGGED"]))
    assert Selection(WINDOW, tags=(tag,)).condition(CHARGEBACKS, TagIndex()).clauses == ()
    assert Selection(WINDOW, tags=(TagFilter("team"),)).condition(CHARGEBACKS, TagIndex()).sql == "(FALSE)"
