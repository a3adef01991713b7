"""The columns of FOCUS data, each with the SQL of its values: this table is the mapping to FOCUS.

The expressions are over the relations of :func:`~chargeback.reports.focus.file.focus_query`: a billing line ``line``,
one of its shares ``share``, the billed ``resource`` with its ``environment``, the ``payer`` in the inventory, the
``product``, the billed ``account``, the tags of the resource (``its``) and of the payer (``theirs``), and how all of it
was posted (``posting``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from chargeback.model.focus import IDENTITIES, V1_2, V1_4, VERSIONS
from chargeback.store.queries.sql_format import instant_text, json_object, json_text

TEXT: Final = pa.string()
MONEY: Final = pa.decimal128(38, 12)
#: With only twelve places, price × quantity of a small share of an expensive line would differ from the list cost.
QUANTITY: Final = pa.decimal128(38, 18)
USAGE: Final = pa.decimal128(38, 6)
NUMBER: Final = pa.int16()
INSTANT: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class FocusColumn:
    """A column: its name, the SQL of its values, their type, whether they are JSON, and the versions that have it."""

    name: str
    sql: str
    type: pa.DataType = TEXT
    is_json: bool = False
    versions: tuple[str, ...] = VERSIONS


@dataclass(frozen=True)
class FocusLayout:
    """The layout of FOCUS data: the version, how lines are split, and the ``columns``; none means all."""

    version: str = VERSIONS[0]
    split: str = IDENTITIES
    columns: tuple[str, ...] = ()


def trimmed(number: str) -> str:
    """Return the plain notation of a DECIMAL, without superfluous zeros, as SQL."""
    return f"regexp_replace(({number})::VARCHAR, '\\.?0*$', '')"


def _if_usage(sql: str) -> str:
    return f"CASE WHEN NOT product.is_credit THEN {sql} END"


def _signed(sql: str) -> str:
    return f"CASE WHEN posting.is_reversal THEN -({sql}) ELSE {sql} END"


def _sorted_json(tags: str) -> str:
    return f"to_json(map_from_entries(list_sort(map_entries({tags}))))::VARCHAR"


_ALL_TAGS: Final = (
    "CASE WHEN its.tags IS NULL THEN theirs.tags WHEN theirs.tags IS NULL THEN its.tags "
    "ELSE map_concat(its.tags, theirs.tags) END"
)
_PRICE_DETAILS: Final = json_object(
    [("x_NetworkAccessType", json_text("line.network_access_type")), ("x_Tier", json_text("line.tier"))]
)
_USED: Final = (
    "CASE WHEN share.usage_unit IS NOT NULL AND share.used IS NOT NULL THEN "
    f"concat(',\"UsageUnit\":', to_json(share.usage_unit), ',\"UsageQuantity\":', {trimmed('share.used')}) ELSE '' END"
)
_METHOD_DETAILS: Final = (
    'CASE WHEN share.method IS NOT NULL THEN concat(\'{"Elements":[{"AllocatedRatio":\', '
    f"{trimmed('share.ratio')}, {_USED}, '}}]}}') END"
)
_OWNED: Final = "line.resource_id <> account.id"
_BILLING_MONTH: Final = "coalesce(posting.month, date_trunc('month', line.timestamp))"

_COLUMNS: Final = (
    FocusColumn("AllocatedMethodDetails", _METHOD_DETAILS, is_json=True, versions=(V1_4,)),
    FocusColumn("AllocatedMethodId", "share.method", versions=(V1_4,)),
    FocusColumn("AllocatedResourceId", "share.payer_id", versions=(V1_4,)),
    FocusColumn("AllocatedResourceName", "share.payer_name", versions=(V1_4,)),
    FocusColumn(
        "AllocatedTags",
        f"CASE WHEN share.payer_id IS NOT NULL THEN {_sorted_json('theirs.tags')} END",
        is_json=True,
        versions=(V1_4,),
    ),
    FocusColumn("BilledCost", _signed("share.amount"), MONEY),
    FocusColumn("BillingAccountId", "account.id"),
    FocusColumn("BillingAccountName", "account.name"),
    FocusColumn("BillingCurrency", "line.currency"),
    FocusColumn("BillingPeriodEnd", f"{_BILLING_MONTH} + INTERVAL 1 MONTH", INSTANT),
    FocusColumn("BillingPeriodStart", _BILLING_MONTH, INSTANT),
    FocusColumn("ChargeCategory", "CASE WHEN product.is_credit THEN 'Credit' ELSE 'Usage' END"),
    FocusColumn("ChargeClass", "posting.charge_class"),
    FocusColumn("ChargeDescription", "coalesce(line.description, concat(product.service, ': ', line.product_type))"),
    FocusColumn(
        "ChargeFrequency",
        "CASE WHEN product.is_credit THEN 'One-Time' WHEN product.is_recurring THEN 'Recurring' ELSE 'Usage-Based' END",
    ),
    FocusColumn(
        "ChargePeriodEnd",
        "line.timestamp + CASE line.granularity WHEN 'hourly' THEN INTERVAL 1 HOUR ELSE INTERVAL 1 DAY END",
        INSTANT,
    ),
    FocusColumn("ChargePeriodStart", "line.timestamp", INSTANT),
    FocusColumn("CommitmentDiscountStatus", "NULL"),
    FocusColumn("ConsumedQuantity", _signed("share.quantity"), QUANTITY),
    FocusColumn("ConsumedUnit", _if_usage("line.pricing_unit")),
    FocusColumn(
        "ContractedCost",
        _signed("CASE WHEN account.has_programme THEN share.list_cost ELSE share.amount END"),
        MONEY,
    ),
    FocusColumn("EffectiveCost", _signed("share.amount"), MONEY),
    FocusColumn("HostProviderName", "coalesce(resource.cloud, product.issuer)", versions=(V1_4,)),
    FocusColumn("InvoiceId", "NULL"),
    FocusColumn("InvoiceIssuerName", "product.issuer"),
    FocusColumn("ListCost", _signed("share.list_cost"), MONEY),
    FocusColumn("ListUnitPrice", "line.list_unit_price", MONEY),
    FocusColumn("PricingCategory", _if_usage("'Standard'")),
    FocusColumn("PricingQuantity", _signed("share.quantity"), QUANTITY),
    FocusColumn("PricingUnit", _if_usage("line.pricing_unit")),
    FocusColumn("ProviderName", "product.issuer", versions=(V1_2,)),
    FocusColumn("PublisherName", "product.issuer", versions=(V1_2,)),
    FocusColumn("RegionId", "resource.region"),
    FocusColumn("RegionName", "resource.region"),
    FocusColumn("ResourceId", f"CASE WHEN {_OWNED} THEN line.resource_id END"),
    FocusColumn(
        "ResourceName",
        f"CASE WHEN {_OWNED} THEN nullif(coalesce(line.resource_name, resource.name), line.resource_id) END",
    ),
    FocusColumn("ResourceType", f"CASE WHEN {_OWNED} THEN coalesce(resource.type, 'resource') END"),
    FocusColumn("ServiceCategory", "product.service_category"),
    FocusColumn("ServiceName", "product.service"),
    FocusColumn("ServiceProviderName", "product.issuer", versions=(V1_4,)),
    FocusColumn("ServiceSubcategory", "product.service_subcategory"),
    FocusColumn("SkuId", _if_usage("line.product_type")),
    FocusColumn("SkuMeter", _if_usage("line.product_type")),
    FocusColumn("SkuPriceDetails", _if_usage(f"nullif({_PRICE_DETAILS}, '{{}}')"), is_json=True),
    FocusColumn("SkuPriceId", _if_usage("concat_ws('|', line.product_type, line.network_access_type, line.tier)")),
    FocusColumn("SubAccountId", "line.environment_id"),
    FocusColumn("SubAccountName", "coalesce(environment.name, line.environment_id)"),
    FocusColumn("SubAccountType", "CASE WHEN line.environment_id IS NOT NULL THEN 'Environment' END"),
    FocusColumn("Tags", _sorted_json(_ALL_TAGS), is_json=True, versions=(V1_2,)),
    FocusColumn("Tags", _sorted_json("its.tags"), is_json=True, versions=(V1_4,)),
    FocusColumn("x_AllocatedMethodId", "share.method", versions=(V1_2,)),
    FocusColumn("x_AllocatedResourceId", "share.payer_id", versions=(V1_2,)),
    FocusColumn("x_AllocatedResourceName", "share.payer_name", versions=(V1_2,)),
    FocusColumn("x_AllocationDetail", "share.detail"),
    FocusColumn("x_ChainPosition", "share.chain_position", NUMBER),
    FocusColumn("x_CostType", "share.cost_type"),
    FocusColumn("x_IdentityType", "payer.type"),
    FocusColumn("x_IdentityUsage", "share.used", USAGE),
    FocusColumn("x_LineId", "line.line_id"),
    FocusColumn("x_NetworkAccessType", "line.network_access_type"),
    FocusColumn("x_OriginCost", "line.total_cost", MONEY),
    FocusColumn("x_OriginalAmount", "line.original_amount", MONEY),
    FocusColumn("x_PolicyHash", "share.policy_hash"),
    FocusColumn("x_Portion", "share.portion", NUMBER),
    FocusColumn("x_ProductCategory", "line.product_category"),
    FocusColumn("x_ProviderLineId", "line.provider_id"),
    FocusColumn("x_Tier", "line.tier"),
    FocusColumn("x_TotalUsage", "share.total_usage", USAGE),
)
#: With a discount that comes with a programme the list prices are those of the contract.
_CONTRACTED_PRICE: Final = FocusColumn("ContractedUnitPrice", "line.list_unit_price", MONEY)


#: With contracts, which charges went to their commitments.
_CONTRACT_APPLIED: Final = FocusColumn("ContractApplied", "share.contract_applied", is_json=True, versions=(V1_4,))


def all_columns(
    version: str, categories: Sequence[str], *, has_programme: bool, has_contracts: bool
) -> tuple[FocusColumn, ...]:
    """Return all columns of a version: those of FOCUS by name, then custom ones by name. ``categories`` are the keys of
    the tenant's cost categories, in their order."""
    found = [column for column in _COLUMNS if version in column.versions]
    found += [_CONTRACTED_PRICE] if has_programme else []
    found += [_CONTRACT_APPLIED] if has_contracts and version in _CONTRACT_APPLIED.versions else []
    found += _category_columns(categories)
    return tuple(sorted(found, key=lambda column: (column.name.startswith("x_"), column.name)))


def csv_line(columns: Iterable[FocusColumn]) -> str:
    """Return the SQL of a line of CSV with its end, as one text: plain decimals, instants as ISO 8601 with a ``Z``."""
    texts = ", ',', ".join(f"({_csv_field(column)})" for column in columns)
    return f"concat({texts}, chr(13) || chr(10)) AS line"


def _csv_field(column: FocusColumn) -> str:
    if pa.types.is_decimal(column.type):
        return trimmed(f"({column.sql})::DECIMAL({column.type.precision}, {column.type.scale})")
    if column.type == INSTANT:
        return instant_text(f"({column.sql})")
    text = f"({column.sql})::VARCHAR"
    quoted = f"""'"' || replace({text}, '"', '""') || '"'"""
    return f"""CASE WHEN regexp_matches({text}, '[",\r\n]') THEN {quoted} ELSE {text} END"""


def _category_columns(keys: Iterable[str]) -> list[FocusColumn]:
    names: dict[str, FocusColumn] = {}
    for place, key in enumerate(keys):
        words = "".join(f"{word[0].upper()}{word[1:]}" for word in key.replace("-", "_").split("_") if word)
        name = f"x_CostCategory{words}"
        name = name if name not in names else f"{name}{place}"
        names[name] = FocusColumn(name, f"share.category_{place}")
    return list(names.values())
