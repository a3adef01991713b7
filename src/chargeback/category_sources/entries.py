"""Entries of one entity and the same days, together: its one value, or its split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.category_sources.contract import CategoryEntry
from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.model.dated import Period

#: Problems beyond these are not listed.
MOST_PROBLEMS: Final = 100

_WHOLE: Final = Decimal(100)


@dataclass(frozen=True)
class EntityAssignment:
    """What one entity is assigned on some days: ``parts`` are (value, percentage), one of 100 if nothing is split."""

    entity_type: str
    entity_id: str
    parts: tuple[tuple[str, Decimal], ...]
    during: Period
    place: str = ""

    @property
    def outcome(self) -> tuple[str, tuple[tuple[str, Decimal], ...], Period]:
        """What entities have in common that one rule can name."""
        return self.entity_type, self.parts, self.during

    def entries(self) -> list[CategoryEntry]:
        """Return the entries that say the same."""
        is_split = len(self.parts) > 1
        return [
            CategoryEntry(self.entity_type, self.entity_id, value, percent if is_split else None, self.during)
            for value, percent in self.parts
        ]


def assignments_of(entries: Iterable[CategoryEntry]) -> list[EntityAssignment]:
    """Return the entries by entity and days, in the order in which each of these is first named.

    Raises:
        ConfigurationError: an entity has two values on the same days, or percentages that do not sum to 100.
    """
    groups: dict[tuple[str, str, Period], list[CategoryEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.entity_type, entry.entity_id, entry.during), []).append(entry)
    problems: list[ConfigProblem] = []
    found = [_assignment(group, problems) for group in groups.values()]
    if problems:
        raise ConfigurationError(problems[:MOST_PROBLEMS])
    return found


def _assignment(group: Sequence[CategoryEntry], problems: list[ConfigProblem]) -> EntityAssignment:
    first = group[0]
    parts = tuple((entry.value, _WHOLE if entry.percent is None else entry.percent) for entry in group)
    name = f"the {first.entity_type} {first.entity_id}"
    seen: dict[str, CategoryEntry] = {}
    for entry in group:
        before = seen.setdefault(entry.value, entry)
        if before is not entry:
            problems.append(
                ConfigProblem(entry.place, f"{name} has the value {entry.value!r} already ({before.place})")
            )
        elif entry.percent is None and entry is not first:
            problems.append(
                ConfigProblem(
                    entry.place,
                    f"{name} has the value {first.value!r} on the same days ({first.place}); give both a percent to "
                    "split its cost, or other days",
                )
            )
        elif entry.percent is not None and not 0 < entry.percent <= _WHOLE:
            problems.append(ConfigProblem(entry.place, "percent should be above 0 and at most 100"))
    total = sum((Fraction(percent) for _, percent in parts), Fraction())
    if len(seen) == len(group) and all(entry.percent is not None for entry in group) and total != _WHOLE:
        problems.append(
            ConfigProblem(
                group[-1].place, f"the percentages of {name} on these days sum to {_shown(total)}, not to 100"
            )
        )
    return EntityAssignment(first.entity_type, first.entity_id, parts, first.during, first.place)


def _shown(total: Fraction) -> str:
    """Return a sum of decimals, which is one."""
    shown = Decimal(total.numerator) / Decimal(total.denominator)
    return format(shown.normalize(), "f")
