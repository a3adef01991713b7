"""Why a cost changed between two ranges of days: the difference as a sum of effects.

An amount is a quantity × a unit price × a share. The amount before is therefore carried to the amount after in steps,
each of which lets one more thing be as it is after: the number of days, the quantity, the price, then the way and the
shares by which the cost is split. What a step adds is its effect, so the effects sum to the difference exactly: every
step is rounded to 10⁻¹² once, and nothing remains to be distributed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from chargeback.model.chargeback import DIRECT, EVEN_SPLIT, TERMINAL

#: The effects, in the order of the steps.
CALENDAR, QUANTITY, PRICE = "calendar", "quantity", "price"
POLICY, SHARE, OWNERSHIP = "policy", "share", "ownership"
NEW, GONE = "new", "gone"
EFFECTS: Final = (CALENDAR, QUANTITY, PRICE, POLICY, SHARE, OWNERSHIP, NEW, GONE)

#: The allocation methods whose shares follow owners and members; those of the others follow what was measured.
_BY_MEMBERSHIP: Final = frozenset({DIRECT, EVEN_SPLIT, TERMINAL})
# The parts of a line are rounded to 10⁻¹², so that two equal ways of splitting differ by some of these. Below a
# millionth of the currency unit it is no other way.
_ROUNDING: Final = 10**6


class Quantity(NamedTuple):
    """A billed quantity: its amount in units of 10⁻¹², and in what it is measured."""

    amount: int
    unit: str | None


@dataclass(frozen=True, slots=True)
class BilledType:
    """What was billed for one product type on one resource in a range of days.

    Attributes:
        costs: the cost by the method that allocated it, in units of 10⁻¹² of the currency.
        quantity: None if a billing line has no quantity, or if the lines have several units.
        policies: the hashes of the policies by which it was split.
    """

    costs: Mapping[str, int]
    quantity: Quantity | None = None
    policies: frozenset[str] = frozenset()

    @property
    def cost(self) -> int:
        """The cost in units of 10⁻¹²."""
        return sum(self.costs.values())


@dataclass(frozen=True, slots=True)
class Charged:
    """The part of a :class:`BilledType` that is charged to one payer, by allocation method, in units of 10⁻¹²; and the
    bill itself, None if there was none in the range."""

    amounts: Mapping[str, int]
    billed: BilledType | None

    @property
    def amount(self) -> int:
        """The amount in units of 10⁻¹²."""
        return sum(self.amounts.values())


def effects(before: Charged, after: Charged, days: tuple[int, int]) -> dict[str, int]:
    """Return the effects that are not zero, in units of 10⁻¹². They sum to the difference of the amounts.

    ``days`` is the number of days with costs of both ranges; one of a range with a bill is positive.

    In two days a cluster cost 100: 20 CKU hours at 5. Afterwards, in three days, it cost 240: 40 CKU hours at 6. The
    share of a payer rises from 50 % to 60 % of the measured usage, from 50 to 144. With one day more it would be 75;
    with 40 hours 100; at the new price 120; and with its new share it is 144.

    >>> before = BilledType({"usage_ratio": 100}, Quantity(20, "hours"))
    >>> after = BilledType({"usage_ratio": 240}, Quantity(40, "hours"))
    >>> effects(Charged({"usage_ratio": 50}, before), Charged({"usage_ratio": 144}, after), (2, 3))
    {'calendar': 25, 'quantity': 25, 'price': 20, 'share': 24}

    What was not billed before is new, and what is not billed any more is gone.

    >>> effects(Charged({}, None), Charged({"usage_ratio": 144}, after), (2, 3))
    {'new': 144}
    """
    old, new = before.billed, after.billed
    start, end = before.amount, after.amount
    if old is None or new is None:
        return _not_zero({NEW if old is None else GONE: end - start})
    with_days = _scaled(start, days[1], days[0])
    with_quantity = with_days
    if old.quantity and new.quantity and old.quantity.amount and old.quantity.unit == new.quantity.unit:
        with_quantity = _scaled(start, new.quantity.amount, old.quantity.amount)
    found = {CALENDAR: with_days - start, QUANTITY: with_quantity - with_days}
    if not old.cost:
        # A cost of zero has no shares: what is charged now is the same at another price.
        return _not_zero(found | {PRICE: end - with_quantity})
    with_price = {method: _scaled(amount, new.cost, old.cost) for method, amount in before.amounts.items()}
    found[PRICE] = sum(with_price.values()) - with_quantity
    if old.policies != new.policies:
        return _not_zero(found | {POLICY: end - sum(with_price.values())})
    return _not_zero(found | _split_effects(before, after, with_price))


def _split_effects(before: Charged, after: Charged, with_price: Mapping[str, int]) -> dict[str, int]:
    """Return the effects of another split of the same cost: ``policy`` is that other methods of the policy applied, or
    to other parts of the cost; the others are other shares within a method."""
    found = dict.fromkeys((POLICY, SHARE, OWNERSHIP), 0)
    for method in before.amounts.keys() | after.amounts.keys():
        start, end = with_price.get(method, 0), after.amounts.get(method, 0)
        was = before.billed.costs.get(method, 0) if before.billed else 0
        now = after.billed.costs.get(method, 0) if after.billed else 0
        with_policy = _scaled(before.amounts.get(method, 0), now, was) if was else end
        if abs(with_policy - start) < _ROUNDING:
            with_policy = start
        found[POLICY] += with_policy - start
        found[OWNERSHIP if method in _BY_MEMBERSHIP else SHARE] += end - with_policy
    return found


def _scaled(amount: int, numerator: int, denominator: int) -> int:
    """Return amount × numerator / denominator, rounded to a whole number, halves away from zero."""
    product = amount * numerator
    size = (2 * abs(product) + abs(denominator)) // (2 * abs(denominator))
    return size if (product < 0) == (denominator < 0) else -size


def _not_zero(found: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in found.items() if amount}
