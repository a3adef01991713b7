"""Reports about a cost category: its coverage, its assignment of one subject, and the changes that an edit would
make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import Field

from chargeback.categories.analysis import analyse
from chargeback.categories.document import Constant, CostCategory, Rule, Split
from chargeback.categories.resolve import outcome_of, rule_name
from chargeback.categories.weights import weights_of
from chargeback.model.money import difference, from_units, to_units, total
from chargeback.reports.answers import Exact, ResponseModel, Sum
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, names_of
from chargeback.store.queries.assignments import Assignments, share_text
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.keys import ByCategory, ByColumn, ByRule, Key
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.question import TOTAL, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: The maximum number of listed identities: unassigned ones, and those that an edit moves.
MOST_NAMED: Final = 50

_IDENTITY: Final = ByColumn("identity_id")
_AFTER, _BEFORE = "after", "before"
#: The same categories, see :func:`_undivided`.
_WHOLE: Final = {_AFTER: "after whole", _BEFORE: "before whole"}
_HUNDRED: Final = Decimal(100)
_PERCENT: Final = Decimal("0.01")

#: Returns the display names of some identities, by id.
NamesOf: TypeAlias = Callable[[Collection[str]], Mapping[str, str | None]]
#: The rows of an identity that the same two rules decide: it, and the value and the rule before and after.
_Decided: TypeAlias = tuple[Any, ...]
#: An identity, and its value before and after.
_Move: TypeAlias = tuple[str, str, str]
_Values = TypeVar("_Values", bound=tuple[str, ...])


class AppliedRule(ResponseModel):
    """A rule of the category."""

    index: int = Field(description="The position in the document, from 0.", examples=[0])
    id: str = Field(description="The id, or such as `rules[3]` if it has none.", examples=["reorg-42"])
    reason: str | None = Field(examples=["CHG-42"])


class AssignedPart(ResponseModel):
    """One assigned value, and its share."""

    value: str = Field(examples=["payments"])
    category_share: str = Field(description="The share of the cost; 1 if it is not split.", examples=["0.6"])
    path: list[str] = Field(description="The value and its ancestors, upwards.", examples=[["payments", "retail"]])


class AssignedAnswer(ResponseModel):
    """The assignment of one subject by a category on one day."""

    subject: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc", "resource_id": "lkc-abc123"}])
    date: str = Field(examples=["2026-01-31"])
    version: int = Field(description="The version of the category.")
    value: str | None = Field(
        description="The value; null if the cost is split among those in `parts`.", examples=["payments"]
    )
    path: list[str] = Field(
        description="The value and its ancestors, upwards; empty if the cost is split.",
        examples=[["payments", "retail"]],
    )
    parts: list[AssignedPart]
    rule: AppliedRule | None = Field(description="The applied rule; null for the default.")
    reason: str | None = Field(description="The reason of the rule.", examples=["CHG-42"])
    lost: list[AppliedRule] = Field(description="Later rules that would have applied, in order.")


class RuleCoverage(ResponseModel):
    """The costs that one rule assigned to one value."""

    rule: AppliedRule | None = Field(description="The rule; null for costs to which no rule applied.")
    value: str
    amount: Exact


class UnassignedIdentity(ResponseModel):
    """An identity with unassigned costs."""

    identity_id: str = Field(examples=["sa-123abc"])
    display_name: str | None = Field(examples=["orders-service"])
    amount: Exact


class CoverageOf(ResponseModel):
    """How much of the costs of a period a category assigns, before values reallocate them."""

    assigned: Exact
    unassigned: Exact = Field(description="The costs with the category's default.")
    percent: str | None = Field(
        description="`assigned` in percent of all costs; null without costs.", examples=["92.31"]
    )
    by_rule: list[RuleCoverage] = Field(description="By amount.")
    top_unassigned: list[UnassignedIdentity] = Field(description=f"By amount, at most {MOST_NAMED}.")


class InCurrency(ResponseModel):
    """A response in the currency of the bill."""

    currency: str = Field(examples=["USD"])


class CoverageAnswer(CoverageOf, InCurrency):
    """How much of the costs of a period a category assigns."""


class ValueChange(ResponseModel):
    """The total of a value before and after an edit."""

    value: str
    before: Sum
    after: Sum
    difference: Sum


class MovedAmount(ResponseModel):
    """Costs that would get another value."""

    before: str
    after: str
    amount: Exact


class MovedItem(ResponseModel):
    """Costs of one identity that would get another value."""

    identity_id: str
    display_name: str | None
    before: str
    after: str
    amount: Exact


class NeverMatchingRule(ResponseModel):
    """A rule that applies to nothing, and the reason."""

    rule: AppliedRule
    why: str


class ShadowedRule(ResponseModel):
    """A rule that matches only costs that earlier rules assign."""

    rule: AppliedRule
    by: list[AppliedRule]


class OverlappingRules(ResponseModel):
    """Two rules that assign different values to the same costs; the first one applies."""

    winner: AppliedRule
    loser: AppliedRule
    subjects: int = Field(description="The number of affected combinations of identity, resource and so on.")


class UnknownRuleValue(ResponseModel):
    """A value that a rule assigns but the register does not have."""

    value: str
    rule: AppliedRule


class DryRunAnswer(InCurrency):
    """The changes that an edit would make in the costs of a period. Nothing was written."""

    coverage_before: CoverageOf | None = Field(description="Null for a new category.")
    coverage_after: CoverageOf
    values: list[ValueChange] = Field(description="The totals of the values, including reallocated costs.")
    moved: list[MovedAmount] = Field(description="The costs that rules would assign to another value, by amount.")
    items: list[MovedItem] = Field(description=f"The same costs by identity, at most {MOST_NAMED}.")
    never_matching: list[NeverMatchingRule]
    shadowed: list[ShadowedRule]
    overlaps: list[OverlappingRules]
    unknown_values: list[UnknownRuleValue]


def coverage(reader: TenantReader, key: str, selection: Selection, names_of_identities: NamesOf) -> CoverageOf:
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
        RuleCoverage(
            rule=None if of_rule is None else AppliedRule.like(rule_name(category, of_rule)),
            value=of_value,
            amount=total(amounts),
        )
        for (of_value, of_rule), amounts in sorted(rules.items(), key=lambda each: _place_of(*each[0]))
    ]
    assigned = total(each.amount for each in by_rule if each.value != category.default)
    unassigned = total(each.amount for each in by_rule if each.value == category.default)
    whole = total([assigned, unassigned])
    sums = ((identity, total(amounts)) for identity, amounts in identities.items())
    largest = sorted((each for each in sums if each[1]), key=lambda each: (-each[1], each[0]))[:MOST_NAMED]
    names = names_of_identities([identity for identity, _ in largest])
    return CoverageOf(
        assigned=assigned,
        unassigned=unassigned,
        percent=f"{(assigned * _HUNDRED / whole).quantize(_PERCENT):f}" if whole > 0 else None,
        by_rule=sorted(by_rule, key=lambda each: (-each.amount, each.value)),
        top_unassigned=[
            UnassignedIdentity(identity_id=identity, display_name=names.get(identity), amount=amount)
            for identity, amount in largest
        ],
    )


def display_names(tenant: TenantView, identities: Collection[str]) -> dict[str, str | None]:
    """Return the display names of some identities of a tenant.

    Raises:
        StorageError: the control database cannot be read.
    """
    with tenant.store.control.read() as connection:
        return {identity: each.name for identity, each in names_of(connection, IDENTITIES, identities).items()}


def _place_of(value: str, rule: int | None) -> tuple[str, bool, int]:
    """Return the sort key of a rule among those of one value with the same sum: as in the document, no rule last."""
    return value, rule is None, rule or 0


def assignment_of(reader: TenantReader, key: str, subject: dict[str, str | None], day: date) -> AssignedAnswer:
    """Return the assignment of one subject by a category on a day, and the rule.

    Raises:
        UnknownCategory: the tenant has none of that key.
    """
    assignments = reader.categories.assignments(CHARGEBACKS, key)
    found = outcome_of(assignments.category, subject, day, assignments.tags, assignments.names)
    whole = sum(weight for _, weight in found.parts)
    parts = [
        AssignedPart(value=value, category_share=share_text(weight, whole), path=list(path))
        for (value, weight), path in zip(found.parts, found.paths, strict=True)
    ]
    rule = None if found.rule is None else AppliedRule.like(found.rule)
    return AssignedAnswer(
        subject=subject,
        date=day.isoformat(),
        version=reader.categories.index.by_key[key].version,
        value=parts[0].value if len(parts) == 1 else None,
        path=parts[0].path if len(parts) == 1 else [],
        parts=parts,
        rule=rule,
        reason=None if rule is None else rule.reason,
        lost=[AppliedRule.like(each) for each in found.lost],
    )


def preview(
    reader: TenantReader,
    key: str,
    candidate: CostCategory,
    selection: Selection,
    currency: str,
    names_of_identities: NamesOf,
) -> DryRunAnswer:
    """Return the changes in the selected costs if ``candidate`` were the category ``key``: in the assigned costs, and
    in the totals with reallocated costs. If costs are split, the parts that differ are moved.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    stored = reader.categories.index.by_key.get(key)
    compared = {_AFTER: candidate} | ({} if stored is None else {_BEFORE: stored.category})
    compared |= {_WHOLE[name]: _undivided(each) for name, each in compared.items()}
    both = reader.with_categories(_unstored(reader.categories, compared))
    after = both.categories.assignments(CHARGEBACKS, _AFTER)
    coverage_after = coverage(both, _AFTER, selection, names_of_identities)
    # Once the costs are read, their subjects are known.
    analysis = analyse(candidate, after.known_subjects(), after.tags, after.names)
    now = _totals(both, _AFTER, selection)
    before = {} if stored is None else _totals(both, _BEFORE, selection)
    totals = [
        (value, before.get(value, Decimal(0)), now.get(value, Decimal(0)))
        for value in (now if stored is None else sorted({*before, *now}))
    ]
    moves = {} if stored is None else _moved(both, selection)
    sums: dict[tuple[str, str], list[Decimal]] = {}
    for (_, earlier, later), amount in moves.items():
        sums.setdefault((earlier, later), []).append(amount)
    moved = _largest({values: total(amounts) for values, amounts in sums.items()})
    items = _largest(moves)[:MOST_NAMED]
    names = names_of_identities({identity for (identity, _, _), _ in items})
    return DryRunAnswer(
        currency=currency,
        coverage_before=None if stored is None else coverage(both, _BEFORE, selection, names_of_identities),
        coverage_after=coverage_after,
        values=[
            ValueChange(value=value, before=earlier, after=later, difference=difference(later, earlier))
            for value, earlier, later in totals
        ],
        moved=[MovedAmount(before=earlier, after=later, amount=amount) for (earlier, later), amount in moved],
        items=[
            MovedItem(
                identity_id=identity, display_name=names.get(identity), before=earlier, after=later, amount=amount
            )
            for (identity, earlier, later), amount in items
        ],
        never_matching=[NeverMatchingRule.like(each) for each in analysis.never_matching],
        shadowed=[ShadowedRule.like(each) for each in analysis.shadowed],
        overlaps=[OverlappingRules.like(each) for each in analysis.overlaps],
        unknown_values=[UnknownRuleValue.like(each) for each in analysis.unknown_values],
    )


def _unstored(lookup: CategoryLookup, categories: Mapping[str, CostCategory]) -> CategoryLookup:
    """Return categories that are not stored, with the tags and names of stored ones."""
    made: dict[tuple[str, str], Assignments] = {}

    def _assignments(dataset: Dataset, key: str) -> Assignments:
        place = (dataset.table, key)
        if place not in made:
            made[place] = Assignments(categories[key], dataset, lookup.tags, lookup.names())
        return made[place]

    index = CategoryIndex({key: StoredCategory(each) for key, each in categories.items()})
    return replace(lookup, index=index, assignments=_assignments)


def _undivided(category: CostCategory) -> CostCategory:
    """Return a category whose rules apply to the same rows on the same days, but that splits none of them: a split is
    replaced by its first value."""

    def _undivided_rule(rule: Rule) -> Rule:
        if not isinstance(rule.assign, Split):
            return rule
        values = [value for value, _ in rule.assign.percentages]
        during = reduce(and_, (category.validity(value) for value in values), rule.during)
        return replace(rule, assign=Constant(values[0]), during=during)

    return replace(category, rules=tuple(map(_undivided_rule, category.rules)), share=())


def _moved(reader: TenantReader, selection: Selection) -> dict[_Move, Decimal]:
    """Return the costs that would get another value, by identity."""
    index = reader.categories.index
    decided = (_IDENTITY, *_decided(_WHOLE[_BEFORE]), *_decided(_WHOLE[_AFTER]))
    moved: Counter[_Move] = Counter()
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
    return {place: from_units(units) for place, units in moved.items() if units}


def _parts(category: CostCategory, rule: int | None, value: str) -> tuple[tuple[str, int], ...]:
    """Return the values of the rows to which a rule applies, with their weights."""
    assign = None if rule is None else category.rules[rule].assign
    return weights_of(assign.percentages) if isinstance(assign, Split) else ((value, 1),)


def _held(
    reader: TenantReader, selection: Selection, decided: Sequence[Key], name: str
) -> dict[_Decided, dict[str, int]]:
    """Return the costs of the values of one category in each group of rows, in units."""
    held: dict[_Decided, dict[str, int]] = {}
    for *group, receiver, amount in _rows(reader, selection, *decided, ByCategory(name)):
        held.setdefault(tuple(group), {})[receiver] = to_units(amount)
    return held


def _fewest_moves(before: Mapping[str, int], after: Mapping[str, int], sign: int) -> Iterator[tuple[str, str, int]]:
    """Yield the moves (from, to, units) that turn the units of values before into those after, in the order of their
    names; they have the ``sign`` of the sum of all rows. The reverse edit has the reverse moves.

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


def _largest(moved: Mapping[_Values, Decimal]) -> list[tuple[_Values, Decimal]]:
    return sorted(moved.items(), key=lambda each: (-abs(each[1]), each[0]))


def _totals(reader: TenantReader, key: str, selection: Selection) -> dict[str, Decimal]:
    """Return the total of each value, including reallocated costs."""
    return dict(_rows(reader, selection, ByCategory(key), sum_of=TOTAL))


def _decided(key: str) -> tuple[Key, Key]:
    """Return the keys of the value of a category and of the applied rule."""
    return ByCategory(key), ByRule(key)


def _rows(reader: TenantReader, selection: Selection, *by: Key, sum_of: str = "direct") -> list[tuple[Any, ...]]:
    """Return the sums by some keys, one of them that of a category."""
    sums = reader.sums(Sums(CHARGEBACKS, selection, by, (sum_of,)))
    columns = ", ".join(f"d{number}" for number in range(len(by)))
    return sums.rows(f"SELECT {columns}, {sums.amount(sum_of)} FROM sums")
