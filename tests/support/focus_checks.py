"""Rules for data in FOCUS that validators do not check: exact sums, raw texts, and rules across rows.

The expected values are calculated again from the bill with Python's decimals.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import pyarrow as pa
from focus_data_toolkit import lint_focus_1_4_structure

from chargeback.model.focus import V1_2, V1_4, subcategories
from tests.support.focus import FocusData

Row = dict[str, Any]

_EXACT: Final = Context(prec=100)
_UNIT: Final = Decimal(1).scaleb(-12)
_TOLERANCE: Final = Decimal(1).scaleb(-9)
_INSTANT: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?")
_CUSTOM: Final = re.compile(r"x_[A-Z][A-Za-z0-9]*")
_ALLOWED: Final[dict[str, set[str | None]]] = {
    "ChargeCategory": {"Usage", "Credit"},
    "ChargeClass": {None},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "CommitmentDiscountStatus": {None},
    "InvoiceId": {None},
    "PricingCategory": {"Standard", None},
    "SubAccountType": {"Environment", None},
}
_NEVER_NULL: Final = (
    *("BilledCost", "EffectiveCost", "ContractedCost", "ListCost", "BillingAccountId", "BillingAccountName"),
    *("BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"),
    *("ChargeCategory", "ChargeDescription", "ChargeFrequency", "InvoiceIssuerName"),
    *("ServiceCategory", "ServiceName", "ServiceSubcategory", "x_LineId", "x_OriginCost"),
)
#: Columns that are null together in every row.
_TOGETHER: Final = (
    ("PricingQuantity", "PricingUnit"),
    ("ConsumedQuantity", "ConsumedUnit"),
    ("SkuId", "SkuMeter"),
    ("SkuId", "SkuPriceId"),
    ("SkuPriceId", "ListUnitPrice"),
    ("SkuPriceId", "PricingCategory"),
    ("ResourceId", "ResourceType"),
    ("RegionId", "RegionName"),
    ("SubAccountId", "SubAccountName"),
    ("SubAccountId", "SubAccountType"),
)
_OF_SHARES: Final = {
    V1_2: ("x_AllocatedResourceId", "x_AllocatedResourceName", "x_AllocatedMethodId"),
    V1_4: ("AllocatedResourceId", "AllocatedResourceName", "AllocatedMethodId"),
}
#: Columns that may differ between the rows of one line, besides costs and quantities.
_OWN: Final = re.compile(
    r"(x_)?Allocated\w+|x_(AllocationDetail|ChainPosition|CostType|IdentityType|IdentityUsage|PolicyHash|Portion|"
    r"TotalUsage|CostCategory\w+)|(Billed|Effective|Contracted|List)Cost|(Pricing|Consumed)Quantity|ContractApplied"
)


def check_focus(data: FocusData) -> None:
    """Check everything.

    Raises:
        AssertionError: something is wrong; the message says what, and in which row.
    """
    rows = data.table.to_pylist()
    for row in rows:
        _check_row(row, data.layout.version)
    _check_lines(data, rows)
    _check_services(rows)
    _check_columns(data)
    _check_texts(data, rows)
    if data.layout.version == V1_4:
        _check_by_lint(data)
    billed = sum((line["total_cost"] for line in data.bill), Decimal(0))
    assert sum((row["BilledCost"] for row in rows), Decimal(0)) == billed


def _check_row(row: Row, version: str) -> None:
    where = f"line {row['x_LineId']}: "
    for name in _NEVER_NULL:
        assert row[name] is not None, f"{where}{name} is null"
    for name, allowed in _ALLOWED.items():
        assert row[name] in allowed, f"{where}{name} is {row[name]!r}"
    for one, other in _TOGETHER:
        assert (row[one] is None) == (row[other] is None), f"{where}{one} and {other}"
    payer_id, payer_name, method = (row[name] for name in _OF_SHARES[version])
    assert (payer_id is None) == (payer_name is None), f"{where}the payer's name"
    assert payer_id is None or method is not None, f"{where}a payer without a method"
    assert row["ResourceId"] is not None or row["ResourceName"] is None, f"{where}a name without a resource"
    assert row["ResourceName"] is None or row["ResourceName"] != row["ResourceId"], f"{where}the id as a name"
    assert row["ServiceSubcategory"] in subcategories(row["ServiceCategory"]), f"{where}ServiceSubcategory"
    assert row["ChargePeriodStart"] < row["ChargePeriodEnd"], f"{where}ChargePeriodEnd"
    assert row["BillingPeriodStart"] <= row["ChargePeriodStart"], f"{where}BillingPeriodStart"
    assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"], f"{where}BillingPeriodEnd"
    assert _is_month(row["BillingPeriodStart"], row["BillingPeriodEnd"]), f"{where}the billing period is no month"
    _check_price(row, where)


def _is_month(start: datetime, end: datetime) -> bool:
    following = datetime(start.year + start.month // 12, start.month % 12 + 1, 1, tzinfo=UTC)
    return start == datetime(start.year, start.month, 1, tzinfo=UTC) and end == following


def _check_price(row: Row, where: str) -> None:
    assert row["EffectiveCost"] == row["BilledCost"], f"{where}EffectiveCost"
    if row["ChargeCategory"] == "Credit":
        assert row["PricingQuantity"] is None, f"{where}a credit with a quantity"
        assert row["ListCost"] == row["BilledCost"], f"{where}ListCost of a credit"
        return
    price, quantity, cost = row["ListUnitPrice"], row["PricingQuantity"], row["ListCost"]
    assert price >= 0, f"{where}a negative price"
    missed = _EXACT.subtract(_EXACT.multiply(price, quantity), cost).copy_abs()
    assert missed <= _TOLERANCE * max(cost.copy_abs(), Decimal(1)), f"{where}price × quantity misses by {missed}"
    assert row["ConsumedQuantity"] == quantity, f"{where}ConsumedQuantity"


def _check_lines(data: FocusData, rows: Iterable[Row]) -> None:
    by_line: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_line[row["x_LineId"]].append(row)
    bill = {line["line_id"]: line for line in data.bill}
    assert by_line.keys() == bill.keys(), "the lines are not those of the bill"
    for line_id, of_line in by_line.items():
        line, where = bill[line_id], f"line {line_id}: "
        shared = [name for name in of_line[0] if not _OWN.fullmatch(name)]
        if data.layout.version == V1_2:
            shared.remove("Tags")
        for name in shared:
            assert len({row[name] for row in of_line}) == 1, f"{where}{name} differs"
        assert _total(of_line, "BilledCost") == line["total_cost"], f"{where}BilledCost"
        assert _applied(of_line) <= abs(line["total_cost"]), f"{where}ContractApplied"
        if of_line[0]["ChargeCategory"] == "Credit":
            continue
        assert _total(of_line, "ListCost") == _list_cost(line), f"{where}ListCost"
        assert _total(of_line, "PricingQuantity") == _quantity(line), f"{where}PricingQuantity"
        if data.layout.version == V1_4:
            _check_ratios(of_line, where)


def _applied(rows: Iterable[Row]) -> Decimal:
    """Return the amount applied to or returned from commitments."""
    applied = [json.loads(row["ContractApplied"], parse_float=Decimal) for row in rows if row.get("ContractApplied")]
    elements = (each for found in applied for each in found["Elements"])
    return abs(sum((Decimal(each.get("ContractCommitmentAppliedCost", 0)) for each in elements), Decimal(0)))


def _total(rows: Iterable[Row], name: str) -> Decimal:
    found = Decimal(0)
    for row in rows:
        found = _EXACT.add(found, row[name])
    return found


def _is_priced(line: Row) -> bool:
    """Return whether a line has a price, and a quantity whose shares fit 18 decimals."""
    return line["unit_price"] is not None and line["quantity"] is not None and abs(line["quantity"]) < 10**20


def _signed(line: Row, size: Decimal) -> Decimal:
    is_refund = (line["original_amount"] or line["total_cost"]) < 0
    return size.copy_abs().copy_negate() if is_refund else size.copy_abs()


def _list_cost(line: Row) -> Decimal:
    if not _is_priced(line):
        whole: Decimal = line["total_cost"] if line["original_amount"] is None else line["original_amount"]
        return whole
    exact = _EXACT.multiply(line["unit_price"], line["quantity"])
    return _signed(line, exact.quantize(_UNIT, rounding=ROUND_HALF_UP, context=_EXACT))


def _quantity(line: Row) -> Decimal:
    return _signed(line, line["quantity"] if _is_priced(line) else Decimal(1))


def _check_ratios(rows: list[Row], where: str) -> None:
    details = [
        json.loads(row["AllocatedMethodDetails"], parse_float=Decimal) for row in rows if row["AllocatedMethodId"]
    ]
    ratios = [Decimal(element["AllocatedRatio"]) for each in details for element in each["Elements"]]
    assert all(0 <= ratio <= 1 for ratio in ratios), f"{where}a ratio outside 0 to 1"
    assert not ratios or sum(ratios) == 1, f"{where}the ratios sum to {sum(ratios)}"
    assert not ratios or len(ratios) == len(rows), f"{where}a row has no ratio"


def _check_services(rows: Iterable[Row]) -> None:
    places = {(row["ServiceName"], row["ServiceCategory"], row["ServiceSubcategory"]) for row in rows}
    assert len({name for name, *_ in places}) == len(places), "a service has two places"
    skus = {(row["SkuPriceId"], row["SkuId"]) for row in rows}
    assert len({price for price, _ in skus}) == len(skus), "a price belongs to two SKUs"


def _check_columns(data: FocusData) -> None:
    names = data.table.column_names
    (schema,) = data.metadata["Schema"]
    assert [each["ColumnName"] for each in schema["ColumnDefinition"]] == names, "the metadata has other columns"
    assert names == sorted(names, key=lambda name: (name.startswith("x_"), name)), "the order of the columns"
    for name in names:
        assert not name.startswith("x_") or _CUSTOM.fullmatch(name), f"the name {name}"


def _check_texts(data: FocusData, rows: list[Row]) -> None:
    """Check that the CSV has the same values in the format of FOCUS."""
    texts = list(csv.DictReader(io.StringIO(data.csv, newline="")))
    assert len(texts) == len(rows), "the CSV has other rows"
    kinds = {field.name: field.type for field in data.table.schema}
    for text, row in zip(texts, rows, strict=True):
        assert list(text) == list(row), "the CSV has other columns"
        for name, value in row.items():
            assert _is_text_of(text[name], value, kinds[name]), f"{name} is written {text[name]!r}, not {value!r}"


def _check_by_lint(data: FocusData) -> None:
    """Check that an independent linter of version 1.4 reports nothing."""
    texts = list(csv.DictReader(io.StringIO(data.csv, newline="")))
    report = lint_focus_1_4_structure("CostAndUsage", texts, supported_conditions=("SupportsUnitPricing",))
    assert report.ok, report.violations


def _is_text_of(text: str, value: Any, kind: pa.DataType) -> bool:
    if value is None:
        return text == ""
    if pa.types.is_timestamp(kind):
        return bool(_INSTANT.fullmatch(text)) and datetime.fromisoformat(text) == value
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return bool(_NUMBER.fullmatch(text)) and Decimal(text) == value
    return bool(text == value)
