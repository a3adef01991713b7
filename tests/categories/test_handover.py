"""The steps of ``share`` on one day, and what they do to a row."""

from __future__ import annotations

from datetime import date
from typing import Any

from chargeback.categories.handover import WHOLE, Receiver, Step, composed, day_steps
from chargeback.categories.parsing import parse_category

HELD = {"platform": 300, "a": 100, "b": 300, "refunded": -50, "empty": 0, "UNASSIGNED": 70}


def _steps(*share: dict[str, Any], **document: Any) -> list[tuple[str, dict[str, int]]]:
    """Each step alone, in parts of the whole."""
    category = parse_category("k", {"share": list(share), **document})
    steps = day_steps(category, HELD, {"bytes_in": {"a": 1, "b": 4, "nobody": 9}}, date(2026, 3, 1))
    alone = [(step.source, composed([step])[step.source]) for step in steps]
    return [(source, {each.value: each.weight for each in receivers}) for source, receivers in alone]


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


def test_steps_are_composed_before_they_are_rounded() -> None:
    """A third of a third is a ninth, rounded once; what passes through a value in between comes and goes."""
    thirds = tuple((value, 1) for value in ("a", "b", "c"))
    found = composed([Step("platform", thirds), Step("c", (("a", 1), ("b", 1), ("d", 1)))])
    assert found == {
        "platform": (
            Receiver("a", 444444444445),
            Receiver("b", 444444444444),
            Receiver("c", 0, 333333333333),
            Receiver("d", 111111111111),
        ),
        "c": (Receiver("a", 333333333334), Receiver("b", 333333333333), Receiver("d", 333333333333)),
    }


def test_a_value_keeps_what_it_gets_after_its_own_step() -> None:
    """It has handed on what it had before; what comes later remains."""
    found = composed([Step("a", (("b", 1),)), Step("platform", (("a", 1), ("b", 3)))])
    assert found["platform"] == (Receiver("a", WHOLE // 4), Receiver("b", 3 * WHOLE // 4))


def test_many_steps_keep_numbers_small() -> None:
    """Sixty steps, each in proportion to what the steps before left, take no time: what is held is a whole number."""
    names = [f"v{number:02}" for number in range(60)]
    share = [{"from": name, "to": "*", "by": "proportional"} for name in names[:-1]]
    held = {name: 10**20 + 7 * number**5 for number, name in enumerate(names)}
    found = composed(day_steps(parse_category("k", {"share": share}), held, {}))
    assert {source: sum(each.weight for each in to) for source, to in found.items()} == dict.fromkeys(names[:-1], WHOLE)
