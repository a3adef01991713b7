"""A selection is SQL with bound values."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import product

import pytest

from chargeback.model.days import instants
from chargeback.model.inventory import UNTAGGED
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.selection import ColumnFilter, Selection, TagFilter, equal
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, write_shares
from tests.support.readers import Read

WINDOW = instants(date(2026, 1, 1), date(2026, 1, 31))


def test_values_are_bound_never_written() -> None:
    """A client's values are never part of the SQL."""
    selection = Selection(WINDOW, equal(identity_id="'; DROP"), (TagFilter("team", frozenset(["'x"])),))
    condition = selection.condition(CHARGEBACKS, TagIndex.undated({"'y": {"team": "'x"}}, {}))
    assert "'" not in condition.sql.replace("''", "")
    assert condition.parameters["column0"] == "'; DROP"


def test_no_filters_is_no_condition() -> None:
    """A request without filters has no condition."""
    condition = Selection(WINDOW).condition(CHARGEBACKS, TagIndex())
    assert condition.clauses == ()
    assert condition.sql == "TRUE"


def test_only_declared_columns_filter() -> None:
    """A name that the dataset does not declare never becomes SQL."""
    with pytest.raises(ValueError, match="billing cannot be filtered by identity_id"):
        Selection(WINDOW, equal(identity_id="x")).condition(BILLING_LINES, TagIndex())


def test_only_values_that_the_sql_names_are_bound() -> None:
    """Every bound value is used, because the database refuses others."""
    tags = TagIndex.undated({"sa": {"team": "a"}}, {"lkc": {"team": "b"}})
    for values in (None, {"a"}, {"b"}, {"c"}, {"UNTAGGED"}, {"a", "UNTAGGED"}):
        for dataset in (CHARGEBACKS, BILLING_LINES, TOPIC_ATTRIBUTIONS):
            tag = TagFilter("team", None if values is None else frozenset(values))
            condition = Selection(WINDOW, tags=(tag,)).condition(dataset, tags)
            assert all(f"${name}:" in condition.sql for name in condition.parameters)


def test_without_such_a_tag_everything_is_untagged() -> None:
    """If no entity has a tag, all rows are untagged, which needs no condition."""
    tag = TagFilter("team", frozenset(["x", "UNTAGGED"]))
    assert Selection(WINDOW, tags=(tag,)).condition(CHARGEBACKS, TagIndex()).clauses == ()
    assert Selection(WINDOW, tags=(TagFilter("team"),)).condition(CHARGEBACKS, TagIndex()).sql == "(FALSE)"


PEOPLE = ("sa-1", "sa-2", "UNALLOCATED")
TAGS = TagIndex.undated(
    {"sa-1": {"team": "a"}, "sa-2": {"owner": "x"}}, {"lkc-1": {"team": "b"}, "lkc-2": {"team": "c,d"}}
)


@pytest.fixture
def shares(facts: FactTables) -> list[Share]:
    """Write every identity on every resource, in every environment and in none."""
    made = [
        Share(date(2026, 1, 5), who, "1", resource=what, environment=where, portion=number)
        for number, (who, what, where) in enumerate(product(PEOPLE, ("lkc-1", "lkc-2", "lkc-3"), ("env-1", "e2", None)))
    ]
    write_shares(facts, made)
    return made


def _tag(share: Share) -> str:
    return TAGS.resolve(share.identity, share.resource, share.day).get("team", UNTAGGED)


@pytest.mark.parametrize("excludes", [False, True])
def test_filters_let_through_what_they_say(read: Read, shares: list[Share], excludes: bool) -> None:
    """Values of a filter are alternatives, and an empty one is a missing value; an excluding filter keeps all other
    rows, including those without a value."""
    for wanted in ({"env-1"}, {"env-1", "e2"}, {""}, {"", "e2"}, {"nowhere"}):
        column = ColumnFilter("environment_id", frozenset(wanted), excludes)
        found = _found(read, Selection(WINDOW, (column,)))
        assert found == sum(((share.environment or "") in wanted) is not excludes for share in shares)
    for values in ({"a"}, {"a", "b"}, {UNTAGGED}, {UNTAGGED, "c,d"}, {"z"}, None):
        tag = TagFilter("team", None if values is None else frozenset(values), excludes)
        among = values or {"a", "b", "c,d"}
        assert _found(read, Selection(WINDOW, tags=(tag,))) == sum(
            (_tag(share) in among) is not excludes for share in shares
        )
    nobody = TagFilter("no such key", frozenset([UNTAGGED]), excludes)
    assert _found(read, Selection(WINDOW, tags=(nobody,))) == (0 if excludes else len(shares))


def test_the_least_amount_is_let_through(read: Read, facts: FactTables) -> None:
    """Rows below the minimum amount are left out; rows with exactly this amount are not."""
    amounts = ("-2", "1.999999999999", "2", "2.000000000001")
    write_shares(facts, [Share(date(2026, 1, 5), "sa-1", each, portion=n) for n, each in enumerate(amounts)])
    assert _found(read, Selection(WINDOW, min_amount=Decimal(2))) == 2
    assert _found(read, Selection(WINDOW, min_amount=Decimal(-2))) == 4


def test_filters_must_all_match(read: Read, shares: list[Share]) -> None:
    """All filters must match, including two of the same column."""
    columns = (
        *equal(resource_id="lkc-1", environment_id="env-1"),
        ColumnFilter("identity_id", frozenset(["sa-1", "sa-2"])),
        ColumnFilter("identity_id", frozenset(["sa-2"]), excludes=True),
    )
    tags = (TagFilter("team", frozenset(["a"])), TagFilter("owner", frozenset(["x"]), excludes=True))
    assert _found(read, Selection(WINDOW, columns, tags)) == 1


def _found(read: Read, selection: Selection) -> int:
    _, total = read(lambda reader: reader.list_rows(CHARGEBACKS, selection, Page(0, 1000)), TAGS)
    return int(total)
