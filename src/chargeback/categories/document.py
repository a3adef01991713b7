"""The document of a cost category: an ordered, dated mapping of charges to values such as cost centres or teams.

A category has rules (the first that matches decides), a default for what no rule matches, optionally a register
of its values, and steps that hand the cost of a value on to others. Documents are parsed by
:mod:`chargeback.categories.parsing`; everything here is immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from chargeback.categories.matching import Match, Pattern, tests_of
from chargeback.model.dated import FOREVER, DatedValue, Period, value_on
from chargeback.model.inventory import UNALLOCATED, UNASSIGNED, UNTAGGED

#: What no value can be called, and what it stands for: costs that have none would be added to those of the value.
RESERVED: Final[Mapping[str, str]] = {UNALLOCATED: "costs without an identity", UNTAGGED: "rows without a tag"}
#: The targets of a step that are not listed: every other value with cost.
EVERY_VALUE: Final = "*"


@dataclass(frozen=True)
class Constant:
    """Assigns one value."""

    value: str


@dataclass(frozen=True)
class FromTag:
    """Assigns the value of the row's tag ``key``; does not apply to rows without it."""

    key: str


@dataclass(frozen=True)
class Template:
    """Assigns a text made from the named groups of the rule's regexes, such as ``${team}-shared``.

    ``pieces`` are literal texts and names of groups in turn, starting with a text.
    """

    pieces: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of groups that it needs."""
        return self.pieces[1::2]

    def __str__(self) -> str:
        return "".join(f"${{{piece}}}" if place % 2 else piece for place, piece in enumerate(self.pieces))


@dataclass(frozen=True)
class Split:
    """Assigns several values, each with a percentage; the percentages sum to 100 exactly."""

    percentages: tuple[tuple[str, Decimal], ...]


Assignment: TypeAlias = Constant | FromTag | Template | Split


@dataclass(frozen=True)
class Rule:
    """What matches, what it is assigned, and on which charge days."""

    match: Match
    assign: Assignment
    id: str | None = None
    during: Period = FOREVER
    reason: str | None = None


@dataclass(frozen=True)
class CategoryValue:
    """An entry of the register of values. ``gl`` holds finance's own ids by name. The ``parent`` and each of these ids
    have at most one value on a day."""

    key: str
    name: str | None = None
    parent: tuple[DatedValue, ...] = ()
    gl: tuple[tuple[str, tuple[DatedValue, ...]], ...] = ()
    contacts: tuple[str, ...] = ()
    during: Period = FOREVER

    def ledger_ids(self, day: date) -> dict[str, str]:
        """Return finance's ids on a day, by name."""
        found = ((name, value_on(ids, day)) for name, ids in self.gl)
        return {name: value for name, value in found if value is not None}


@dataclass(frozen=True)
class Handover:
    """A step of ``share``: the cost of ``source`` is reallocated to its targets.

    ``targets`` is None for every other value with cost. ``percentages`` belong to ``fixed``, whose targets they name;
    ``metric`` belongs to ``usage``. ``fees`` are monthly amounts that some values get first; the others share the rest,
    which without ``by`` stays with the source.
    """

    source: str
    targets: tuple[str, ...] | None
    by: Literal["proportional", "even", "fixed", "usage"] | None
    percentages: tuple[tuple[str, Decimal], ...] = ()
    metric: str | None = None
    fees: tuple[tuple[str, tuple[DatedValue, ...]], ...] = ()

    def __str__(self) -> str:
        """Return how the cost is divided, in words of the document."""
        by = f"usage({self.metric})" if self.by == "usage" else self.by
        return ", ".join(filter(None, ["monthly" if self.fees else None, by]))


@dataclass(frozen=True)
class Hierarchy:
    """What values belong to ``during`` some days."""

    during: Period
    parents: Mapping[str, str]

    def path(self, value: str) -> tuple[str, ...]:
        """Return the value, its parent, the parent's parent and so on."""
        path = [value]
        while (parent := self.parents.get(path[-1])) is not None:
            path.append(parent)
        return tuple(path)

    def at_level(self, value: str, level: int) -> str:
        """Return the ancestor ``level`` levels above ``value``; where the path is shorter, its last value."""
        path = self.path(value)
        return path[min(level, len(path) - 1)]


@dataclass(frozen=True)
class CostCategory:
    """A cost category; ``values`` is empty if it has no register and therefore takes any value. ``sets`` are patterns
    that rules name."""

    key: str
    default: str = UNASSIGNED
    values: tuple[CategoryValue, ...] = ()
    rules: tuple[Rule, ...] = ()
    share: tuple[Handover, ...] = ()
    sets: tuple[tuple[str, Pattern], ...] = ()

    @cached_property
    def register(self) -> Mapping[str, CategoryValue]:
        """The entries of the register by key."""
        return {value.key: value for value in self.values}

    @cached_property
    def matches_names(self) -> bool:
        """Whether a rule looks at what only the inventory knows: display names, and what lies in which cluster."""
        return any(test.subject in {"display_name", "cluster"} for rule in self.rules for test in tests_of(rule.match))

    def knows(self, value: str) -> bool:
        """Return whether rules may assign ``value``: it is in the register, or there is none."""
        if value == self.default:
            return True
        return value in self.register if self.values else value != UNASSIGNED

    def validity(self, value: str) -> Period:
        """Return the days on which ``value`` may be assigned."""
        entry = self.register.get(value)
        return entry.during if entry else FOREVER

    @cached_property
    def hierarchies(self) -> tuple[Hierarchy, ...]:
        """The parents of the values, for periods that cover all of time in order."""
        dated = [(value.key, each) for value in self.values for each in value.parent]
        days = {day for _, each in dated for day in (each.during.first, each.during.end) if day is not None}
        periods = (Period(*each) for each in pairwise([None, *sorted(days), None]))
        return tuple(
            Hierarchy(period, {key: each.value for key, each in dated if each.during.overlaps(period)})
            for period in periods
        )

    def path(self, value: str, day: date) -> tuple[str, ...]:
        """Return a value, its parent on a day, the parent's parent and so on."""
        return next(each for each in self.hierarchies if day in each.during).path(value)

    def rule_id(self, place: int) -> str:
        """Return the id of a rule; one without an id is named by its place, ``rules[3]``."""
        return self.rules[place].id or f"rules[{place}]"
