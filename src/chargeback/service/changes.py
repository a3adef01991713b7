"""What changed between two ranges of days, and why: differences as sums of effects, each told in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chargeback.model.days import InstantRange
from chargeback.model.effects import (
    CALENDAR,
    EFFECTS,
    GONE,
    NEW,
    OWNERSHIP,
    POLICY,
    PRICE,
    QUANTITY,
    SHARE,
    Charged,
    effects,
)
from chargeback.model.money import difference, from_units, part_of, total
from chargeback.service.wording import money_text
from chargeback.store.queries.changes import compared_charges
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import Key

#: What an effect means, if it adds to the amount and if it takes from it.
_REASONS: Final = {
    CALENDAR: ("more days have costs", "fewer days have costs"),
    QUANTITY: ("larger quantities were billed", "smaller quantities were billed"),
    PRICE: ("the same costs more", "the same costs less"),
    POLICY: ("costs were split in another way", "costs were split in another way"),
    SHARE: ("its part of the usage grew", "its part of the usage shrank"),
    OWNERSHIP: ("its part as an owner or member grew", "its part as an owner or member shrank"),
    NEW: ("some of it was not billed before", "some of it was not billed before"),
    GONE: ("some of it is no longer billed", "some of it is no longer billed"),
}
_ONE_CENT: Final = Decimal("0.01")


@dataclass(frozen=True)
class Change:
    """What changed for one combination of values, or for several together.

    Attributes:
        key: the values; empty for several together.
        before: the amount of the earlier range.
        after: the amount of the later one.
        effects: every effect by its name, zero if there is none; they sum to :attr:`delta`.
    """

    key: Key
    before: Decimal
    after: Decimal
    effects: Mapping[str, Decimal]

    @property
    def delta(self) -> Decimal:
        """The amount after minus the amount before."""
        return difference(self.after, self.before)

    def per_day(self, days: tuple[int, int]) -> tuple[Decimal | None, Decimal | None]:
        """Return the amounts per day with costs, rounded to twelve places; None where there is no such day."""
        before, after = days
        return part_of(self.before, before), part_of(self.after, after)

    def sentence(self, currency: str) -> str:
        """Return what changed and why, the largest effect first; effects of less than a cent are left out where there
        are larger ones."""
        largest = sorted(
            (item for item in self.effects.items() if item[1]), key=lambda item: item[1].copy_abs(), reverse=True
        )
        worth_telling = [item for item in largest if item[1].copy_abs() >= _ONE_CENT] or largest
        if not worth_telling:
            return "Nothing changed."
        reasons = [(_signed(amount), _REASONS[name][amount < 0]) for name, amount in worth_telling]
        if len(reasons) == 1:
            return f"{_signed(self.delta, currency)} because {reasons[0][1]}."
        parts = ", ".join(f"{amount} because {reason}" for amount, reason in reasons)
        return f"{_signed(self.delta, currency)}: {parts}."


@dataclass(frozen=True)
class Changes:
    """The changes of everything selected, the largest first, and how many days with costs both ranges have."""

    items: Sequence[Change]
    days: tuple[int, int]


def changes(reader: TenantReader, selection: Selection, before: InstantRange, by: Sequence[str]) -> Changes:
    """Return what changed since the range ``before``, by columns or ``tag:<key>``.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    found = compared_charges(reader, selection, before, by)
    items = [_change(key, parts, found.days) for key, parts in found.parts.items()]
    items.sort(key=lambda item: (-item.delta.copy_abs(), [value or "" for value in item.key]))
    return Changes(items, found.days)


def together(items: Iterable[Change]) -> Change:
    """Return some changes as one."""
    each = list(items)
    return Change(
        (),
        total(item.before for item in each),
        total(item.after for item in each),
        {name: total(item.effects[name] for item in each) for name in EFFECTS},
    )


def _change(key: Key, parts: Iterable[tuple[Charged, Charged]], days: tuple[int, int]) -> Change:
    before = after = 0
    sums: Counter[str] = Counter()
    for earlier, later in parts:
        before += earlier.amount
        after += later.amount
        sums.update(effects(earlier, later, days))
    return Change(key, from_units(before), from_units(after), {name: from_units(sums[name]) for name in EFFECTS})


def _signed(amount: Decimal, currency: str = "") -> str:
    return f"{'' if amount < 0 else '+'}{money_text(amount, currency)}"
