"""The values of one tag key of one entity, one after the other: where a new one goes, and what it does to the others.

No two of them hold on the same day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Final

from chargeback.errors import TagConflict
from chargeback.model.dated import FOREVER, DatedValue, Period

#: How many of the values of a key an error names.
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class HeldTag:
    """A stored tag or, without ``tag_id``, one that is to be stored."""

    tag_id: int | None
    held: DatedValue

    @property
    def during(self) -> Period:
        """The days on which it holds."""
        return self.held.during


class Effect(Enum):
    """What became of a value that was written."""

    CREATED = "created"
    UPDATED = "updated"
    SKIPPED = "skipped"


class OnExisting(Enum):
    """What is done with the values that a key already has."""

    KEEP = "keep"
    """A value without dates is skipped; one with dates is added to them, and must not overlap them."""
    CHANGE = "change"
    """The value that begins on the same day is changed, and one from before ends where the new one begins."""
    REPLACE = "replace"
    """All of them are replaced."""


def place_value(
    name: str, held: Sequence[HeldTag], new: DatedValue, existing: OnExisting
) -> tuple[tuple[HeldTag, ...], Effect]:
    """Return the values of a key after ``new`` was written, ascending, and the outcome of the write. ``name`` says in
    errors which key of which entity it is: ``team of the identity sa-1``.

    Raises:
        TagConflict: two values would hold on the same day, or several values match an ambiguous one.
    """
    if not held:
        return (HeldTag(None, new),), Effect.CREATED
    if existing is OnExisting.REPLACE:
        return (HeldTag(held[-1].tag_id, new),), Effect.UPDATED
    if new.during == FOREVER:
        return _place_undated(name, held, new, existing)
    return _place_dated(name, held, new, existing)


def first_day(period: Period) -> date:
    """Return a period's first day for sorting; what has none begins before everything else."""
    return period.first or date.min


def _place_undated(
    name: str, held: Sequence[HeldTag], new: DatedValue, existing: OnExisting
) -> tuple[tuple[HeldTag, ...], Effect]:
    """Change the only value, whose dates stay."""
    if existing is OnExisting.KEEP:
        return tuple(held), Effect.SKIPPED
    if len(held) > 1:
        named = ", ".join(f"{each.held.value!r} {each.during}" for each in held[:_MOST_NAMED])
        more = f" and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
        raise TagConflict(
            f"{name} has several values: {named}{more}; name one by its valid_from, begin another one with a new "
            "valid_from, or set replace_periods to replace all of them."
        )
    (only,) = held
    return (HeldTag(only.tag_id, DatedValue(new.value, only.during)),), Effect.UPDATED


def _place_dated(
    name: str, held: Sequence[HeldTag], new: DatedValue, existing: OnExisting
) -> tuple[tuple[HeldTag, ...], Effect]:
    first, end = new.during.first, new.during.end
    changes = existing is OnExisting.CHANGE
    same = next((each for each in held if each.during.first == first), None)
    if same is not None and same.during == new.during and not changes:
        return tuple(held), Effect.SKIPPED
    if same is not None and changes:
        written = HeldTag(same.tag_id, DatedValue(new.value, Period(first, end or same.during.end)))
        others = [each for each in held if each is not same]
        return _together(name, others, written, changes=True), Effect.UPDATED
    written = HeldTag(None, new)
    former = next((each for each in held if each.during.overlaps(new.during)), None)
    if former is None:
        return _together(name, held, written, changes=changes), Effect.CREATED
    around = held
    if changes and first is not None and first in former.during and _ends_by(former.during.end, end):
        ended = HeldTag(former.tag_id, DatedValue(former.held.value, Period(former.during.first, first)))
        around = [ended if each is former else each for each in held]
    return _together(name, around, written, changes=changes), Effect.UPDATED


def _ends_by(end: date | None, other: date | None) -> bool:
    return other is None or (end is not None and end <= other)


def _together(name: str, others: Sequence[HeldTag], new: HeldTag, *, changes: bool) -> tuple[HeldTag, ...]:
    """Return all in order.

    Raises:
        TagConflict: one of the others overlaps the new one.
    """
    for each in others:
        if each.during.overlaps(new.during):
            raise TagConflict(
                f"{name} cannot be {new.held.value!r} {new.during}: it is {each.held.value!r} {each.during}; "
                + ("choose other dates, or remove that one first." if changes else _HOW_TO_CHANGE)
            )
    return tuple(sorted([*others, new], key=lambda each: first_day(each.during)))


_HOW_TO_CHANGE: Final = "to end it where the new value begins, use PUT with valid_from, or override_existing."
