"""The steps of ``share`` on one day, and their effect on a row."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from chargeback.categories.handover import WHOLE, Receiver, Step, composed, day_steps
from chargeback.categories.parsing import parse_category
from chargeback.categories.weights import split_units

HELD = {"platform": 300, "a": 100, "b": 300, "refunded": -50, "empty": 0, "UNASSIGNED": 70}


def _steps(*share: dict[str, Any], **document: Any) -> list[tuple[str, dict[str, int]]]:
    """Return each step alone, with weights that sum to the whole."""
    category = parse_category("k", {"share": list(share), **document})
    steps = day_steps(category, HELD, {"bytes_in": {"a": 1, "b": 4, "nobody": 9}}, date(2026, 3, 1))
    alone = [(step.source, composed([step])[step.source]) for step in steps]
    return [(source, {each.value: each.weight for each in receivers}) for source, receivers in alone]


def test_proportional_follows_what_is_held() -> None:
    """Values with a refund count as zero; the default and the source get nothing."""
    assert _steps({"from": "platform", "to": "*", "by": "proportional"}) == [
        ("platform", {"a": WHOLE // 4, "b": 3 * WHOLE // 4})
    ]


def test_even_counts_every_value_with_cost() -> None:
    """A value without cost gets nothing; the remainder of the division goes to the first value."""
    assert _steps({"from": "platform", "to": "*", "by": "even"}) == [
        ("platform", {"a": 333333333334, "b": 333333333333, "refunded": 333333333333})
    ]


def test_fixed_and_usage_have_their_own_weights() -> None:
    """Usage of values that are not targets does not count."""
    fixed = {"from": "a", "by": {"fixed": {"b": "33.3", "x": "66.7"}}}
    usage = {"from": "platform", "to": "*", "by": "usage(bytes_in)"}
    assert _steps(usage, fixed) == [
        ("platform", {"a": WHOLE // 5, "b": 4 * WHOLE // 5}),
        ("a", {"b": 333 * 10**9, "x": 667 * 10**9}),
    ]


def test_a_step_sees_what_earlier_steps_handed_on() -> None:
    """The source of an earlier step is no target of a later one; the cost that it reallocated is included."""
    first = {"from": "platform", "to": ["a"], "by": "even"}
    second = {"from": "b", "to": "*", "by": "proportional"}
    third = {"from": "a", "to": "*", "by": "proportional"}
    assert _steps(first, second) == [("platform", {"a": WHOLE}), ("b", {"a": WHOLE})]
    assert _steps(first, third) == [("platform", {"a": WHOLE}), ("a", {"b": WHOLE})]


def test_without_weights_nothing_is_handed_on() -> None:
    """Without weights, the cost remains with its source."""
    assert _steps({"from": "platform", "to": ["empty"], "by": "proportional"}) == []
    assert _steps({"from": "platform", "to": "*", "by": "usage(bytes_out)"}) == []
    assert _steps({"from": "absent", "to": "*", "by": "even"}) == []


def test_a_value_gets_nothing_on_days_on_which_it_is_not_valid() -> None:
    """A value gets nothing on days on which it is invalid; others get its part."""
    values = {"platform": None, "a": None, "b": {"valid_from": "2026-03-02"}}
    assert _steps({"from": "platform", "by": {"fixed": {"a": "40", "b": "60"}}}, values=values) == [
        ("platform", {"a": WHOLE})
    ]


def _with_fees(**document: Any) -> dict[str, int]:
    """Return the share of each value of 300 units on the first of March."""
    category = parse_category("k", document)
    (step,) = day_steps(category, HELD, {}, date(2026, 3, 1))
    return dict(split_units(300, step.parts))


def _a_day(units: int) -> str:
    """Return the monthly amount whose daily part is ``units``, in a month of 31 days."""
    return f"{Decimal(31 * units).scaleb(-12):f}"


def test_fees_come_first() -> None:
    """Fees are paid first, also by values without cost; the rest stays with its source or is shared, also among values
    that paid a fee."""
    fees = {"monthly": {"a": _a_day(100), "new": _a_day(20)}}
    assert _with_fees(share=[{"from": "platform", **fees}]) == {"a": 100, "new": 20, "platform": 180}
    shared = [{"from": "platform", "to": "*", "by": "proportional", **fees}]
    assert _with_fees(share=shared) == {"a": 145, "b": 135, "new": 20}
    fixed = [{"from": "platform", "by": {"fixed": {"a": "50", "b": "50"}}, **fees}]
    assert _with_fees(share=fixed) == {"a": 190, "b": 90, "new": 20}


def test_fees_are_never_more_than_there_is() -> None:
    """Fees are limited to the available cost; a source with a refund pays none."""
    assert _with_fees(share=[{"from": "platform", "monthly": {"a": _a_day(600), "b": _a_day(300)}}]) == {
        "a": 200,
        "b": 100,
    }
    for source in ("refunded", "empty", "absent"):
        assert _steps({"from": source, "monthly": {"a": "31"}}) == []


def test_fees_have_dates() -> None:
    """A fee applies on its days, and only to values that are valid on the day."""
    changing = [{"value": _a_day(100), "valid_to": "2026-03-01"}, {"value": _a_day(50), "valid_from": "2026-03-01"}]
    values = {"platform": None, "a": None, "b": {"valid_from": "2026-03-02"}}
    share = [{"from": "platform", "monthly": {"a": changing, "b": "31"}}]
    assert _with_fees(values=values, share=share) == {"a": 50, "platform": 250}


@pytest.mark.parametrize("month", [date(2026, 2, 1), date(2028, 2, 1), date(2026, 4, 1), date(2026, 12, 1)])
def test_the_days_of_a_month_have_its_fee(month: date) -> None:
    """The daily parts of a fee sum to it exactly, in a month of any length."""
    category = parse_category("k", {"share": [{"from": "platform", "monthly": {"a": "500.01"}}]})
    held = {"platform": 10**18}
    days = [month.replace(day=number + 1) for number in range(monthrange(month.year, month.month)[1])]
    steps = [step for day in days for step in day_steps(category, held, {}, day)]
    assert sum(dict(step.parts)["a"] for step in steps) == 500_010_000_000_000
    assert all(sum(dict(step.parts).values()) == 10**18 for step in steps)


def test_what_remains_with_a_source_did_not_leave_it() -> None:
    """The part that a value keeps in its own step is not counted as passed on."""
    found = composed([Step("platform", (("a", 1),)), Step("a", (("a", 3), ("b", 1)))])
    assert found == {
        "platform": (Receiver("a", 3 * WHOLE // 4, WHOLE // 4), Receiver("b", WHOLE // 4)),
        "a": (Receiver("a", 3 * WHOLE // 4), Receiver("b", WHOLE // 4)),
    }


def test_steps_are_composed_before_they_are_rounded() -> None:
    """A third of a third is a ninth, rounded once; cost that passes through a value counts as received and passed
    on."""
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
    """A step reallocates the cost that its source has at that point; cost that arrives later stays."""
    found = composed([Step("a", (("b", 1),)), Step("platform", (("a", 1), ("b", 3)))])
    assert found["platform"] == (Receiver("a", WHOLE // 4), Receiver("b", 3 * WHOLE // 4))


def test_many_steps_keep_numbers_small() -> None:
    """Sixty proportional steps are fast, because intermediate amounts are whole numbers."""
    names = [f"v{number:02}" for number in range(60)]
    share = [{"from": name, "to": "*", "by": "proportional"} for name in names[:-1]]
    held = {name: 10**20 + 7 * number**5 for number, name in enumerate(names)}
    found = composed(day_steps(parse_category("k", {"share": share}), held, {}, date(2026, 3, 1)))
    assert {source: sum(each.weight for each in to) for source, to in found.items()} == dict.fromkeys(names[:-1], WHOLE)
