"""Chargeback rows, dimensions, dates and issues."""

from __future__ import annotations

from datetime import date
from functools import partial

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.chargebacks import allocation_issues, chargeback_dates, chargeback_rows, dimension
from chargeback.store.queries.filters import Filters
from chargeback.store.queries.paging import Page
from chargeback.store.queries.tags import TagBook
from tests.store.queries.conftest import Ask
from tests.support.facts import ECOSYSTEM, TENANT_ID, Share, write_shares

DAY = date(2026, 1, 1)
WINDOW = instants(DAY, date(2026, 1, 31))
FIRST = Page(0, 100)


def test_a_row_has_its_tags_and_metadata(ask: Ask, facts: FactTables) -> None:
    """Amounts are exact texts; the identity's tag wins; what is unknown is left out of the metadata."""
    write_shares(facts, [Share(DAY, "sa-1", "-0.000000000001", environment=None, usage=None)])
    book = TagBook({"sa-1": {"team": "payer"}}, {"lkc-1": {"team": "operator", "env": "prod"}})
    (row,), total = ask(lambda cursor: chargeback_rows(cursor, facts, WINDOW, Filters(), FIRST, book))
    assert total == 1
    assert row["amount"] == "-0.000000000001"
    assert row["timestamp"] == "2026-01-01T00:00:00Z"
    assert row["tags"] == {"env": "prod", "team": "payer"}
    assert row["metadata"] == {
        "chain_position": 0,
        "line_id": "line-1",
        "policy": "abc123",
        "portion": 0,
        "portion_share": "0.70",
    }


def test_a_dimension_is_found_by_its_id(ask: Ask, facts: FactTables) -> None:
    """Every row's dimension can be looked up; an unknown one is none."""
    write_shares(facts, [Share(DAY, "sa-1", "1"), Share(DAY, "sa-2", "1")])
    rows, _ = ask(lambda cursor: chargeback_rows(cursor, facts, WINDOW, Filters(), FIRST, TagBook()))
    for row in rows:
        found = ask(partial(dimension, facts=facts, dimension_id=row["dimension_id"]))
        assert found == {name: row[name] for name in found}
        assert found["ecosystem"] == ECOSYSTEM
        assert found["tenant_id"] == TENANT_ID
    assert ask(lambda cursor: dimension(cursor, facts, 1)) is None


def test_nothing_was_ever_written(ask: Ask, facts: FactTables) -> None:
    """Empty tables have no dates, no rows, no dimensions, no issues."""
    assert chargeback_dates(facts) == []
    assert ask(lambda cursor: chargeback_rows(cursor, facts, WINDOW, Filters(), FIRST, TagBook())) == ([], 0)
    assert ask(lambda cursor: allocation_issues(cursor, facts, WINDOW, Filters(), FIRST, TagBook())) == ([], 0)
    assert ask(lambda cursor: dimension(cursor, facts, 1)) is None


def test_dates_are_the_days_with_rows(facts: FactTables) -> None:
    """Ascending, each once."""
    write_shares(facts, [Share(date(2026, 1, day), "sa-1", "1") for day in (3, 1, 1, 2)])
    assert chargeback_dates(facts) == [date(2026, 1, day) for day in (1, 2, 3)]


def test_issues_are_summed_over_time(ask: Ask, facts: FactTables) -> None:
    """Only what was not allocated as intended is an issue; usage and shared cost add up to the total."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1.5", detail="NO_METRICS_LOCATED", cost_type="shared"),
            Share(DAY, "sa-1", "2", detail="NO_METRICS_LOCATED"),
            Share(date(2026, 1, 2), "sa-1", "0.25", detail="NO_METRICS_LOCATED", cost_type="shared"),
            Share(DAY, "UNALLOCATED", "9", detail="NO_IDENTITIES_LOCATED", cost_type="shared"),
            Share(DAY, "sa-1", "100"),
        ],
    )
    items, total = ask(lambda cursor: allocation_issues(cursor, facts, WINDOW, Filters(), FIRST, TagBook()))
    assert total == 2
    assert [(i["identity_id"], i["row_count"], i["usage_cost"], i["shared_cost"], i["total_cost"]) for i in items] == [
        ("UNALLOCATED", 1, "0.00", "9.00", "9.00"),
        ("sa-1", 3, "2.00", "1.75", "3.75"),
    ]
    past = ask(lambda cursor: allocation_issues(cursor, facts, WINDOW, Filters(), Page(100, 100), TagBook()))
    assert past == ([], 2)
