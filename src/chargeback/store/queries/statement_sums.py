"""The sums of which statements are made: by value, and by everything that a statement breaks its amount down by."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chargeback.store.queries.category_index import CATEGORY_PREFIX, CategoryName
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import ByRule, Key, keys_of
from chargeback.store.queries.partials import REALLOCATED
from chargeback.store.queries.question import TOTAL, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

_NOTHING: Final = "0::DECIMAL(38, 12)"
_COLUMNS: Final = ("identity_id", "resource_id", "product_category", "product_type")


@dataclass(frozen=True, slots=True)
class StatementSum:
    """The sum of the rows that agree in all of these.

    Attributes:
        value: what the statement is about: the value of a column, a tag or a cost category.
        rule: the place of the category's rule that decided; None for its default, and for everything but categories.
        direct: what was assigned to the value, or all of it where nothing is handed on.
        shared_in: what other values handed on to it.
        shared_out: what it handed on.
    """

    value: str
    identity_id: str
    resource_id: str
    product_category: str
    product_type: str
    rule: int | None
    direct: Decimal
    shared_in: Decimal
    shared_out: Decimal


def statement_sums(reader: TenantReader, selection: Selection, by: str) -> list[StatementSum]:
    """Return the sums of the selected rows by a column, ``tag:<key>`` or ``category:<key>``, in no particular order.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped so.
    """
    amounts = REALLOCATED if by.startswith(CATEGORY_PREFIX) else (TOTAL,)
    keys = (*keys_of(CHARGEBACKS, (by, *_COLUMNS)), *_rule_of(by))
    sums = reader.sums(Sums(CHARGEBACKS, selection, keys, amounts))
    shown = [sums.amount(name) for name in amounts] + [_NOTHING] * (len(REALLOCATED) - len(amounts))
    rule = "d5" if _rule_of(by) else "NULL"
    rows = sums.rows(f"SELECT d0, d1, d2, d3, d4, {rule}, {', '.join(shown)} FROM sums")
    return [StatementSum(*row) for row in rows]


def _rule_of(by: str) -> tuple[Key, ...]:
    return (ByRule(CategoryName.of(by).key),) if by.startswith(CATEGORY_PREFIX) else ()
