"""Entries of one entity and the same days, together: its one value, or its split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.category_sources.contract import CategoryEntry
from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.model.dated import Period

#: Problems beyond these are not listed.
MOST_PROBLEMS: Final = 100

#: The most entries of one file or source: a category holds no more.
MOST_ENTRIES: Final = 200_000
#: The most periods with different values of one entity.
MOST_PERIODS: Final = 100

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
        """Return the outcome; entities with the same outcome can share a rule."""
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
        ConfigurationError: an entity has two values on one day, percentages that do not sum to 100, or more than
            :data:`MOST_PERIODS` periods.
    """
    groups: dict[tuple[str, str, Period], list[CategoryEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.entity_type, entry.entity_id, entry.during), []).append(entry)
    problems: list[ConfigProblem] = []
    found = [_assignment(group, problems) for group in groups.values()]
    of_entities: dict[tuple[str, str], list[EntityAssignment]] = {}
    for each in found:
        of_entities.setdefault((each.entity_type, each.entity_id), []).append(each)
    for (entity_type, entity_id), of_one in of_entities.items():
        if len(of_one) > MOST_PERIODS:
            message = f"the {entity_type} {entity_id} has more than {MOST_PERIODS} periods"
            problems.append(ConfigProblem(of_one[MOST_PERIODS].place, message))
        else:
            problems += _overlaps(of_one)
    if problems:
        raise ConfigurationError(problems[:MOST_PROBLEMS])
    return found


def _overlaps(of_one: Sequence[EntityAssignment]) -> Iterator[ConfigProblem]:
    """Yield a problem for every assignment of an entity that begins before an earlier one ends."""
    last: tuple[int, EntityAssignment] | None = None
    for place, each in sorted(enumerate(of_one), key=lambda one: one[1].during.first or date.min):
        before = last
        if last is None or (each.during.end or date.max) > (last[1].during.end or date.max):
            last = place, each
        if before is None or not before[1].during.overlaps(each.during):
            continue
        earlier, later = sorted([before, (place, each)], key=lambda one: one[0])
        shown, known = later[1], earlier[1]
        yield ConfigProblem(
            shown.place,
            f"the {shown.entity_type} {shown.entity_id} has {_values(shown)} {shown.during}, and {_values(known)} "
            f"{known.during} ({known.place}); a day can have one of them: let one end where the other begins",
        )


def _values(assignment: EntityAssignment) -> str:
    shown = " and ".join(repr(value) for value, _ in assignment.parts)
    return f"the value {shown}" if len(assignment.parts) == 1 else f"the values {shown}"


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
