"""What two ranges of days have to be compared by, to tell why costs changed: charges, bills, quantities, policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chargeback.model.days import InstantRange
from chargeback.model.effects import BilledType, Charged, Quantity
from chargeback.model.money import to_units
from chargeback.store.queries.cost_sums import sum_selected
from chargeback.store.queries.costs import days_with_rows
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import Key

#: What is billed, and by which method its cost was allocated.
_BILLED: Final = ("resource_id", "product_type", "allocation_method")
#: A product type on a resource.
_Billed = tuple[str, str]
_Costs = dict[_Billed, dict[str, int]]


@dataclass(frozen=True)
class ComparedCharges:
    """The charges of a range (``before``) and of another (``after``).

    Attributes:
        days: how many UTC days of each have costs, whatever the filters.
        parts: by the values that were grouped by: the selected charges for each product type on each resource, before
            and after.
    """

    days: tuple[int, int]
    parts: Mapping[Key, Sequence[tuple[Charged, Charged]]]


def compared_charges(
    reader: TenantReader, selection: Selection, before: InstantRange, by: Sequence[str]
) -> ComparedCharges:
    """Return the selected charges beside those of the range ``before``, by columns or ``tag:<key>``. How the bills
    changed, of which they are parts, is a matter of the whole bills.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    windows = (before, selection.window)
    charged: dict[Key, tuple[_Costs, _Costs]] = {}
    for period, key, billed, method, amount in _sums(reader, selection, windows, by):
        sides = charged.setdefault(key, ({}, {}))
        sides[period].setdefault(billed, {})[method] = amount
    bills = _bills(reader.unscoped(), windows)
    parts = {}
    for key, sides in charged.items():
        all_billed = sides[0].keys() | sides[1].keys()
        parts[key] = [(_part(0, billed, sides, bills), _part(1, billed, sides, bills)) for billed in all_billed]
    return ComparedCharges((days_with_rows(reader, before), days_with_rows(reader, selection.window)), parts)


def _part(
    period: int, billed: _Billed, charged: tuple[_Costs, _Costs], bills: Sequence[Mapping[_Billed, BilledType]]
) -> Charged:
    return Charged(charged[period].get(billed, {}), bills[period].get(billed))


def _sums(
    reader: TenantReader, selection: Selection, windows: Sequence[InstantRange], by: Sequence[str]
) -> list[tuple[int, Key, _Billed, str, int]]:
    """Return the sums of the selected rows of each window, in units of 10⁻¹²: (window, key, what is billed, method,
    amount)."""
    sum_selected(reader, selection, windows, (*by, *_BILLED))
    keys = ", ".join(f"d{number}" for number in range(len(by) + len(_BILLED)))
    rows = reader.cursor.rows(f"SELECT period, {keys}, total FROM selected")
    return [(row[0], row[1:-4], (row[-4], row[-3]), row[-2], to_units(row[-1])) for row in rows]


def _bills(reader: TenantReader, windows: Sequence[InstantRange]) -> list[dict[_Billed, BilledType]]:
    """Return what was billed in each window, by product type and resource, of the days that are calculated. Costs are
    those that were charged, so that the shares of all payers sum to one."""
    costs: list[_Costs] = [{} for _ in windows]
    for period, _, billed, method, amount in _sums(reader, Selection(windows[0]), windows, ()):
        costs[period].setdefault(billed, {})[method] = amount
    bills = []
    for window, of_window in zip(windows, costs, strict=True):
        quantities, policies = _quantities(reader, window), policies_used(reader, window)
        bills.append(
            {
                billed: BilledType(by_method, quantities.get(billed), frozenset(policies.get(billed[1], ())))
                for billed, by_method in of_window.items()
            }
        )
    return bills


def _quantities(reader: TenantReader, window: InstantRange) -> dict[_Billed, Quantity]:
    """Return the billed quantities of the calculated days, where all lines have one, and in the same unit."""
    calculated = {file.day for file in reader.scan(CHARGEBACKS, Selection(window)).files if file.day is not None}
    scan = reader.scan(BILLING_LINES, Selection(window)).only(calculated)
    if not scan.files:
        return {}
    condition = scan.condition()
    rows = reader.cursor.rows(
        f"""SELECT resource_id, product_type, sum(quantity), min(unit)
            FROM {SOURCE} WHERE {condition.sql} GROUP BY resource_id, product_type
            HAVING count(quantity) = count(*) AND count(DISTINCT coalesce(unit, '')) = 1""",
        condition.parameters,
    )
    return {(resource, product): Quantity(to_units(amount), unit) for resource, product, amount, unit in rows}


def policies_used(reader: TenantReader, window: InstantRange) -> dict[str, list[str]]:
    """Return the hashes of the policies by which the rows of each product type were split.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    scan = reader.scan(CHARGEBACKS, Selection(window))
    if not scan.files:
        return {}
    condition = scan.condition()
    rows: list[Any] = reader.cursor.rows(
        f"SELECT product_type, list(DISTINCT policy_hash) FROM {SOURCE} WHERE {condition.sql} GROUP BY product_type",
        condition.parameters,
    )
    return dict(rows)
