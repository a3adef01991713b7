"""The sums of which statements are made: by value, and by everything that a statement breaks its amount down by."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from chargeback.store.queries.aggregate import columns_of, joins_of
from chargeback.store.queries.category_index import CATEGORY_PREFIX
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.partials import FLOWS, Addends
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

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
    keys = reader.group_keys(CHARGEBACKS, (by, *_COLUMNS))
    if reader.days_of(CHARGEBACKS, selection) is None:
        return []
    rule = "NULL"
    amounts: tuple[str, ...] = ("total", "0::DECIMAL(38, 12)", "0::DECIMAL(38, 12)")
    if by.startswith(CATEGORY_PREFIX):
        rule = f"rule_{reader.categories.index.place(by.removeprefix(CATEGORY_PREFIX))}"
        amounts = tuple(FLOWS.values())
    columns, joins = f"{columns_of(keys)}, {rule} AS rule", joins_of(keys)

    def _sum(source: Addends) -> list[Any]:
        sums = ", ".join(source.amount(name) if name in source.sums else name for name in amounts)
        return reader.cursor.rows(
            f"""SELECT {columns}, {sums} FROM {source.relation} AS facts {joins}
                WHERE {source.condition.sql} GROUP BY ALL""",
            source.condition.parameters,
        )

    return [StatementSum(*row) for row in reader.add_up(CHARGEBACKS, selection, f"{columns} {joins}", _sum)]
