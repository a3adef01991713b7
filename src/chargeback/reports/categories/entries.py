"""Rules of a cost category as entries of single entities, and back: for CSV files and for imports.

A rule is a list of entries if it names identities, resources or topics by their exact ids and assigns a value or a
split. Entries become rules again: those with the same outcome and the same dates become one rule, unless this would
change the order of the rules of an entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby
from typing import Final

from chargeback.categories.document import CategoryValue, Constant, CostCategory, Rule, Split
from chargeback.categories.matching import Pattern, Test
from chargeback.categories.parsing import parse_category, to_document
from chargeback.category_sources.contract import ENTITY_TYPES, SourceContent
from chargeback.category_sources.csv_file import COLUMNS
from chargeback.category_sources.entries import EntityAssignment, assignments_of
from chargeback.errors import CategoryError, ConfigProblem, ConfigurationError
from chargeback.model.dated import DatedValue, Period
from chargeback.store.queries.sql_format import END_OF_LINE, csv_field

#: The maximum number of entities in a rule.
_MOST_ENTITIES: Final = 5000
_MAX_ID_LENGTH: Final = 240
_PLACE: Final = re.compile(r"rules\[(\d+)\](?:\.match\.\w+(?:\.exact)?\[(\d+)\])?")

_Unit = tuple[str, str, object, object]


@dataclass
class _Group:
    """The entities of one rule, and the id and reason that it keeps from a former rule."""

    like: EntityAssignment
    id: str | None
    reason: str | None
    entities: list[EntityAssignment] = field(default_factory=list)

    def rule(self) -> Rule:
        """Return the rule."""
        names = tuple(("exact", each.entity_id) for each in self.entities)
        parts = self.like.parts
        assign = Constant(parts[0][0]) if len(parts) == 1 else Split(tuple(sorted(parts)))
        match = Test(self.like.entity_type, Pattern(names))  # type: ignore[arg-type] # "exact" is a kind
        return Rule(match, assign, self.id, self.like.during, self.reason)


def assignments_in(rule: Rule) -> list[EntityAssignment]:
    """Return the assignments of a rule to single entities; empty for other rules."""
    match, assign = rule.match, rule.assign
    if not isinstance(match, Test) or match.subject not in ENTITY_TYPES or match.pattern is None:
        return []
    if any(kind != "exact" for kind, _ in match.pattern.alternatives):
        return []
    if isinstance(assign, Constant):
        parts: tuple[tuple[str, Decimal], ...] = ((assign.value, Decimal(100)),)
    elif isinstance(assign, Split):
        parts = assign.percentages
    else:
        return []
    return [EntityAssignment(match.subject, name, parts, rule.during) for _, name in match.pattern.alternatives]


def category_csv(category: CostCategory) -> str:
    """Return the rules that a CSV file can represent as such a file; if two rules name one entity on a day, the
    first."""
    lines = [",".join(COLUMNS)]
    for each, _ in _assignments(category):
        for entry in each.entries():
            percent = "" if entry.percent is None else format(entry.percent.normalize(), "f")
            days = ["" if day is None else day.isoformat() for day in (each.during.first, each.during.end)]
            names = (entry.entity_type, entry.entity_id, entry.value)
            lines.append(",".join([*map(csv_field, names), percent, *days]))
    return "".join(f"{line}{END_OF_LINE}" for line in lines)


def with_csv(category: CostCategory, content: SourceContent) -> CostCategory:
    """Return the category with the entries of a CSV file before all rules that such a file cannot represent. Rules
    whose entities are in the file with the same value and days keep their id and reason.

    Raises:
        ConfigurationError: with every mistake, by its place in the file.
    """
    found = assignments_of(content.entries)
    former = {_unit(each): rule for each, rule in _assignments(category)}
    if [_unit(each) for each in found] == list(former):
        return category
    groups = _grouped(found, former.get)
    others = [rule for rule in category.rules if not assignments_in(rule)]
    _free_ids(groups, {rule.id for rule in others})
    return _checked(replace(category, rules=(*(group.rule() for group in groups), *others)), groups, 0)


def with_import(category: CostCategory, source: str, content: SourceContent, *, is_new: bool) -> CostCategory:
    """Return the category with the entries of a source as rules, whose ids begin with the source's name. They replace
    the rules of an earlier import from it, at the same position, or follow all others.

    Values are added to the register if there is one, or if the category ``is_new`` and the source has a register;
    present entries of the register stay as they are.

    Raises:
        ConfigurationError: with every mistake, by its place in the source.
    """
    groups = _grouped(assignments_of(content.entries), lambda _: None)
    own = f"{source}:"
    taken = {rule.id for rule in category.rules if not (rule.id or "").startswith(own)}
    for group in groups:
        group.id = _new_id(own, group.like, taken)
    places = [place for place, rule in enumerate(category.rules) if (rule.id or "").startswith(own)]
    kept = [rule for rule in category.rules if not (rule.id or "").startswith(own)]
    at = places[0] if places else len(kept)
    rules = (*kept[:at], *(group.rule() for group in groups), *kept[at:])
    values = category.values
    if values or (is_new and content.values):
        values = _registered(category, content, groups)
    return _checked(replace(category, rules=rules, values=values), groups, at)


def _assignments(category: CostCategory) -> list[tuple[EntityAssignment, Rule]]:
    """Return the assignments to single entities with their rules, each on the days that no earlier rule has."""
    found: list[tuple[EntityAssignment, Rule]] = []
    taken: dict[tuple[str, str], list[Period]] = {}
    for rule in category.rules:
        for each in assignments_in(rule):
            before = taken.setdefault((each.entity_type, each.entity_id), [])
            left = [each.during]
            for days in before:
                left = [piece for period in left for piece in period.without(days)]
            found += [(replace(each, during=during), rule) for during in left]
            before += left
    return found


def _unit(each: EntityAssignment) -> _Unit:
    return each.entity_type, each.entity_id, tuple(sorted(each.parts)), each.during


def _grouped(found: Iterable[EntityAssignment], former: Callable[[_Unit], Rule | None]) -> list[_Group]:
    """Return the assignments grouped by outcome, in an order with the same result: it matters between entities of
    different types, because a row has several."""
    groups: list[_Group] = []
    for _, run in groupby(found, key=lambda each: each.entity_type):
        places: dict[object, _Group] = {}
        for each in run:
            rule = former(_unit(each))
            kept = (None, None) if rule is None else (rule.id, rule.reason)
            label = (_unit(each)[2:], kept)
            if label not in places or len(places[label].entities) >= _MOST_ENTITIES:
                places[label] = _Group(each, *kept)
                groups.append(places[label])
            places[label].entities.append(each)
    return groups


def _free_ids(groups: Sequence[_Group], taken: set[str | None]) -> None:
    """Remove the ids of groups that another rule has."""
    for group in groups:
        if group.id in taken:
            group.id = None
        taken.add(group.id)


def _new_id(own: str, like: EntityAssignment, taken: set[str | None]) -> str:
    """Return an id for an imported rule that describes its assignment, and add it to those taken."""
    base = f"{own}{like.entity_type}:{'+'.join(value for value, _ in like.parts)}"[:_MAX_ID_LENGTH].strip()
    found, number = base, 1
    while found in taken:
        number += 1
        found = f"{base}:{number}"
    taken.add(found)
    return found


def _registered(category: CostCategory, content: SourceContent, groups: Iterable[_Group]) -> tuple[CategoryValue, ...]:
    """Return the register with the values of a source that are not in it yet."""
    known = dict(category.register)
    for value in content.values:
        parent = () if value.parent is None else (DatedValue(value.parent),)
        known.setdefault(value.key, CategoryValue(value.key, value.name, parent))
    for group in groups:
        for key, _ in group.like.parts:
            if key != category.default:
                known.setdefault(key, CategoryValue(key))
    return tuple(known[key] for key in sorted(known))


def _checked(category: CostCategory, groups: Sequence[_Group], first: int) -> CostCategory:
    """Return the category as parsed from its document; problems of generated rules are reported at their places in the
    source."""
    try:
        return parse_category(category.key, to_document(category))
    except CategoryError as error:
        raise ConfigurationError(list(_at_their_places(error, groups, first))) from None


def _at_their_places(error: CategoryError, groups: Sequence[_Group], first: int) -> Iterator[ConfigProblem]:
    for problem in error.problems:
        found = _PLACE.match(problem.path)
        number = int(found[1]) - first if found else -1
        if found and 0 <= number < len(groups):
            entities = groups[number].entities
            yield ConfigProblem(entities[int(found[2] or 0)].place, problem.message)
        else:
            yield ConfigProblem(problem.path, problem.message)
