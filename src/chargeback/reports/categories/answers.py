"""Questions about a cost category: what it assigns altogether, or to one subject, and what an edit would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any, Final, TypeAlias

from chargeback.categories.analysis import Analysis, analyse
from chargeback.categories.document import Constant, CostCategory, Rule, Split
from chargeback.categories.resolve import Assignment, RuleName, outcome_of, rule_name
from chargeback.categories.weights import weights_of
from chargeback.model.money import from_units, to_units, total
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.category_lookup import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.keys import ByCategory, ByColumn, ByRule, Key
from chargeback.store.queries.question import TOTAL, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: How many unassigned identities, and how many that an edit moves, are named.
MOST_NAMED: Final = 50

_IDENTITY: Final = ByColumn("identity_id")
_AFTER, _BEFORE = "after", "before"
#: The same categories, see :func:`_undivided`.
_WHOLE: Final = {_AFTER: "after whole", _BEFORE: "before whole"}
_HUNDRED: Final = Decimal(100)
_PERCENT: Final = Decimal("0.01")

#: The rows of an identity that the same two rules decide: it, and the value and the rule before and after.
_Decided: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class RuleSum:
    """What one rule assigned, by its value; without a rule, what no rule applied to."""

    rule: RuleName | None
    value: str
    amount: Decimal


@dataclass(frozen=True)
class Coverage:
    """How much of the costs has another value than the default. ``top_unassigned`` are identities with the largest
    costs that do not."""

    assigned: Decimal
    unassigned: Decimal
    by_rule: tuple[RuleSum, ...]
    top_unassigned: tuple[tuple[str, Decimal], ...]

    @property
    def percent(self) -> Decimal | None:
        """What is assigned, of everything, in percent; None where nothing was spent."""
        whole = total([self.assigned, self.unassigned])
        return (self.assigned * _HUNDRED / whole).quantize(_PERCENT) if whole > 0 else None


@dataclass(frozen=True)
class Moved:
    """What would have another value: of one identity, or of all (None)."""

    identity_id: str | None
    before: str
    after: str
    amount: Decimal


@dataclass(frozen=True)
class Preview:
    """What an edit of a category would change. ``values`` has the total of each value before and after it, with what
    values hand on; ``moved`` and ``items`` are about what the rules assign: of what is split, the parts that differ."""

    coverage_before: Coverage | None
    coverage_after: Coverage
    values: tuple[tuple[str, Decimal, Decimal], ...]
    moved: tuple[Moved, ...]
    items: tuple[Moved, ...]
    analysis: Analysis


def coverage(reader: TenantReader, key: str, selection: Selection) -> Coverage:
    """Return how much of the selected costs a category assigns.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        UnknownCategory: the tenant has none of that key.
    """
    category = reader.categories.index.category(key)
    rules: dict[tuple[str, int | None], list[Decimal]] = {}
    identities: dict[str, list[Decimal]] = {}
    for identity, of_value, of_rule, amount in _rows(reader, selection, _IDENTITY, *_decided(key)):
        rules.setdefault((of_value, of_rule), []).append(amount)
        if of_value == category.default:
            identities.setdefault(identity, []).append(amount)
    by_rule = [
        RuleSum(None if of_rule is None else rule_name(category, of_rule), of_value, total(amounts))
        for (of_value, of_rule), amounts in sorted(rules.items(), key=lambda each: _place_of(*each[0]))
    ]
    named = [(identity, total(amounts)) for identity, amounts in identities.items()]
    return Coverage(
        total(each.amount for each in by_rule if each.value != category.default),
        total(each.amount for each in by_rule if each.value == category.default),
        tuple(sorted(by_rule, key=lambda each: (-each.amount, each.value))),
        tuple(sorted((each for each in named if each[1]), key=lambda each: (-each[1], each[0]))[:MOST_NAMED]),
    )


def _place_of(value: str, rule: int | None) -> tuple[str, bool, int]:
    """Return the place of a rule among those of one value with the same sum: as in the document, no rule last."""
    return value, rule is None, rule or 0


def assignment_of(reader: TenantReader, key: str, subject: Mapping[str, str | None], day: date) -> Assignment:
    """Return what a category assigns to one subject on a day, and why.

    Raises:
        UnknownCategory: the tenant has none of that key.
    """
    assignments = reader.categories.assignments(CHARGEBACKS, key)
    return outcome_of(assignments.category, subject, day, assignments.tags, assignments.names)


def preview(reader: TenantReader, key: str, candidate: CostCategory, selection: Selection) -> Preview:
    """Return what would change in the selected costs if ``candidate`` were the category ``key``.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    stored = reader.categories.index.by_key.get(key)
    compared = {_AFTER: candidate} | ({} if stored is None else {_BEFORE: stored.category})
    compared |= {_WHOLE[name]: _undivided(each) for name, each in compared.items()}
    beside = reader.with_categories(_unstored(reader.categories, compared))
    after = beside.categories.assignments(CHARGEBACKS, _AFTER)
    coverage_after = coverage(beside, _AFTER, selection)
    analysis = analyse(candidate, after.known_subjects(), after.tags, after.names)
    if stored is None:
        held = tuple((value, Decimal(0), amount) for value, amount in _totals(beside, _AFTER, selection).items())
        return Preview(None, coverage_after, held, (), (), analysis)
    before, now = _totals(beside, _BEFORE, selection), _totals(beside, _AFTER, selection)
    moved = _moved(beside, selection)
    sums: dict[tuple[str, str], list[Decimal]] = {}
    for each in moved:
        sums.setdefault((each.before, each.after), []).append(each.amount)
    return Preview(
        coverage(beside, _BEFORE, selection),
        coverage_after,
        tuple((value, before.get(value, Decimal(0)), now.get(value, Decimal(0))) for value in sorted({*before, *now})),
        _largest([Moved(None, *values, total(amounts)) for values, amounts in sums.items()]),
        _largest(moved)[:MOST_NAMED],
        analysis,
    )


def _unstored(lookup: CategoryLookup, categories: Mapping[str, CostCategory]) -> CategoryLookup:
    """Return categories that are not stored, with the tags and names of those that are."""
    made: dict[tuple[str, str], Assignments] = {}

    def _assignments(dataset: Dataset, key: str) -> Assignments:
        place = (dataset.table, key)
        if place not in made:
            made[place] = Assignments(categories[key], dataset, lookup.tags, lookup.names())
        return made[place]

    index = CategoryIndex({key: StoredCategory(each) for key, each in categories.items()})
    return replace(lookup, index=index, assignments=_assignments)


def _undivided(category: CostCategory) -> CostCategory:
    """Return a category whose rules decide about the same rows on the same days, and which divides none of them: a
    split is named by its first value."""

    def _undivided_rule(rule: Rule) -> Rule:
        if not isinstance(rule.assign, Split):
            return rule
        values = [value for value, _ in rule.assign.percentages]
        during = reduce(and_, (category.validity(value) for value in values), rule.during)
        return replace(rule, assign=Constant(values[0]), during=during)

    return replace(category, rules=tuple(map(_undivided_rule, category.rules)), share=())


def _moved(reader: TenantReader, selection: Selection) -> list[Moved]:
    """Return what would have another value, by identity."""
    index = reader.categories.index
    decided = (_IDENTITY, *_decided(_WHOLE[_BEFORE]), *_decided(_WHOLE[_AFTER]))
    moved: Counter[tuple[str, str, str]] = Counter()
    divided: dict[_Decided, int] = {}
    for identity, before, rule_before, after, rule_after, amount in _rows(reader, selection, *decided):
        parts = _parts(index.category(_BEFORE), rule_before, before), _parts(index.category(_AFTER), rule_after, after)
        if parts[0] == parts[1]:
            continue
        if len(parts[0]) == len(parts[1]) == 1:
            moved[identity, before, after] += to_units(amount)
        else:
            divided[identity, before, rule_before, after, rule_after] = to_units(amount)
    if divided:
        had, has = (_held(reader, selection, decided, name) for name in (_BEFORE, _AFTER))
        for group, units in divided.items():
            for before, after, part in _fewest_moves(had[group], has[group], -1 if units < 0 else 1):
                moved[group[0], before, after] += part
    return [Moved(*place, from_units(units)) for place, units in moved.items() if units]


def _parts(category: CostCategory, rule: int | None, value: str) -> tuple[tuple[str, int], ...]:
    """Return the values of the rows that a rule decides, with their weights."""
    assign = None if rule is None else category.rules[rule].assign
    return weights_of(assign.percentages) if isinstance(assign, Split) else ((value, 1),)


def _held(
    reader: TenantReader, selection: Selection, decided: Sequence[Key], name: str
) -> dict[_Decided, dict[str, int]]:
    """Return what the values of one category have of each group of rows, in units."""
    held: dict[_Decided, dict[str, int]] = {}
    for *group, receiver, amount in _rows(reader, selection, *decided, ByCategory(name)):
        held.setdefault(tuple(group), {})[receiver] = to_units(amount)
    return held


def _fewest_moves(before: Mapping[str, int], after: Mapping[str, int], sign: int) -> Iterator[tuple[str, str, int]]:
    """Yield (from, to, units) of what turns the units of values before into those after, in the order of their names;
    what is moved has the ``sign`` of all rows together. In the other direction the same moves are made.

    >>> list(_fewest_moves({"a": 60, "b": 40}, {"a": 50, "c": 50}, 1))
    [('a', 'c', 10), ('b', 'c', 40)]
    """
    changes = {value: sign * (after.get(value, 0) - before.get(value, 0)) for value in sorted({*before, *after})}
    lost = [(value, -units) for value, units in changes.items() if units < 0]
    gained = [(value, units) for value, units in changes.items() if units > 0]
    while lost and gained:
        (source, left), (target, missing) = lost.pop(0), gained.pop(0)
        part = min(left, missing)
        yield source, target, sign * part
        if left > part:
            lost.insert(0, (source, left - part))
        if missing > part:
            gained.insert(0, (target, missing - part))


def _largest(moved: Sequence[Moved]) -> tuple[Moved, ...]:
    ordered = sorted(moved, key=lambda each: (-abs(each.amount), each.identity_id or "", each.before, each.after))
    return tuple(ordered)


def _totals(reader: TenantReader, key: str, selection: Selection) -> dict[str, Decimal]:
    """Return the total of each value, with what values hand on."""
    return dict(_rows(reader, selection, ByCategory(key), sum_of=TOTAL))


def _decided(key: str) -> tuple[Key, Key]:
    """Return the value of a category and the rule that decided it."""
    return ByCategory(key), ByRule(key)


def _rows(reader: TenantReader, selection: Selection, *by: Key, sum_of: str = "direct") -> list[tuple[Any, ...]]:
    """Return the sums by some keys, of which one is that of a category."""
    sums = reader.sums(Sums(CHARGEBACKS, selection, by, (sum_of,)))
    columns = ", ".join(f"d{number}" for number in range(len(by)))
    return sums.rows(f"SELECT {columns}, {sums.amount(sum_of)} FROM sums")
