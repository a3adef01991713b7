"""An independent reader of sentences about changes: what they say is compared with the bills of two ranges.

This shares no code with the service. It reads the amounts and the directions in a text, and derives both from lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

CENT: Final = Fraction(1, 100)
ROUNDING: Final = Fraction(1, 10**6)
_AMOUNT: Final = r"[+-]?\d{1,3}(?:,\d{3})*\.\d\d+"
_WHAT: Final = r"(?P<product>[A-Z_]+) on (?P<resource>[a-z0-9-]+)"
_PAYER: Final = re.compile(
    rf"(.*), (?:for which (?P<payer>[a-z0-9-]+) pays|of which) (?P<paid>{_AMOUNT}) (?P<more>more|less)"
    r"( is unallocated)?"
)
_GREW: Final = r"(?P<grew>grew|shrank|changed)"
#: The reasons that the reader knows, by effect; the group ``grew`` is a direction.
_REASONS: Final = {
    "calendar": r"(?P<grew>more|fewer) days have costs",
    "quantity": rf"(?P<grew>larger|smaller|other) quantities of {_WHAT} were (?P<credit>billed|credited)( per day)?",
    "price": rf"the (?P<credit>price|credit for a unit) of {_WHAT} (?P<grew>rose|fell|changed)",
    "cost": rf"(?P<grew>more|less|another amount) was (?P<credit>billed|credited) for {_WHAT}( per day)?",
    "policy": rf"{_WHAT} was split in another way",
    "usage_ratio": rf"(?:its share|shares) of the usage for {_WHAT} {_GREW}",
    "even_split": rf"(?:its part|parts) of {_WHAT}, which is shared evenly, {_GREW}",
    "terminal": rf"(?:a )?(?P<grew>larger|smaller|another) part of {_WHAT} is unallocated",
    "correction": rf"{_WHAT} has charges and refunds, which offset each other",
    "new": rf"nothing was charged for {_WHAT} before",
    "gone": rf"nothing is charged for {_WHAT} any more",
}
_EFFECTS: Final = {"cost": "price", "usage_ratio": "share", "even_split": "ownership", "terminal": "ownership"}
_LARGER: Final = {"more", "larger", "rose", "grew"}
_SMALLER: Final = {"fewer", "smaller", "fell", "less", "shrank"}


@dataclass(frozen=True)
class BilledLine:
    """A billing line that was split by one method: ``shares`` are amounts by identity, in units of 10⁻¹²."""

    resource: str
    product: str
    quantity: int | None
    unit: str
    method: str
    policy: str
    shares: Mapping[str, int]

    @property
    def cost(self) -> int:
        """Return the cost in units of 10⁻¹²."""
        return sum(self.shares.values())


@dataclass(frozen=True)
class BilledRange:
    """The lines of a range, and how many days have costs."""

    days: int
    lines: Sequence[BilledLine]

    def of(self, resource: str, product: str) -> list[BilledLine]:
        """Return the lines of a product type on a resource."""
        return [each for each in self.lines if (each.resource, each.product) == (resource, product)]


def amount_of(text: str) -> Fraction:
    """Return the amount in a sentence."""
    return Fraction(text.replace(",", ""))


@dataclass(frozen=True)
class ChangeReader:
    """Reads sentences about the charges of some ``payers`` in two ranges of days. ``resources`` are ids by name."""

    before: BilledRange
    after: BilledRange
    payers: Collection[str]
    resources: Mapping[str, str]

    def check(self, sentence: str, delta: Decimal, effects: Mapping[str, Decimal]) -> list[str]:
        """Check a sentence against a response and the bills; return the kinds of reasons in it."""
        if sentence == "Nothing changed.":
            assert not any(effects.values())
            return []
        found = re.fullmatch(rf"({_AMOUNT}) USD(:? )(.*)\.", sentence)
        assert found, sentence
        assert _is_rounded(found[1], Fraction(delta)), sentence
        if found[2] == " ":
            return [self._check_effect(found[1], found[3], effects, is_delta=True)]
        kinds = []
        for part in found[3].split("; "):
            amount, _, rest = part.partition(" ")
            kinds.append(self._check_effect(amount, rest, effects, is_delta=False))
        assert len(set(kinds)) == len(kinds), sentence
        return kinds

    def _check_effect(self, amount: str, text: str, effects: Mapping[str, Decimal], *, is_delta: bool) -> str:
        found = re.fullmatch(rf"(above all )?because (.*?)(?: \(({_AMOUNT})\))?", text)
        assert found, text
        assert bool(found[1]) == bool(found[3]), text
        payer = _PAYER.fullmatch(found[2])
        reason = payer[1] if payer else found[2]
        ((kind, read),) = [(kind, m) for kind, form in _REASONS.items() if (m := re.fullmatch(form, reason))]
        effect = _EFFECTS.get(kind, kind)
        if not is_delta:
            assert _is_rounded(amount, Fraction(effects[effect])), text
        said = read.groupdict()
        resource = self.resources.get(said.get("resource") or "", said.get("resource") or "")
        where = (resource, said.get("product") or "")
        contribution = Fraction(effects["calendar"]) if kind == "calendar" else self._contribution(kind, *where)
        # Parts are rounded to 10⁻¹², so a sentence about less than a millionth may be caused by rounding.
        assert (contribution > 0) == (effects[effect] > 0) or abs(effects[effect]) < ROUNDING, text
        if found[3]:
            assert _is_rounded(found[3], contribution), (text, contribution)
            others = [self._contribution(kind, each.resource, each.product) for each in self._all_lines()]
            assert all(abs(contribution) >= abs(each) - CENT for each in others if (each > 0) == (contribution > 0)), (
                text
            )
        self._check_direction(kind, where, said, text)
        if payer:
            assert kind != "calendar"
            who = payer["payer"] or "UNALLOCATED"
            more = self._charged({who}, self.after, *where) - self._charged({who}, self.before, *where)
            assert (more > 0) == (payer["more"] == "more"), text
            assert _is_rounded(payer["paid"], abs(more)), text
        return kind

    def _check_direction(self, kind: str, where: tuple[str, str], said: Mapping[str, str | None], text: str) -> None:
        """Check a reason's claims about days, quantities, prices and shares."""
        sides = [each.of(*where) for each in (self.before, self.after)]
        costs = [line.cost for side in sides for line in side]
        if kind in {"new", "gone"}:
            assert not sides[kind == "gone"], text
        if kind == "correction":
            amounts = [amount for side in sides for line in side for amount in line.shares.values()]
            assert min(amounts) < 0 < max(amounts), text
        if kind in {"quantity", "price", "cost"}:
            assert (said["credit"] in {"credited", "credit for a unit"}) == (min(costs) < 0), text
        if kind == "policy":
            ways = [{(line.policy, line.method) for line in side} for side in sides]
            parts = [_parts_by_method(side) for side in sides]
            assert ways[0] != ways[1] or parts[0] != parts[1], text
        measures: dict[str, Callable[[list[BilledLine], int], Fraction]] = {
            "calendar": lambda _side, days: Fraction(days),
            "quantity": lambda side, days: abs(Fraction(_quantity(side), days)),
            "price": lambda side, _days: abs(Fraction(_cost(side), _quantity(side))),
            "cost": lambda side, days: abs(Fraction(_cost(side), days)),
        }
        measure = measures.get(kind, self._share_of(kind))
        if said.get("grew") in _LARGER | _SMALLER:
            was, now = (measure(side, each.days) for side, each in zip(sides, (self.before, self.after), strict=True))
            assert now > was if said["grew"] in _LARGER else now < was, (text, was, now)

    def _share_of(self, method: str) -> Callable[[list[BilledLine], int], Fraction]:
        def _share(side: list[BilledLine], _days: int) -> Fraction:
            mine = sum(line.shares.get(each, 0) for line in side if line.method == method for each in self.payers)
            return Fraction(mine, _cost([line for line in side if line.method == method]) or 1)

        return _share

    def _contribution(self, kind: str, resource: str, product: str) -> Fraction:
        """Return what one product type on one resource adds to an effect, as defined in the documentation."""
        before, after = self.before.of(resource, product), self.after.of(resource, product)
        start, end = (self._charged(self.payers, each, resource, product) for each in (self.before, self.after))
        is_whole = kind in {"new", "gone"}
        if not before or not after or is_whole or kind == "correction":
            applies = (kind == "new" and not before) or (kind == "gone" and not after)
            return end - start if applies or (kind == "correction" and before and after) else Fraction(0)
        by_days = start * self.after.days / self.before.days
        compared = _comparable(before, after)
        by_quantity = start * Fraction(_quantity(after), _quantity(before)) if compared else by_days
        by_price = start * Fraction(_cost(after), _cost(before)) if _cost(before) else end
        if kind == "quantity":
            return by_quantity - by_days
        if kind in {"price", "cost"}:
            return by_price - by_quantity if (kind == "price") == compared else Fraction(0)
        if {line.policy for line in before} != {line.policy for line in after}:
            return end - by_price if kind == "policy" else Fraction(0)
        split = {method: self._split(method, before, after) for method in ("usage_ratio", "even_split", "terminal")}
        return end - by_price - sum(split.values()) if kind == "policy" else split[kind]

    def _split(self, method: str, before: list[BilledLine], after: list[BilledLine]) -> Fraction:
        was, now = ([line for line in side if line.method == method] for side in (before, after))
        start, end = (
            Fraction(sum(line.shares.get(p, 0) for line in side for p in self.payers), 10**12) for side in (was, now)
        )
        return end - start * Fraction(_cost(now), _cost(was)) if _cost(was) else Fraction(0)

    def _charged(self, payers: Collection[str], found: BilledRange, resource: str, product: str) -> Fraction:
        lines = found.of(resource, product)
        return Fraction(sum(line.shares.get(each, 0) for line in lines for each in payers), 10**12)

    def _all_lines(self) -> list[BilledLine]:
        return [*self.before.lines, *self.after.lines]


def _cost(lines: list[BilledLine]) -> int:
    return sum(line.cost for line in lines)


def _quantity(lines: list[BilledLine]) -> int:
    return sum(line.quantity or 0 for line in lines)


def _comparable(before: list[BilledLine], after: list[BilledLine]) -> bool:
    lines = [*before, *after]
    same_unit = all(line.quantity is not None for line in lines) and len({line.unit for line in lines}) == 1
    return same_unit and _quantity(before) * _quantity(after) > 0


def _parts_by_method(lines: list[BilledLine]) -> dict[str, Fraction]:
    methods = {line.method for line in lines}
    return {
        each: Fraction(_cost([line for line in lines if line.method == each]), _cost(lines) or 1) for each in methods
    }


def _is_rounded(text: str, amount: Fraction) -> bool:
    """Return whether an amount in a text is another amount rounded to as many decimals."""
    places = len(text.partition(".")[2])
    return abs(amount_of(text) - amount) <= (Fraction(1, 2) + ROUNDING) * Fraction(f"1e-{places}")
