"""The demo's cost categories as documents."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category, warnings_of
from chargeback.demo.categories import COST_CENTER, CategoryFacts, UndecidedCost, cost_center_of, open_identities

ANSWERS = {"sa-2": "payments", "sa-1": "payments"}
FACTS = CategoryFacts(date(2026, 1, 16), "lkc-shared", ("env-a", "env-p"), "env-d", ANSWERS)


def parsed(document: Any) -> CostCategory:
    """Return the parsed category, which must be valid."""
    return parse_category(COST_CENTER, document)


def test_nine_cost_centers_belong_to_three_units() -> None:
    """Every cost centre has a name, a unit, an account and a contact; one of them ends when it is dissolved."""
    category = parsed(FACTS.documents()[COST_CENTER])
    units = {parent.value for value in category.values for parent in value.parent}
    centers = [value for value in category.values if value.parent]
    assert (len(units), len(centers)) == (3, 9)
    assert units == {value.key for value in category.values} - {value.key for value in centers}
    assert all(value.name and value.gl and value.contacts for value in category.values)
    assert [value.key for value in centers if value.during.end == FACTS.reorganisation] == ["growth"]
    assert warnings_of(category) == []


@pytest.mark.parametrize("key", ["cost_center", "stage"])
def test_nothing_is_left_to_fill_in(key: str) -> None:
    """No placeholder remains, and the documents are valid."""
    document = FACTS.documents()[key]
    assert "<" not in str(document).replace("(?P<team>", "")
    parse_category(key, document)


def test_answers_are_rules_by_identity() -> None:
    """The confirmed identities of each cost centre form one rule; without answers or disputes there is no such rule."""
    facts = FACTS.with_answers(7, [UndecidedCost("sa-3", Decimal(9), is_tagged=False)], Decimal(10), {"sa-3": "risk-1"})
    (rule,) = [rule for rule in facts.documents()[COST_CENTER]["rules"] if rule["id"].startswith("confirmed")]
    assert (rule["id"], rule["match"], rule["assign"]) == ("confirmed-risk", {"identity": ["sa-3"]}, "risk")
    (rule,) = [rule for rule in FACTS.documents()[COST_CENTER]["rules"] if rule["id"].startswith("confirmed")]
    assert rule["match"] == {"identity": ["sa-1", "sa-2"]}
    assert "disputed" not in str(FACTS.documents())


def test_about_eight_percent_stay_open() -> None:
    """The largest identities that fit stay undecided, tagged ones only if the others do not suffice; tagged ones are
    disputed."""
    undecided = [
        UndecidedCost("sa-big", Decimal(20), is_tagged=False),
        UndecidedCost("sa-fits", Decimal(5), is_tagged=False),
        UndecidedCost("sa-tagged", Decimal("2.9"), is_tagged=True),
        UndecidedCost("sa-late", Decimal("0.1"), is_tagged=True),
    ]
    assert open_identities(undecided, Decimal(100)) == {"sa-fits", "sa-tagged"}
    facts = FACTS.with_answers(7, undecided, Decimal(100), {})
    assert facts.disputed == ("sa-tagged",)
    assert facts.confirmed.keys() == {"sa-big"}
    assert '"FIN-207' in str(facts.documents()).replace("'", '"')


def test_the_rules_for_tags_can_be_left_out() -> None:
    """Without tags, the category has rules, but none that matches tags."""
    rules = FACTS.documents(with_tags=False)[COST_CENTER]["rules"]
    assert rules
    assert not [rule for rule in rules if "tag" in rule["match"]]


def test_an_owner_names_the_cost_center_of_the_team() -> None:
    """The team in the name determines the cost centre; without one, the result is still deterministic."""
    assert cost_center_of(7, "sa-1", "billing-etl-015") == "payments"
    assert cost_center_of(7, "u-1", "Ada Moreau") == cost_center_of(7, "u-1", "Ada Moreau")
