"""Why a cost changed between two ranges of days: the difference as a sum of effects.

An amount is a quantity × a unit price × a share. The amount before becomes the amount after in steps, each of which
replaces one factor by its later value: the number of days, the quantity, the price, then the method and the shares of
the split. The effect of a factor is what its step adds, so the effects sum to the difference exactly: every step is
rounded to 10⁻¹² once, and nothing remains to be distributed.

The steps scale amounts. Charges and refunds that offset each other cannot be scaled: the difference of such a cost is
one effect.
"""

from __future__ import annotations

from collections.abc import Mapping
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


#: An effect and its amount, with the direction and the method of a :class:`Cause`.
_Step = tuple[str, int, bool | None, str]


class _Scale(NamedTuple):
    """How a bill changed, and with it what is charged to each payer.

    Attributes:
        old, new: the bills, neither of which is missing.
        days: the number of days with costs of both ranges.
        sign: -1 if the bills are refunds, else 1.
        quantities: before and after, without their sign, if they can be compared.
        more_days, more_per_day, price_rose: the directions.
    """

    old: BilledType
    new: BilledType
    days: tuple[int, int]
    sign: int
    quantities: tuple[int, int] | None
    more_days: bool
    more_per_day: bool
    price_rose: bool


@dataclass(frozen=True)
class BilledChange:
    """What was billed for a product type on a resource in two ranges: what all its payers have in common.

    Attributes:
        before: the bill of the earlier range, None if there was none.
        after: that of the later one.
        days: the number of days with costs of both ranges; one of a range with a bill is positive.
    """

    before: BilledType | None
    after: BilledType | None
    days: tuple[int, int]

    def causes(self, before: Mapping[str, int], after: Mapping[str, int]) -> list[Cause]:
        """Return the effects that are not zero with what they come from, of the part that is charged to a payer before
        and after, by allocation method in units of 10⁻¹². They sum to the difference; ``share`` and ``ownership`` are
        by allocation method.

        Directions are those of the days, quantities, prices and shares, not of the amounts: a refund that is halved
        adds to a cost.

        In two days a cluster cost 100: 20 CKU hours at 5. Afterwards, in three days, it cost 240: 40 CKU hours at 6.
        The share of a payer rises from 50 % to 60 % of the measured usage, from 50 to 144. With one day more it would
        be 75; with 40 hours 100; at the new price 120; and with its new share it is 144.

        >>> earlier = BilledType({"usage_ratio": 100}, Quantity(20, "hours"))
        >>> later = BilledType({"usage_ratio": 240}, Quantity(40, "hours"))
        >>> found = BilledChange(earlier, later, (2, 3)).causes({"usage_ratio": 50}, {"usage_ratio": 144})
        >>> [(each.effect, each.amount) for each in found]
        [('calendar', 25), ('quantity', 25), ('price', 20), ('share', 24)]

        What was not billed before is new, and what is not billed any more is gone.

        >>> BilledChange(None, later, (2, 3)).causes({}, {"usage_ratio": 144})[0][:2]
        ('new', 144)

        With a refund of nearly everything, neither a quantity nor a share says why the rest is another one.

        >>> refunded = BilledType({"usage_ratio": 1}, Quantity(20, "hours"), has_refunds=True)
        >>> BilledChange(refunded, later, (2, 3)).causes({"usage_ratio": 1}, {"usage_ratio": 144})[0][:2]
        ('correction', 143)
        """
        scale, start, end = self._scale, sum(before.values()), sum(after.values())
        if scale is None or not (
            _are_parts(before, scale.old, scale.sign) and _are_parts(after, scale.new, scale.sign)
        ):
            effect = NEW if self.before is None else GONE if self.after is None else CORRECTION
            return [Cause(effect, end - start)] if end != start else []
        is_credit = min(start, end, scale.old.cost, scale.new.cost) < 0
        per_unit, days_differ = scale.quantities is not None, self.days[0] != self.days[1]
        return [
            Cause(
                effect,
                amount,
                # An amount, which is rounded, may have another direction than what it comes from.
                grew if (grew is not is_credit) == (amount > 0) else None,
                method,
                per_unit and effect == PRICE,
                is_credit,
                days_differ,
            )
            for effect, amount, grew, method in _steps(scale, before, after, start, end)
            if amount
        ]

    @cached_property
    def _scale(self) -> _Scale | None:
        """How amounts are scaled; None if the costs of both ranges are not all charges, or all refunds, but for
        rounding."""
        old, new = self.before, self.after
        if old is None or new is None or old.has_refunds or new.has_refunds:
            return None
        sign = -1 if old.cost + new.cost < 0 else 1
        if any(cost * sign <= -_ROUNDING for each in (old, new) for cost in each.costs.values()):
            return None
        was_days, days = self.days
        per_day, price = 0, abs(new.cost) * was_days - abs(old.cost) * days
        quantities = _compared_quantities(old.quantity, new.quantity)
        if quantities is not None:
            was, now = quantities
            per_day, price = now * was_days - was * days, abs(new.cost) * was - abs(old.cost) * now
        return _Scale(old, new, self.days, sign, quantities, days > was_days, per_day > 0, price > 0)


def _are_parts(amounts: Mapping[str, int], billed: BilledType, sign: int) -> bool:
    """Return whether the shares of a payer are between 0 and 1, but for rounding."""
    for method, amount in amounts.items():
        if not -_ROUNDING < amount * sign < billed.costs.get(method, 0) * sign + _ROUNDING:
            return False
    return True


def _compared_quantities(old: Quantity | None, new: Quantity | None) -> tuple[int, int] | None:
    """Return two quantities without their sign if they have the same unit and sign, and neither is zero."""
    if old is None or new is None or old.unit != new.unit or old.amount * new.amount <= 0:
        return None
    return abs(old.amount), abs(new.amount)


def _steps(scale: _Scale, before: Mapping[str, int], after: Mapping[str, int], start: int, end: int) -> list[_Step]:
    """Return the steps from the amount ``start``, by method ``before``, to the amount ``end``, by method ``after``."""
    old, new, (was_days, days) = scale.old, scale.new, scale.days
    with_days = with_quantity = _scaled(start, days, was_days)
    if scale.quantities is not None:
        was, now = scale.quantities
        with_quantity = _scaled(start, now, was)
    # A cost of zero has no shares: what is charged now is the same at another price.
    with_price = {method: _scaled(amount, new.cost, old.cost) for method, amount in before.items()} if old.cost else {}
    priced = sum(with_price.values()) if old.cost else end
    steps: list[_Step] = [
        (CALENDAR, with_days - start, scale.more_days, ""),
        (QUANTITY, with_quantity - with_days, scale.more_per_day, ""),
        (PRICE, priced - with_quantity, scale.price_rose, ""),
    ]
    if old.policies != new.policies:
        return [*steps, (POLICY, end - priced, None, "")]
    return steps + _split(before, old.costs, after, new.costs, with_price) if old.cost else steps


def _split(
    before: Mapping[str, int],
    old: Mapping[str, int],
    after: Mapping[str, int],
    new: Mapping[str, int],
    with_price: Mapping[str, int],
) -> list[_Step]:
    """Return the steps to another split of the same cost: that other methods of the policy applied, or to other parts
    of the cost; and of each method, that its share is another."""
    policy = 0
    steps: list[_Step] = []
    for method in before if len(before) == 1 and before.keys() == after.keys() else sorted({*before, *after}):
        start, end = with_price.get(method, 0), after.get(method, 0)
        was, now = old.get(method, 0), new.get(method, 0)
        with_policy = _scaled(before.get(method, 0), now, was) if was else end
        if abs(with_policy - start) < _ROUNDING:
            with_policy = start
        policy += with_policy - start
        grew = abs(end * was) > abs(before.get(method, 0) * now)
        steps.append((OWNERSHIP if method in _BY_MEMBERSHIP else SHARE, end - with_policy, grew, method))
    return [(POLICY, policy, None, ""), *steps]


def _scaled(amount: int, numerator: int, denominator: int) -> int:
    """Return amount × numerator / denominator, rounded to a whole number, halves away from zero."""
    if numerator == denominator:
        return amount
    product = amount * numerator
    size = (2 * abs(product) + abs(denominator)) // (2 * abs(denominator))
    return size if (product < 0) == (denominator < 0) else -size
