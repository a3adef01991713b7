"""Sums of selected rows as Python values: by any keys, by day, for statements, and the share that has a tag."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.model.days import InstantRange
from chargeback.model.inventory import UNTAGGED
from chargeback.model.money import to_units
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.keys import ByDay, ByRule, ByTag, Key, keys_of
from chargeback.store.queries.lookups import CATEGORY_PREFIX, CategoryName
from chargeback.store.queries.partials import REALLOCATED
from chargeback.store.queries.question import TOTAL, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: The values of the columns that were grouped by.
KeyValues = tuple[str | None, ...]


def sums_by(
    reader: TenantReader, dataset: Dataset, selection: Selection, by: Sequence[str]
) -> dict[KeyValues, Decimal]:
    """Return the sum of the selected rows for each combination of the values of ``by``: columns or ``tag:<key>``.

    Raises:
        HistoryGone: the reader sees an earlier instant, and a day of it is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    sums = reader.sums(Sums(dataset, selection, keys_of(dataset, by)))
    columns = ", ".join([*(f"d{number}" for number in range(len(by))), sums.amount()])
    return {tuple(row[:-1]): row[-1] for row in sums.rows(f"SELECT {columns} FROM sums")}


def daily_sums_by(
    reader: TenantReader,
    dataset: Dataset,
    selection: Selection,
    by: Sequence[str],
    days: Collection[date] | None = None,
) -> dict[tuple[date, KeyValues], Decimal]:
    """Return the same for each UTC day, or for each of some: then only the files of these ``days`` are read.

    Raises:
        HistoryGone: the reader sees an earlier instant, and a day of it is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    within = reader.days_of(dataset, selection)
    if within is None:
        return {}
    if days is not None and not any(file.day in days for file in reader.snapshot(dataset.table).within(within)):
        return {}
    sums = reader.sums(Sums(dataset, selection, (ByDay(), *keys_of(dataset, by)), days=days))
    columns = ", ".join(["date", *(f"d{number}" for number in range(len(by))), sums.amount()])
    return {(row[0], tuple(row[1:-1])): row[-1] for row in sums.rows(f"SELECT {columns} FROM sums")}


def daily_amounts(reader: TenantReader, dataset: Dataset, selection: Selection) -> dict[date, Decimal]:
    """Return the amount of the selected rows of each UTC day that has any.

    Raises:
        HistoryGone: the reader sees an earlier instant, and a day of it is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    sums = reader.sums(Sums(dataset, selection, (ByDay(),)))
    return dict(sums.rows(f"SELECT date, {sums.amount()} FROM sums"))


_NOTHING: Final = "0::DECIMAL(38, 12)"
_COLUMNS: Final = ("identity_id", "resource_id", "product_category", "product_type")


@dataclass(frozen=True, slots=True)
class StatementSum:
    """The sum of the rows that agree in all of these.

    Attributes:
        value: what the statement is about: the value of a column, a tag or a cost category.
        rule: the place of the category's rule that decided; None for its default, and for everything but categories.
        direct: what was assigned to the value, or all of it where nothing is reallocated.
        shared_in: what other values reallocated to it.
        shared_out: what it reallocated.
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
        ValueError: chargebacks cannot be grouped by these columns.
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


#: The most keys that one query looks up: each is a join.
_AT_ONCE: Final = 10
#: A share is shown in tenths of a per mille.
_STEP: Final = Decimal("0.0001")


def tag_coverage(reader: TenantReader, window: InstantRange, keys: Sequence[str]) -> dict[str, Decimal | None]:
    """Return for each key the share of the cost of ``window`` that has such a tag, from 0 to 1; None where there is no
    cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    shares: dict[str, Decimal | None] = {}
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        by = tuple(ByTag(key) for key in some)
        sums = reader.sums(Sums(CHARGEBACKS, Selection(window), by, periods=(window,)))
        tagged = ", ".join(sums.total_or_zero(where=f"d{number} <> '{UNTAGGED}'") for number in range(len(some)))
        ((whole, *parts),) = sums.rows(f"SELECT {sums.total_or_zero()}, {tagged} FROM sums")
        shares |= {key: _share(part, whole) for key, part in zip(some, parts, strict=True)}
    return shares


def _share(part: Decimal, whole: Decimal) -> Decimal | None:
    if whole <= 0:
        return None
    share = Fraction(to_units(part), to_units(whole))
    return Decimal(round(share / Fraction(_STEP))) * _STEP
