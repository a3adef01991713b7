"""Reads the document of a cost category, and reports everything that is wrong with it at once.

A document is plain data, as YAML or JSON gives it: the mapping below a category's key, with ``default``, ``values``,
``sets``, ``rules`` and ``share``. Its canonical form comes from :func:`chargeback.categories.canonical.to_document`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from chargeback.categories.canonical import to_document
from chargeback.categories.cycles import arrow_path, cycles
from chargeback.categories.document import (
    EVERY_VALUE,
    RESERVED,
    Assignment,
    CategoryValue,
    Constant,
    CostCategory,
    FromTag,
    Handover,
    Rule,
    Split,
    Template,
)
from chargeback.categories.matching import Match, Pattern, capturing_tests, tests_of
from chargeback.categories.reading import MAX_REGEXES_SIZE, Reader, shown, too_large_in_all
from chargeback.categories.reading_matches import read_match, read_pattern, too_large
from chargeback.categories.regex import compiled_size
from chargeback.errors import CategoryError, CategoryProblem
from chargeback.model.dated import FOREVER, DatedValue
from chargeback.model.inventory import UNASSIGNED

__all__ = ["MAX_RULES", "MAX_VALUES", "parse_category", "to_document", "warnings_of"]

MAX_RULES: Final = 5_000
MAX_VALUES: Final = 10_000
MAX_SETS: Final = 1_000
MAX_REASON: Final = 2_000
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_GROUP = re.compile(r"\$\{([^{}$]+)\}")
_USAGE = re.compile(r"usage\(\s*([a-z][a-z0-9_]{0,254})\s*\)")
_RULE_PATH = re.compile(r"rules\[[0-9]+\]")
_BY: Final = "proportional, even, usage(metric) such as usage(bytes_in), or fixed: {value: percentage}"


def parse_category(key: str, document: object, *, is_stored: bool = False) -> CostCategory:
    """Return the category ``key`` as its document describes it. One that ``is_stored`` may have values with reserved
    names, and regexes of any size, which earlier versions allowed; :func:`warnings_of` reports them.

    Raises:
        CategoryError: the document is not valid; it has every problem.
    """
    reader = Reader(is_stored=is_stored)
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        message = "should start with a letter and have at most 64 letters, digits, _ or -"
        reader.problem("", f"the key {shown(key)} {message}")
    category = _Parser(reader).category(key, document)
    if reader.problems:
        raise CategoryError(tuple(dict.fromkeys(reader.problems)))
    return category


def warnings_of(category: CostCategory) -> list[CategoryProblem]:
    """Return what is allowed but probably not meant: values that differ only in case, reserved names, and
    regexes that are too large."""
    first: dict[str, str] = {}
    warnings: dict[str, CategoryProblem] = {}
    for value, path in _written_values(category):
        known = first.setdefault(value.casefold(), value)
        if known != value and value not in warnings:
            warnings[value] = CategoryProblem(path, f"the values {known} and {value} differ only in case")
        if value in RESERVED:
            warnings.setdefault(value, CategoryProblem(path, _reserved(value)))
    return [*warnings.values(), *_large_regexes(category)]


def _large_regexes(category: CostCategory) -> Iterator[CategoryProblem]:
    whole = 0
    for place, rule in enumerate(category.rules):
        patterns = [test.pattern for test in tests_of(rule.match) if test.pattern is not None]
        regexes = [text for each in patterns for kind, text in each.alternatives if kind == "regex"]
        whole += sum(map(compiled_size, regexes))
        if wrong := next(filter(None, map(too_large, regexes)), None):
            yield CategoryProblem(f"rules[{place}].match", wrong)
    if whole > MAX_REGEXES_SIZE:
        yield CategoryProblem("rules", too_large_in_all())


def _reserved(value: str) -> str:
    return f"{value} stands for {RESERVED[value]}, which would be added to those of the value; choose another name"


def _written_values(category: CostCategory) -> Iterator[tuple[str, str]]:
    """Yield (value, path) of every value that the document names."""
    yield category.default, "default"
    for entry in category.values:
        yield entry.key, f"values.{entry.key}"
    for place, rule in enumerate(category.rules):
        if isinstance(rule.assign, Constant):
            yield rule.assign.value, f"rules[{place}].assign"
        elif isinstance(rule.assign, Split):
            yield from ((value, f"rules[{place}].split.{value}") for value, _ in rule.assign.percentages)
    for place, step in enumerate(category.share):
        yield step.source, f"share[{place}].from"
        yield from ((value, f"share[{place}].to") for value in step.targets or ())


class _Parser:
    """Reads the parts of a document, top down; needs the default and the register to judge what follows."""

    def __init__(self, reader: Reader) -> None:
        self._read = reader
        self._default = UNASSIGNED
        self._register: frozenset[str] = frozenset()
        self._known_values: list[str] = []

    def category(self, key: str, document: object) -> CostCategory:
        parts = self._read.mapping(document, "", ("default", "values", "sets", "rules", "share"))
        if "default" in parts:
            self._default = self._name(parts["default"], "default") or UNASSIGNED
        values = self._values(_given(parts, "values", {}))
        sets = self._sets(_given(parts, "sets", {}))
        rules = self._rules(_given(parts, "rules", []))
        share = self._share(_given(parts, "share", []))
        return CostCategory(key, self._default, values, rules, share, sets)

    def _sets(self, document: object) -> tuple[tuple[str, Pattern], ...]:
        found = [
            (name, read_pattern(self._read, value, path))
            for name, value, path in self._read.entries(document, "sets", MAX_SETS, "names to texts or lists of them")
        ]
        read = {name: pattern for name, pattern in found if pattern is not None}
        read = dict(sorted(read.items()))
        self._read.sets = read
        return tuple(read.items())

    def _values(self, document: object) -> tuple[CategoryValue, ...]:
        if isinstance(document, dict):  # before the entries are read: parents may come later in the document
            self._register = frozenset(key for key in document if isinstance(key, str))
            self._known_values = sorted(self._register)
        found = [
            self._value(*entry)
            for entry in self._read.entries(document, "values", MAX_VALUES, "values to their entries")
        ]
        self._check_parents(found)
        return tuple(sorted(found, key=lambda value: value.key))

    def _check_parents(self, values: Sequence[CategoryValue]) -> None:
        # Without a cycle of all parents together there is none on any day.
        if next(cycles({value.key: tuple(each.value for each in value.parent) for value in values}), None) is None:
            return
        for each in CostCategory("", values=tuple(values)).hierarchies:
            for cycle in cycles({key: (parent,) for key, parent in each.parents.items()}):
                when = "" if each.during == FOREVER else f" {each.during}"
                self._read.problem(f"values.{cycle[0]}.parent", f"the parents form a cycle{when}: {arrow_path(cycle)}")

    def _value(self, key: str, document: object, path: str) -> CategoryValue:
        self._name(key, path)
        known = ("name", "parent", "gl", "contacts", "valid_from", "valid_to")
        entry = {} if document is None else self._read.mapping(document, path, known)
        if key == self._default and not {"valid_from", "valid_to"}.isdisjoint(entry):
            self._read.problem(path, "is the default, which holds on every day; remove valid_from and valid_to")
        return CategoryValue(
            key,
            self._optional_text(entry, "name", path),
            self._dated(entry["parent"], f"{path}.parent", self._known) if "parent" in entry else (),
            self._ledger(_given(entry, "gl", {}), f"{path}.gl"),
            self._contacts(_given(entry, "contacts", []), f"{path}.contacts"),
            self._read.period(entry, path),
        )

    def _ledger(self, document: object, path: str) -> tuple[tuple[str, tuple[DatedValue, ...]], ...]:
        found = [
            (key, self._dated(value, at, self._read.text))
            for key, value, at in self._read.entries(document, path, 20, "names to texts")
        ]
        return tuple(sorted((key, values) for key, values in found if values))

    def _dated(self, document: object, path: str, read: Callable[[object, str], str | None]) -> tuple[DatedValue, ...]:
        """Return a text that always holds, or those of a list with the days on which each holds, in their order."""
        if not isinstance(document, list):
            value = read(document, path)
            return () if value is None else (DatedValue(value),)
        found: dict[str, DatedValue] = {}
        for each, at in self._read.items(document, path, 100, "a text, or a list of values with dates"):
            fields = self._read.mapping(each, at, ("value", "valid_from", "valid_to"))
            value = read(fields.get("value"), f"{at}.value") if isinstance(each, dict) else None
            during = self._read.period(fields, at)
            if first := next((place for place, other in found.items() if other.during.overlaps(during)), None):
                self._read.problem(at, f"holds on days on which {first} holds already; give it valid_from or valid_to")
            elif value is not None:
                found[at] = DatedValue(value, during)
        if not document:
            self._read.problem(path, "should not be empty")
        return tuple(sorted(found.values(), key=lambda value: value.during.first or date.min))

    def _contacts(self, document: object, path: str) -> tuple[str, ...]:
        found = [self._read.text(each, at) for each, at in self._read.items(document, path, 50, "a list of texts")]
        return tuple(each for each in found if each is not None)

    def _rules(self, document: object) -> tuple[Rule, ...]:
        places: dict[str, str] = {}
        rules = []
        for each, path in self._read.items(document, "rules", MAX_RULES, "a list of rules"):
            if (rule := self._rule(each, path)) is None:
                continue
            if rule.id is not None and (first := places.setdefault(rule.id, path)) != path:
                self._read.problem(f"{path}.id", f"{first} has the id {rule.id} already; ids are unique")
            rules.append(rule)
        return tuple(rules)

    def _rule(self, document: object, path: str) -> Rule | None:
        known = ("id", "match", "assign", "split", "valid_from", "valid_to", "reason")
        fields = self._read.mapping(document, path, known)
        if not isinstance(document, dict):
            return None
        rule_id = self._optional_text(fields, "id", path)
        if rule_id is not None and _RULE_PATH.fullmatch(rule_id):
            self._read.problem(f"{path}.id", f"{rule_id} is how a rule without an id is named; choose another id")
        match = read_match(self._read, fields["match"], f"{path}.match") if "match" in fields else None
        if "match" not in fields:
            self._read.problem(f"{path}.match", "this key is required")
        assign = self._assignment(fields, path, match)
        during = self._read.period(fields, path)
        reason = self._optional_text(fields, "reason", path, MAX_REASON)
        return None if match is None or assign is None else Rule(match, assign, rule_id, during, reason)

    def _assignment(self, fields: dict[str, Any], path: str, match: Match | None) -> Assignment | None:
        if ("assign" in fields) == ("split" in fields):
            both = "has both assign and split; keep one of them"
            self._read.problem(path, both if "assign" in fields else "needs assign or split")
            return None
        if "split" in fields:
            return self._split(fields["split"], f"{path}.split")
        assign, path = fields["assign"], f"{path}.assign"
        if isinstance(assign, dict):
            tag = self._read.mapping(assign, path, ("from_tag",))
            if not assign:
                self._read.problem(path, "should be a value, or {from_tag: key}")
            key = self._read.text(tag["from_tag"], f"{path}.from_tag") if tag else None
            return FromTag(key) if key is not None else None
        if isinstance(assign, str) and "${" in assign:
            return self._template(assign, path, match)
        value = self._known(assign, path)
        return Constant(value) if value is not None else None

    def _split(self, document: object, path: str) -> Split | None:
        percentages = self._read.percentages(document, path)
        for value, _ in percentages:
            self._known(value, f"{path}.{value}")
        if isinstance(document, dict) and len(document) < 2:
            self._read.problem(path, "needs at least two values; for one, use assign")
        return Split(percentages) if percentages else None

    def _template(self, text: str, path: str, match: Match | None) -> Template | None:
        pieces = _GROUP.split(text)
        if self._read.text(text, path) is None:
            return None
        if any("${" in literal for literal in pieces[::2]):
            self._read.problem(path, "a group is written ${name}")
            return None
        if match is not None:
            self._groups_exist(pieces[1::2], match, path)
        return Template(tuple(pieces))

    def _groups_exist(self, groups: Iterable[str], match: Match, path: str) -> None:
        usable = {name for test in capturing_tests(match) if test.pattern for name in test.pattern.groups}
        below_not = {name for test in tests_of(match) if test.pattern for name in test.pattern.groups} - usable
        for group in dict.fromkeys(groups):
            if group in below_not:
                self._read.problem(path, f"the group {group} is below not, where nothing is captured")
            elif group not in usable:
                hint = self._read.suggestion(group, usable) or f"; name one with (?P<{group}>…)"
                self._read.problem(path, f"no regex of the match has a group {group}{hint}")

    def _share(self, document: object) -> tuple[Handover, ...]:
        places: dict[str, str] = {}
        steps = []
        for each, path in self._read.items(document, "share", 1000, "a list of steps"):
            if (step := self._step(each, path)) is None:
                continue
            if (first := places.setdefault(step.source, path)) != path:
                self._read.problem(f"{path}.from", f"{step.source} hands on its cost in {first} already")
            steps.append(step)
        targets: dict[str, tuple[str, ...]] = {}
        for step in steps:
            targets.setdefault(step.source, (*(step.targets or ()), *(value for value, _ in step.fees)))
        for cycle in cycles(targets):
            self._read.problem(places[cycle[0]], f"the steps form a cycle: {arrow_path(cycle)}")
        return tuple(steps)

    def _step(self, document: object, path: str) -> Handover | None:
        fields = self._read.mapping(document, path, ("from", "to", "by", "monthly"))
        if not isinstance(document, dict):
            return None
        has_fees_only = "monthly" in fields and fields.keys() <= {"from", "monthly"}
        required = () if has_fees_only else ("by",) if isinstance(fields.get("by"), dict) else ("to", "by")
        for name in ("from", *required):
            if name not in fields:
                self._read.problem(f"{path}.{name}", "this key is required")
        source = self._known(fields["from"], f"{path}.from") if "from" in fields else None
        fees = self._fees(fields["monthly"], f"{path}.monthly") if "monthly" in fields else ()
        if has_fees_only:
            step: Handover | None = Handover(source or "", (), None)
        elif isinstance(fields.get("by"), dict):
            step = self._fixed(source or "", fields, path)
        else:
            step = self._listed(source or "", fields, path)
        return None if source is None or step is None else replace(step, fees=fees)

    def _fees(self, document: object, path: str) -> tuple[tuple[str, tuple[DatedValue, ...]], ...]:
        if document == {}:
            self._read.problem(path, "should not be empty")
        found = [
            (self._known(value, at), self._dated(amount, at, self._read.amount))
            for value, amount, at in self._read.entries(document, path, 1000, "values to amounts a month")
        ]
        return tuple(sorted((value, amounts) for value, amounts in found if value is not None and amounts))

    def _listed(self, source: str, fields: dict[str, Any], path: str) -> Handover | None:
        targets = self._targets(fields["to"], f"{path}.to") if "to" in fields else None
        by = fields.get("by", "even")
        if by in ("proportional", "even"):
            return Handover(source, targets, by)
        if isinstance(by, str) and (usage := _USAGE.fullmatch(by)):
            return Handover(source, targets, "usage", metric=usage[1])
        near = self._read.suggestion(by, ("proportional", "even", "usage", "fixed"))
        self._read.problem(f"{path}.by", f"should be {_BY}{near}")
        return None

    def _fixed(self, source: str, fields: dict[str, Any], path: str) -> Handover | None:
        by = self._read.mapping(fields["by"], f"{path}.by", ("fixed",))
        if not by:
            if not fields["by"]:
                self._read.problem(f"{path}.by", f"should be {_BY}")
            return None
        at = f"{path}.by.fixed"
        percentages = self._read.percentages(by["fixed"], at)
        if by["fixed"] == {}:
            self._read.problem(at, "should not be empty")
        for value, _ in percentages:
            self._known(value, f"{at}.{value}")
        targets = tuple(value for value, _ in percentages)
        if "to" in fields and not _same(fields["to"], targets):
            self._read.problem(f"{path}.to", "the values of fixed are the targets; remove to")
        return Handover(source, targets, "fixed", percentages)

    def _targets(self, document: object, path: str) -> tuple[str, ...] | None:
        if document == EVERY_VALUE:
            return None
        what = f'"{EVERY_VALUE}" for every other value, or a list of values'
        found = [self._known(each, at) for each, at in self._read.items(document, path, 1000, what)]
        if document in ([], ()):
            self._read.problem(path, "should not be empty")
        return tuple(sorted({value for value in found if value is not None}))

    def _optional_text(self, fields: dict[str, Any], name: str, path: str, longest: int = 255) -> str | None:
        value = fields.get(name)
        return None if value is None else self._read.text(value, f"{path}.{name}", longest=longest)

    def _name(self, value: object, path: str) -> str | None:
        """Return the name of a value."""
        name = self._read.text(value, path)
        if name is None:
            return None
        if name == UNASSIGNED != self._default and path != "default":
            self._read.problem(path, f"{UNASSIGNED} can only be the default, which is {self._default} here")
        elif name in RESERVED and not self._read.is_stored:
            self._read.problem(path, _reserved(name))
        elif name == EVERY_VALUE or "${" in name:
            self._read.problem(path, f"{shown(name)} cannot be the name of a value")
        else:
            return name
        return None

    def _known(self, value: object, path: str) -> str | None:
        """Return the name of a value that may be assigned."""
        name = self._name(value, path)
        if name is None or not self._register or name in self._register or name == self._default:
            return name
        known = self._known_values
        more = f" and {len(known) - 10:,} more" if len(known) > 10 else ""
        near = self._read.suggestion(name, known)
        self._read.problem(path, f"unknown value {shown(name)}{near}; values has {', '.join(known[:10])}{more}")
        return None


def _given(fields: dict[str, Any], name: str, otherwise: object) -> object:
    """Return the value of a key, which YAML sets to None if nothing follows it."""
    value = fields.get(name)
    return otherwise if value is None else value


def _same(listed: object, targets: tuple[str, ...]) -> bool:
    return isinstance(listed, list) and sorted(map(str, listed)) == sorted(targets)
