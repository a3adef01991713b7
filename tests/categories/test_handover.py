"""The steps of ``share`` on one day, and what they do to a row."""

from __future__ import annotations

from datetime import date
from typing import Any

from chargeback.categories.handover import WHOLE, Amounts, Step, day_steps, row_amounts
from chargeback.categories.parsing import parse_category
from chargeback.categories.weights import Outcome

HELD = {"platform": 300, "a": 100, "b": 300, "refunded": -50, "empty": 0, "UNASSIGNED": 70}


def _steps(*share: dict[str, Any], **document: Any) -> list[tuple[str, dict[str, int]]]:
    category = parse_category("k", {"share": list(share), **document})
    steps = day_steps(category, HELD, {"bytes_in": {"a": 1, "b": 4, "nobody": 9}}, date(2026, 3, 1))
    return [(step.source, dict(step.parts)) for step in steps]


def test_proportional_follows_what_is_held() -> None:
    """Values with a refund count as zero; the default and the source itself get nothing."""
    assert _steps({"from": "platform", "to": "*", "by": "proportional"}) == [
        ("platform", {"a": WHOLE // 4, "b": 3 * WHOLE // 4})
    ]


def test_even_counts_every_value_with_cost() -> None:
    """A value that holds nothing gets nothing; the rest of the division goes to the first."""
    assert _steps({"from": "platform", "to": "*", "by": "even"}) == [
        ("platform", {"a": 333333333334, "b": 333333333333, "refunded": 333333333333})
    ]


def test_fixed_and_usage_have_their_own_weights() -> None:
    """Usage of values that are no targets does not count."""
    fixed = {"from": "a", "by": {"fixed": {"b": "33.3", "x": "66.7"}}}
    usage = {"from": "platform", "to": "*", "by": "usage(bytes_in)"}
    assert _steps(usage, fixed) == [
        ("platform", {"a": WHOLE // 5, "b": 4 * WHOLE // 5}),
        ("a", {"b": 333 * 10**9, "x": 667 * 10**9}),
    ]


def test_a_step_sees_what_earlier_steps_handed_on() -> None:
    """The source of an earlier step is no target of a later one, and what it handed on counts."""
    first = {"from": "platform", "to": ["a"], "by": "even"}
    second = {"from": "b", "to": "*", "by": "proportional"}
    third = {"from": "a", "to": "*", "by": "proportional"}
    assert _steps(first, second) == [("platform", {"a": WHOLE}), ("b", {"a": WHOLE})]
    assert _steps(first, third) == [("platform", {"a": WHOLE}), ("a", {"b": WHOLE})]


def test_without_weights_nothing_is_handed_on() -> None:
    """The cost remains with its source."""
    assert _steps({"from": "platform", "to": ["empty"], "by": "proportional"}) == []
    assert _steps({"from": "platform", "to": "*", "by": "usage(bytes_out)"}) == []
    assert _steps({"from": "absent", "to": "*", "by": "even"}) == []


def test_a_value_gets_nothing_on_days_on_which_it_is_not_valid() -> None:
    """The other targets get its part."""
    values = {"platform": None, "a": None, "b": {"valid_from": "2026-03-02"}}
    assert _steps({"from": "platform", "by": {"fixed": {"a": "40", "b": "60"}}}, values=values) == [
        ("platform", {"a": WHOLE})
    ]


def test_a_row_is_handed_on_exactly() -> None:
    """The direct amounts, what came in and what went out sum to the row, for charges and refunds."""
    steps = [Step("platform", (("a", WHOLE // 2), ("b", WHOLE // 2))), Step("a", (("b", WHOLE),))]
    outcome = Outcome((("a", 1), ("platform", 2)), 0)
    assert row_amounts(-10, outcome, steps) == {
        "a": Amounts(direct=-3, shared_in=-4, shared_out=-7),
        "b": Amounts(shared_in=-10),
        "platform": Amounts(direct=-7, shared_out=-7),
    }
