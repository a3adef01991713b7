"""Why a cost changed between two ranges of days: the difference as a sum of effects.

An amount is a quantity × a unit price × a share. The amount before becomes the amount after in steps, each of which
replaces one factor by its later value: the number of days, the quantity, the price, then the method and the shares of
the split. The effect of a factor is what its step adds, so the effects sum to the difference exactly: every step is
rounded to 10⁻¹² once, and nothing remains to be distributed.

The steps scale amounts. Charges and refunds that offset each other cannot be scaled: the difference of such a cost is
one effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from chargeback.model.chargeback import DIRECT, EVEN_SPLIT, TERMINAL

#: The effects, in the order of the steps.
CALENDAR, QUANTITY, PRICE = "calendar", "quantity", "price"
POLICY, SHARE, OWNERSHIP = "policy", "share", "ownership"
CORRECTION, NEW, GONE = "correction", "new", "gone"
EFFECTS: Final = (CALENDAR, QUANTITY, PRICE, POLICY, SHARE, OWNERSHIP, CORRECTION, NEW, GONE)

#: The allocation methods whose shares follow owners and members; those of the others follow what was measured.
_BY_MEMBERSHIP: Final = frozenset({DIRECT, EVEN_SPLIT, TERMINAL})
# The parts of a line are rounded to 10⁻¹², so that two equal ways of splitting differ by some of these. Below a
# millionth of the currency unit it is no other way.
_ROUNDING: Final = 10**6


class Quantity(NamedTuple):
    """A billed quantity: its amount in units of 10⁻¹², and in what it is measured."""

    amount: int
    unit: str | None


@dataclass(frozen=True)
class BilledType:
    """What was billed for one product type on one resource in a range of days.

    Attributes:
        costs: the cost by the method that allocated it, in units of 10⁻¹² of the currency.
        quantity: None if a billing line has no quantity, or if the lines have several units.
        policies: the hashes of the policies by which it was split.
        has_refunds: whether some of the lines are charges and others refunds.
    """

    costs: Mapping[str, int]
    quantity: Quantity | None = None
    policies: frozenset[str] = frozenset()
    has_refunds: bool = False

    @cached_property
    def cost(self) -> int:
        """The cost in units of 10⁻¹²."""
        return sum(self.costs.values())

    @cached_property
    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest cost of a method, and zero."""
        return min((0, *self.costs.values())), max((0, *self.costs.values()))


@dataclass(frozen=True)
class Charged:
    """The part of a :class:`BilledType` that is charged to one payer, by allocation method, in units of 10⁻¹²; and the
    bill itself, None if there was none in the range."""

    amounts: Mapping[str, int]
    billed: BilledType | None

    @cached_property
    def amount(self) -> int:
        """The amount in units of 10⁻¹²."""
        return sum(self.amounts.values())


class Cause(NamedTuple):
    """An effect, and what it comes from.

    Attributes:
        effect: its name.
        amount: what it adds, in units of 10⁻¹².
        grew: whether the number of days, the quantity per day, the price or the share is larger afterwards; None for an
            effect that is neither, or where rounding decides.
        method: of ``share`` and ``ownership``: the allocation method; else empty.
        per_unit: of ``price``: whether it is the price of a unit; else it is the cost per day.
        is_credit: whether the cost is negative in both ranges.
        days_differ: whether the ranges have different numbers of days with costs.
    """

    effect: str
    amount: int
    grew: bool | None = None
    method: str = ""
    per_unit: bool = False
    is_credit: bool = False
    days_differ: bool = False


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

    With a refund of nearly everything, neither a quantity nor a share says why the rest is another one.

    >>> refunded = BilledType({"usage_ratio": 1}, Quantity(20, "hours"), has_refunds=True)
    >>> effects(Charged({"usage_ratio": 1}, refunded), Charged({"usage_ratio": 144}, after), (2, 3))
    {'correction': 143}
    """
    found: Counter[str] = Counter()
    for cause in causes(before, after, days):
        found[cause.effect] += cause.amount
    return {name: amount for name, amount in found.items() if amount}


def causes(before: Charged, after: Charged, days: tuple[int, int]) -> Sequence[Cause]:
    """Return the effects that are not zero with what they come from; ``share`` and ``ownership`` by allocation method.

    See :func:`effects`. Directions are those of the days, quantities, prices and shares, not of the amounts: a refund
    that is halved adds to a cost.
    """
    old, new = before.billed, after.billed
    start, end = before.amount, after.amount
    found: list[Cause] = []
    if old is None or new is None or not _can_be_scaled(before, old, after, new):
        if end != start:
            found.append(Cause(NEW if old is None else GONE if new is None else CORRECTION, end - start))
        return found
    old_cost, new_cost = old.cost, new.cost
    is_credit, days_differ = min(start, end, old_cost, new_cost) < 0, days[0] != days[1]

    def _add(effect: str, amount: int, grew: bool | None = None, method: str = "", *, per_unit: bool = False) -> None:
        """Add an effect that is not zero; without its direction if its amount, which is rounded, has another one."""
        if amount:
            known = grew is not None and (grew is not is_credit) == (amount > 0)
            found.append(Cause(effect, amount, grew if known else None, method, per_unit, is_credit, days_differ))

    with_days = _scaled(start, days[1], days[0])
    with_quantity, per_day, per_unit = with_days, 0, False
    price = abs(new_cost) * days[0] - abs(old_cost) * days[1]
    quantities = _compared_quantities(old.quantity, new.quantity)
    if quantities is not None:
        was, now = quantities
        with_quantity = _scaled(start, now, was)
        per_day = now * days[0] - was * days[1]
        price, per_unit = abs(new_cost) * was - abs(old_cost) * now, True
    _add(CALENDAR, with_days - start, days[1] > days[0])
    _add(QUANTITY, with_quantity - with_days, per_day > 0)
    if not old_cost:  # A cost of zero has no shares: what is charged now is the same at another price.
        _add(PRICE, end - with_quantity, price > 0, per_unit=per_unit)
        return found
    with_price = {method: _scaled(amount, new_cost, old_cost) for method, amount in before.amounts.items()}
    priced = sum(with_price.values())
    _add(PRICE, priced - with_quantity, price > 0, per_unit=per_unit)
    if old.policies != new.policies:
        _add(POLICY, end - priced)
        return found
    policy, shares = _split(before.amounts, old.costs, after.amounts, new.costs, with_price)
    _add(POLICY, policy)
    for share in shares:
        _add(*share)
    return found


def _can_be_scaled(before: Charged, old: BilledType, after: Charged, new: BilledType) -> bool:
    """Return whether the costs of both ranges are all charges, or all refunds, and the shares are between 0 and 1, but
    for rounding."""
    if old.has_refunds or new.has_refunds:
        return False
    sign = -1 if old.cost + new.cost < 0 else 1
    (old_smallest, old_largest), (new_smallest, new_largest) = old.extremes, new.extremes
    if max(old_largest, new_largest) >= _ROUNDING if sign < 0 else min(old_smallest, new_smallest) <= -_ROUNDING:
        return False
    for charged, billed in ((before, old), (after, new)):
        for method, amount in charged.amounts.items():
            if not -_ROUNDING < amount * sign < billed.costs.get(method, 0) * sign + _ROUNDING:
                return False
    return True


def _compared_quantities(old: Quantity | None, new: Quantity | None) -> tuple[int, int] | None:
    """Return two quantities without their sign if they have the same unit and sign, and neither is zero."""
    if old is None or new is None or old.unit != new.unit or old.amount * new.amount <= 0:
        return None
    return abs(old.amount), abs(new.amount)


def _split(
    before: Mapping[str, int],
    old: Mapping[str, int],
    after: Mapping[str, int],
    new: Mapping[str, int],
    with_price: Mapping[str, int],
) -> tuple[int, list[tuple[str, int, bool, str]]]:
    """Return the effects of another split of the same cost: that other methods of the policy applied, or to other parts
    of the cost; and of each method, that its share is another: the effect, its amount, whether it grew, the method."""
    policy, found = 0, []
    for method in sorted(before.keys() | after.keys()):
        start, end = with_price.get(method, 0), after.get(method, 0)
        was, now = old.get(method, 0), new.get(method, 0)
        with_policy = _scaled(before.get(method, 0), now, was) if was else end
        if abs(with_policy - start) < _ROUNDING:
            with_policy = start
        policy += with_policy - start
        grew = abs(end * was) > abs(before.get(method, 0) * now)
        found.append((OWNERSHIP if method in _BY_MEMBERSHIP else SHARE, end - with_policy, grew, method))
    return policy, found


def _scaled(amount: int, numerator: int, denominator: int) -> int:
    """Return amount × numerator / denominator, rounded to a whole number, halves away from zero."""
    product = amount * numerator
    size = (2 * abs(product) + abs(denominator)) // (2 * abs(denominator))
    return size if (product < 0) == (denominator < 0) else -size
