"""The amounts of a month's statements, exactly and in cents.

The rounded total of the month is divided among the statements, and each statement among its lines and its largest
parts, by largest remainder: so lines sum to statements, and statements to the bill.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeVar

from chargeback.categories.document import CostCategory
from chargeback.model.cents import to_cents
from chargeback.model.days import DayRange
from chargeback.model.inventory import UNALLOCATED, UNTAGGED
from chargeback.model.money import total
from chargeback.reports.statements.content import (
    DIRECT,
    LINE_KINDS,
    SHARED_IN,
    SHARED_OUT,
    OtherParts,
    RankedPart,
    StatedAmount,
    StatementLine,
    StatementRanking,
)
from chargeback.store.queries.keys import TAG_PREFIX
from chargeback.store.queries.lookups import CATEGORY_PREFIX
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import StatementSum, statement_sums

#: How many identities, resources and topics a statement names.
MOST_NAMED: Final = 10

_ZERO: Final = Decimal(0)
K = TypeVar("K", bound=Hashable)
#: Kind, product category and product type.
_LineKey = tuple[str, str, str]
Sums = Mapping[str, Sequence[StatementSum]]


@dataclass(frozen=True)
class StatementGrouping:
    """The grouping of statements: a column, ``tag:<key>``, or ``category:<key>`` with its document and version.
    ``unassigned`` is the value of costs that no rule or tag assigns."""

    by: str
    category: CostCategory | None = None
    version: int | None = None
    unassigned: str | None = None

    @classmethod
    def of(cls, reader: TenantReader, by: str) -> StatementGrouping:
        """Return the grouping with a name.

        Raises:
            UnknownCategory: the tenant has no such cost category.
        """
        if by.startswith(TAG_PREFIX):
            return cls(by, unassigned=UNTAGGED)
        if not by.startswith(CATEGORY_PREFIX):
            return cls(by)
        key = by.removeprefix(CATEGORY_PREFIX)
        category = reader.categories.index.category(key)
        return cls(by, category, reader.categories.index.by_key[key].version, category.default)

    def value_of(self, value: str | None, identity_id: str | None) -> str:
        """Return the value of the statement with a cost. Costs that no rule or tag assigns are in two statements: those
        without an identity, and the rest."""
        return UNALLOCATED if value == self.unassigned and identity_id == UNALLOCATED else value or ""

    def order(self, value: str) -> tuple[bool, str]:
        """Return the sort key of a statement: unassigned and unallocated costs come last."""
        return value in {self.unassigned, UNALLOCATED}, value


def sums_by_value(reader: TenantReader, days: DayRange, grouping: StatementGrouping) -> dict[str, list[StatementSum]]:
    """Return the sums of each statement, by its value.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: chargebacks cannot be grouped by these columns.
    """
    found: dict[str, list[StatementSum]] = {}
    for each in statement_sums(reader, Selection.of_days(days), grouping.by):
        found.setdefault(grouping.value_of(each.value, each.identity_id), []).append(each)
    return dict(sorted(found.items(), key=lambda item: grouping.order(item[0])))


def stated_amounts(sums: Sums, whole: Sums, currency: str) -> dict[str, StatedAmount]:
    """Return the amount of each statement. Its cents are those among the statements of the ``whole`` month; if a reader
    sees only a part of a statement, this part is rounded separately."""
    exact = [amount_of(rows) for rows in whole.values()]
    cents = dict(zip(whole, to_cents(exact, currency), strict=True))
    found = {}
    for value, rows in sums.items():
        alone = StatedAmount.alone(amount_of(rows), currency)
        is_whole = _is_whole(rows, whole[value])
        found[value] = StatedAmount(amount=alone.amount, rounded=cents[value]) if is_whole else alone
    return found


def seen_in_part(sums: Sums, whole: Sums) -> set[str]:
    """Return the values whose statement differs in the ``whole`` month, or exists only there."""
    return {value for value, rows in whole.items() if value not in sums or not _is_whole(sums[value], rows)}


def _is_whole(rows: Sequence[StatementSum], whole: Sequence[StatementSum]) -> bool:
    return rows is whole or line_amounts(rows) == line_amounts(whole)


def amount_of(rows: Iterable[StatementSum]) -> Decimal:
    """Return the amount that remains with the value."""
    return total(amount for each in rows for amount in _flows(each).values())


def line_amounts(rows: Iterable[StatementSum]) -> dict[_LineKey, Decimal]:
    """Return the amounts of the lines, ordered by kind and product. Amounts of zero are left out."""
    found: dict[_LineKey, list[Decimal]] = {}
    for each in rows:
        for kind, amount in _flows(each).items():
            found.setdefault((kind, each.product_category, each.product_type), []).append(amount)
    summed = {key: total(amounts) for key, amounts in found.items()}
    in_order = sorted(summed, key=lambda key: (LINE_KINDS.index(key[0]), key[1], key[2]))
    return {key: summed[key] for key in in_order if summed[key]}


def lines_of(rows: Iterable[StatementSum], amount: StatedAmount, currency: str) -> list[StatementLine]:
    """Return the lines of a statement of this amount."""
    exact = line_amounts(rows)
    cents = to_cents(list(exact.values()), currency, amount.rounded)
    return [
        StatementLine(kind=kind, product_category=category, product_type=product_type, amount=each, rounded=rounded)
        for ((kind, category, product_type), each), rounded in zip(exact.items(), cents, strict=True)
    ]


def amounts_by(rows: Iterable[StatementSum], key: Callable[[StatementSum], K]) -> dict[K, Decimal]:
    """Return the amounts that remain with the value, grouped by a key of the sums."""
    found: dict[K, list[StatementSum]] = {}
    for each in rows:
        found.setdefault(key(each), []).append(each)
    return {value: amount_of(of_value) for value, of_value in found.items()}


def largest(
    amounts: Mapping[K, Decimal],
    whole: StatedAmount,
    currency: str,
    names: Callable[[K], tuple[str, str | None, str | None]],
) -> StatementRanking:
    """Return the largest of some amounts, which sum to ``whole``; equal ones are ordered by key. ``names`` returns the
    id of a part, its name, and what contains it."""
    in_order = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = in_order[:MOST_NAMED], in_order[MOST_NAMED:]
    other = total(amount for _, amount in rest)
    *cents, others_cents = to_cents([*(amount for _, amount in shown), other], currency, whole.rounded)
    items = []
    for (key, amount), rounded in zip(shown, cents, strict=True):
        id_, name, within = names(key)
        items.append(RankedPart(id=id_, name=name, within=within, amount=amount, rounded=rounded))
    others = OtherParts(count=len(rest), amount=other, rounded=others_cents) if rest else None
    return StatementRanking(items=items, other=others, total=whole)


def _flows(each: StatementSum) -> dict[str, Decimal]:
    return {DIRECT: each.direct, SHARED_IN: each.shared_in, SHARED_OUT: each.shared_out.copy_negate()}
