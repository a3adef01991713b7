"""Questions about a cost category: what it assigns altogether, or to one subject, and what an edit would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from chargeback.categories.analysis import Analysis, analyse
from chargeback.categories.document import CostCategory
from chargeback.categories.resolve import Assignment, RuleName, outcome_of, rule_name
from chargeback.model.money import total
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.category_index import CategoryIndex, StoredCategory
from chargeback.store.queries.category_lookup import CategoryLookup
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.partials import Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: So many unassigned identities, and so many that an edit moves, are named.
MOST_NAMED: Final = 50

_AFTER, _BEFORE = "after", "before"
_HUNDRED: Final = Decimal(100)
_PERCENT: Final = Decimal("0.01")


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
    values hand on; ``moved`` and ``items`` are about what the rules assign."""

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
    category, place = reader.categories.index.category(key), reader.categories.index.place(key)
    value, rule = f"category_{place}", f"rule_{place}"
    rules: dict[tuple[str, int | None], list[Decimal]] = {}
    identities: dict[str, list[Decimal]] = {}
    for identity, of_value, of_rule, amount in _rows(reader, selection, f"identity_id, {value}, {rule}"):
        rules.setdefault((of_value, of_rule), []).append(amount)
        if of_value == category.default:
            identities.setdefault(identity, []).append(amount)
    by_rule = [
        RuleSum(None if of_rule is None else rule_name(category, of_rule), of_value, total(amounts))
        for (of_value, of_rule), amounts in rules.items()
    ]
    named = [(identity, total(amounts)) for identity, amounts in identities.items()]
    return Coverage(
        total(each.amount for each in by_rule if each.value != category.default),
        total(each.amount for each in by_rule if each.value == category.default),
        tuple(sorted(by_rule, key=lambda each: (-each.amount, each.value))),
        tuple(sorted((each for each in named if each[1]), key=lambda each: (-each[1], each[0]))[:MOST_NAMED]),
    )


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

    return CategoryLookup(
        CategoryIndex({key: StoredCategory(each) for key, each in categories.items()}),
        _assignments,
        lookup.tags,
        lookup.names,
    )


def _moved(reader: TenantReader, selection: Selection) -> list[Moved]:
    """Return what would have another value, by identity."""
    index = reader.categories.index
    before, after = f"category_{index.place(_BEFORE)}", f"category_{index.place(_AFTER)}"
    rows = _rows(reader, selection, f"identity_id, {before}, {after}")
    return [Moved(*row) for row in rows if row[1] != row[2] and row[3]]


def _largest(moved: Sequence[Moved]) -> tuple[Moved, ...]:
    ordered = sorted(moved, key=lambda each: (-abs(each.amount), each.identity_id or "", each.before, each.after))
    return tuple(ordered)


def _totals(reader: TenantReader, key: str, selection: Selection) -> dict[str, Decimal]:
    """Return the total of each value, with what values hand on."""
    return dict(_rows(reader, selection, f"category_{reader.categories.index.place(key)}", sum_of="total"))


def _rows(reader: TenantReader, selection: Selection, columns: str, sum_of: str = "direct") -> list[tuple[Any, ...]]:
    """Return the sums by some columns, of which one is that of a category."""
    if reader.days_of(CHARGEBACKS, selection) is None:
        return []

    def _sum(source: Addends) -> list[tuple[Any, ...]]:
        return reader.cursor.rows(
            f"SELECT {columns}, {source.sums[sum_of]} FROM {source.relation} WHERE {source.condition.sql} GROUP BY ALL",
            source.condition.parameters,
        )

    return reader.add_up(CHARGEBACKS, selection, columns, _sum)
