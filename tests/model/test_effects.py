"""The effects of a change sum to the difference, for every bill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import pytest

from chargeback.model.effects import EFFECTS, BilledChange, BilledType, Cause, Quantity

_METHODS = ("usage_ratio", "even_split", "direct", "proportional", "terminal")

USED, HOURS, ONE = "usage_ratio", "hours", 10**12


class Charged(NamedTuple):
    """The part of a bill that is charged to one payer, by allocation method; the bill is None if there was none."""

    amounts: Mapping[str, int]
    billed: BilledType | None

    @property
    def amount(self) -> int:
        """Return the amount in units of 10⁻¹²."""
        return sum(self.amounts.values())


def causes(before: Charged, after: Charged, days: tuple[int, int]) -> list[Cause]:
    """Return the causes of a change; ``days`` is the number of days with costs of both ranges."""
    return BilledChange(before.billed, after.billed, days).causes(before.amounts, after.amounts)


def effects(before: Charged, after: Charged, days: tuple[int, int]) -> dict[str, int]:
    """Return the effects of a change that are not zero."""
    found: Counter[str] = Counter()
    for cause in causes(before, after, days):
        found[cause.effect] += cause.amount
    return {name: amount for name, amount in found.items() if amount}


def _amount(random: Random) -> int:
    return random.choice([0, random.randint(-3, 3), random.randint(0, 10**15), random.randint(-(10**26), 10**26)])


def _costs(random: Random) -> dict[str, int]:
    return {method: _amount(random) for method in random.sample(_METHODS, random.randint(0, 3))}


def _charged(random: Random) -> Charged:
    """Return a random part of a bill; some have shares above the bill, refunds, or methods that the bill lacks."""
    if random.random() < 0.1:
        return Charged({}, None)
    quantity = random.choice([None, Quantity(_amount(random), random.choice([None, "GB", HOURS]))])
    policies, has_refunds = frozenset(random.choice(["a", "a", "ab"])), random.random() < 0.1
    if random.random() < 0.5:
        return Charged(_costs(random), BilledType(_costs(random), quantity, policies, has_refunds))
    sign = random.choice([-1, 1])
    costs = {method: sign * abs(cost) for method, cost in _costs(random).items()}
    amounts = {method: random.choice([0, cost, int(random.random() * cost)]) for method, cost in costs.items()}
    return Charged(amounts, BilledType(costs, quantity, policies, has_refunds))


def test_charges_and_refunds_are_one_effect() -> None:
    """If charges and refunds nearly cancel, the difference is one correction, because scaling would explode."""
    plain = Charged({USED: 130 * ONE}, BilledType({USED: 130 * ONE}, Quantity(2 * ONE, HOURS)))
    lines = BilledType({USED: 10 * ONE}, Quantity(8 * ONE, HOURS), has_refunds=True)
    assert effects(Charged({USED: 10 * ONE}, lines), plain, (1, 2)) == {"correction": 120 * ONE}
    assert effects(plain, Charged({USED: 10 * ONE}, lines), (2, 1)) == {"correction": -120 * ONE}
    # The bill does not show it, but the shares do: they are not between 0 and 1.
    nearly = BilledType({USED: 10 * ONE}, Quantity(8 * ONE, HOURS))
    assert effects(Charged({USED: -390 * ONE}, nearly), plain, (1, 2)) == {"correction": 520 * ONE}
    assert effects(Charged({USED: 400 * ONE}, nearly), plain, (1, 2)) == {"correction": -270 * ONE}
    assert effects(Charged({}, BilledType({USED: ONE, "direct": -ONE})), Charged(plain.amounts, nearly), (1, 1)) == {
        "correction": 130 * ONE
    }


def test_directions_are_those_of_what_is_compared() -> None:
    """A halved refund adds to the cost although its quantity decreases; the number of days is a separate effect."""

    def _refund(amount: int, quantity: int) -> Charged:
        return Charged({USED: -amount * ONE}, BilledType({USED: -amount * ONE}, Quantity(quantity * ONE, HOURS)))

    (halved,) = causes(_refund(100, 10), _refund(50, 5), (1, 1))
    assert (halved.effect, halved.amount, halved.grew, halved.is_credit) == ("quantity", 50 * ONE, False, True)
    days, quantity = causes(_refund(100, 10), _refund(150, 15), (1, 3))
    assert (days.amount, days.grew) == (-200 * ONE, True)
    assert (quantity.amount, quantity.grew, quantity.days_differ) == (150 * ONE, False, True)


@pytest.mark.parametrize("cases", [5_000, pytest.param(20_000, marks=pytest.mark.drill)])
def test_effects_sum_to_the_difference(cases: int) -> None:
    """Effects sum to the difference exactly, with refunds, missing quantities, zero prices and empty sides."""
    random = Random(11)
    seen = set()
    for _ in range(cases):
        before, after = _charged(random), _charged(random)
        days = random.randint(1, 400), random.randint(1, 400)
        there, back = effects(before, after, days), effects(after, before, (days[1], days[0]))
        assert sum(there.values()) == after.amount - before.amount == -sum(back.values())
        assert all(there.values())
        seen |= set(there)
    assert seen == set(EFFECTS)


def test_nothing_changes_nothing() -> None:
    """Equal amounts of the same bill have no effects."""
    random = Random(12)
    for _ in range(1000):
        charged, days = _charged(random), random.randint(1, 400)
        assert effects(charged, charged, (days, days)) == {}


def test_each_effect_alone() -> None:
    """A single difference has a single effect."""
    before = Charged({USED: 60}, BilledType({USED: 100}, Quantity(10, HOURS)))

    def _after(amount: int, cost: int, quantity: int = 10) -> Charged:
        return Charged({USED: amount}, BilledType({USED: cost}, Quantity(quantity, HOURS)))

    assert effects(before, _after(120, 200, 20), (1, 2)) == {"calendar": 60}
    assert effects(before, _after(120, 200, 20), (2, 2)) == {"quantity": 60}
    assert effects(before, _after(120, 200), (2, 2)) == {"price": 60}
    assert effects(before, _after(100, 100), (2, 2)) == {"share": 40}
    assert effects(before, Charged({}, None), (2, 2)) == {"gone": -60}


def test_owners_and_members() -> None:
    """Taking over a resource, or sharing it with fewer members, is an effect of ownership."""
    billed = BilledType({"direct": 100})
    assert effects(Charged({}, billed), Charged({"direct": 100}, billed), (1, 1)) == {"ownership": 100}
    shared = BilledType({"even_split": 100})
    assert effects(Charged({"even_split": 25}, shared), Charged({"even_split": 50}, shared), (1, 1)) == {
        "ownership": 25
    }


def test_other_policies_and_other_methods() -> None:
    """Another policy, or another method because measurements are missing, is an effect of the policy."""
    before = Charged({USED: 70 * 10**12}, BilledType({USED: 100 * 10**12}, policies=frozenset("a")))
    even = Charged({"even_split": 50 * 10**12}, BilledType({"even_split": 100 * 10**12}, policies=frozenset("a")))
    assert effects(before, even, (1, 1)) == {"policy": -20 * 10**12}
    other = Charged({USED: 30 * 10**12}, BilledType({USED: 100 * 10**12}, policies=frozenset("b")))
    assert effects(before, other, (1, 1)) == {"policy": -40 * 10**12}


def test_rounding_of_portions_is_no_policy() -> None:
    """Rounding the parts of a line is not a change of policy."""
    before = Charged({USED: 35}, BilledType({USED: 70, "even_split": 30}))
    after = Charged({USED: 71}, BilledType({USED: 141, "even_split": 60}))
    assert effects(before, after, (1, 1)) == {"price": 35, "share": 1}


def test_without_a_quantity_it_is_the_price() -> None:
    """Without comparable quantities, or if the lines cost nothing before, the change is an effect of the price."""
    before = Charged({USED: 60}, BilledType({USED: 100}))
    assert effects(before, Charged({USED: 120}, BilledType({USED: 200})), (1, 1)) == {"price": 60}
    units = (BilledType({USED: cost}, Quantity(10, unit)) for cost, unit in ((100, "GB"), (200, "TB")))
    sides = [Charged({USED: amount}, billed) for amount, billed in zip((60, 120), units, strict=True)]
    assert effects(sides[0], sides[1], (1, 1)) == {"price": 60}
    free = Charged({USED: 0}, BilledType({USED: 0}, Quantity(10, "GB")))
    assert effects(free, Charged({USED: 7}, BilledType({USED: 9}, Quantity(20, "GB"))), (1, 1)) == {"price": 7}
