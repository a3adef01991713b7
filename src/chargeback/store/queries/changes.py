"""What two ranges of days have to be compared by, to tell why costs changed: charges, bills, quantities, policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from chargeback.model.days import InstantRange
from chargeback.model.effects import BilledType, Charged, Quantity
from chargeback.model.money import to_units, total
from chargeback.store.queries.costs import days_with_rows
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import KeyValues

_PAYER: Final = "identity_id"
#: What is billed, and by which method its cost was allocated.
_BILLED: Final = ("resource_id", "product_type", "allocation_method")
#: A product type on a resource.
_Billed = tuple[str, str]
_Costs = dict[_Billed, dict[str, int]]


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """What is charged for a product type on a resource in both ranges, and the difference of each identity, in units of
    10⁻¹²."""

    resource_id: str
    product_type: str
    before: Charged
    after: Charged
    by_identity: Mapping[str, int]


@dataclass(frozen=True)
class ComparedCharges:
    """The charges of a range (``before``) and of another (``after``).

    Attributes:
        days: how many UTC days of each have costs, whatever the filters.
        parts: by the values that were grouped by: the selected charges for each product type on each resource, in units
            of 10⁻¹².
        amounts: by the same values: the selected charges before and after, with all their digits.
    """

    days: tuple[int, int]
    parts: Mapping[KeyValues, Sequence[ComparedPart]]
    amounts: Mapping[KeyValues, tuple[Decimal, Decimal]]


def compared_charges(
    reader: TenantReader, selection: Selection, before: InstantRange, by: Sequence[str]
) -> ComparedCharges:
    """Return the selected charges beside those of the range ``before``, by columns or ``tag:<key>``. They are parts of
    the whole bills or, within a scope, of the billing lines of which some row is visible.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped so.
    """
    windows = (before, selection.window)
    charged: dict[KeyValues, dict[_Billed, tuple[Counter[str], Counter[str]]]] = {}
    payers: dict[tuple[KeyValues, _Billed], Counter[str]] = {}
    summed: dict[KeyValues, tuple[list[Decimal], list[Decimal]]] = {}
    for period, (*grouped, payer), billed, method, amount in _sums(reader, selection, windows, (*by, _PAYER)):
        key, units = tuple(grouped), to_units(amount)
        sides = charged.setdefault(key, {}).setdefault(billed, (Counter(), Counter()))
        sides[period][method] += units
        payers.setdefault((key, billed), Counter())[payer or ""] += units if period else -units
        summed.setdefault(key, ([], []))[period].append(amount)
    bills = _bills(reader, windows)
    parts = {
        key: [
            ComparedPart(
                billed[0],
                billed[1],
                Charged(before_by_method, bills[0].get(billed)),
                Charged(after_by_method, bills[1].get(billed)),
                payers[key, billed],
            )
            for billed, (before_by_method, after_by_method) in by_billed.items()
        ]
        for key, by_billed in charged.items()
    }
    days = (days_with_rows(reader, before), days_with_rows(reader, selection.window))
    amounts = {key: (total(earlier), total(later)) for key, (earlier, later) in summed.items()}
    return ComparedCharges(days, parts, amounts)


def _sums(
    reader: TenantReader, selection: Selection, windows: Sequence[InstantRange], by: Sequence[str]
) -> list[tuple[int, KeyValues, _Billed, str, Decimal]]:
    """Return the sums of the selected rows of each window: (window, key, what is billed, method, amount)."""
    keys = keys_of(CHARGEBACKS, (*by, *_BILLED))
    sums = reader.sums(Sums(CHARGEBACKS, selection, keys, periods=tuple(windows)))
    columns = ", ".join(f"d{number}" for number in range(len(keys)))
    rows = sums.rows(f"SELECT period, {columns}, {sums.amount()} FROM sums")
    return [(row[0], row[1:-4], (row[-4], row[-3]), row[-2], row[-1]) for row in rows]


def _bills(reader: TenantReader, windows: Sequence[InstantRange]) -> list[dict[_Billed, BilledType]]:
    """Return what was billed in each window, by product type and resource, of the days that are calculated. Costs are
    those that were charged, so that the shares of all payers sum to one."""
    if reader.sees_everything:
        costs: list[_Costs] = [{} for _ in windows]
        for period, _, billed, method, amount in _sums(reader, Selection(windows[0]), windows, ()):
            costs[period].setdefault(billed, {})[method] = to_units(amount)
        return [_bill(reader, window, its) for window, its in zip(windows, costs, strict=True)]
    return [_bill(reader, window, *_costs_of_visible_lines(reader, window)) for window in windows]


def _bill(reader: TenantReader, window: InstantRange, costs: _Costs, only: str = "") -> dict[_Billed, BilledType]:
    if not costs:
        return {}
    (quantities, refunded), policies = _lines(reader.unscoped(), window, only), policies_used(reader, window)
    return {
        billed: BilledType(
            by_method, quantities.get(billed), frozenset(policies.get(billed[1], ())), billed in refunded
        )
        for billed, by_method in costs.items()
    }


def _costs_of_visible_lines(reader: TenantReader, window: InstantRange) -> tuple[_Costs, str]:
    """Return what was charged to all payers for the lines of which the reader sees a row, by allocation method; and the
    condition on a line that it is one of these, as SQL."""
    visible = reader.scan(CHARGEBACKS, Selection(window))
    if not visible.files:
        return {}, ""
    condition, lines = visible.condition(), reader.cursor.new_name("visible_lines")
    reader.cursor.run(
        f"CREATE TEMP TABLE {lines} AS SELECT DISTINCT date, line_id FROM {SOURCE} WHERE {condition.sql}",
        condition.parameters,
    )
    only = f" AND (date, line_id) IN (SELECT (date, line_id) FROM {lines})"
    condition = reader.unscoped().scan(CHARGEBACKS, Selection(window)).condition()
    rows = reader.cursor.rows(
        f"""SELECT resource_id, product_type, allocation_method, sum(amount)
            FROM {SOURCE} WHERE {condition.sql}{only} GROUP BY ALL""",
        condition.parameters,
    )
    costs: _Costs = {}
    for resource, product, method, amount in rows:
        costs.setdefault((resource, product), {})[method] = to_units(amount)
    return costs, only


def _lines(reader: TenantReader, window: InstantRange, only: str) -> tuple[dict[_Billed, Quantity], set[_Billed]]:
    """Return the billed quantities of the calculated days, where all lines have one, and in the same unit; and what has
    both charges and refunds. ``only`` is a condition on the lines."""
    calculated = {file.day for file in reader.scan(CHARGEBACKS, Selection(window)).files if file.day is not None}
    scan = reader.scan(BILLING_LINES, Selection(window)).only(calculated)
    if not scan.files:
        return {}, set()
    condition = scan.condition()
    rows = reader.cursor.rows(
        f"""SELECT resource_id, product_type, sum(quantity), min(unit),
                   count(quantity) = count(*) AND count(DISTINCT coalesce(unit, '')) = 1,
                   min(total_cost) < 0 AND max(total_cost) > 0
            FROM {SOURCE} WHERE {condition.sql}{only} GROUP BY resource_id, product_type""",
        condition.parameters,
    )
    quantities = {row[:2]: Quantity(to_units(row[2]), row[3]) for row in rows if row[4]}
    return quantities, {row[:2] for row in rows if row[5]}


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
