"""Chargeback rows, their dimensions, dates and issues."""

import decimal
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import AmountText, FactsParameters, TagKey, Text, tag_pair
from chargeback.api.problems import InvalidParameter, NotFound
from chargeback.api.responses import page_response, table_response
from chargeback.api.routing import CSV, CsvFile, Routes
from chargeback.api.selecting import ChargebackFilters, PostedQuery, TagFilters
from chargeback.api.tenant_requests import Facts
from chargeback.model.chargeback import CostType
from chargeback.reports.answers import (
    CategoryPart,
    DatesAnswer,
    Exact,
    Instant,
    Metadata,
    PageOf,
    ResponseModel,
    Sum,
    left_out,
)
from chargeback.reports.explain.links import chargeback_link
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, names_of
from chargeback.store.queries.chargebacks import allocation_issues, dimension
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import CHARGE_CLASS
from chargeback.store.queries.paging import Order
from chargeback.store.queries.posted import CORRECTION
from chargeback.store.queries.selection import Selection, TagFilter


class ChargebackQuery(ChargebackFilters):
    """Parameters of the list of chargebacks, and of the allocation issues."""

    tag_key: TagKey | None = Field(default=None, description="Only rows with this tag.")
    tag_value: Text | None = Field(default=None, description="Only rows with this tag value; requires `tag_key`.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check the dates, and the tag's value with its key."""
        return super().cross_checks(raw, now) + tag_pair(raw)

    def further_filters(self) -> TagFilters:
        """The filter by one tag, whose value may contain commas."""
        if self.tag_key is None:
            return ()
        return (TagFilter(self.tag_key, None if self.tag_value is None else frozenset([self.tag_value])),)


class ChargebackListQuery(ChargebackQuery, PostedQuery):
    """Parameters of the list of chargebacks."""

    of_lists: ClassVar[frozenset[str]] = frozenset({"sort_by", "sort_order", "min_amount", "names"})

    sort_by: Literal["timestamp", "amount"] = Field(default="timestamp", description="What the rows are ordered by.")
    sort_order: Literal["asc", "desc"] = Field(default="asc", description="Direction.")
    min_amount: AmountText | None = Field(default=None, description="Only rows of at least this amount.")
    names: bool = Field(
        default=False, description="Whether rows come with the display names of their identity and resource."
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that posted costs are not ordered."""
        errors = super().cross_checks(raw, now)
        if raw.get("basis") == "posted":
            others = [name for name in ("sort_by", "sort_order", "min_amount") if name in raw]
            errors += [InvalidParameter(name, "should not be given with basis=posted") for name in others]
        return errors

    @property
    def order(self) -> Order | None:
        """Return the order if it is not the default one."""
        if (self.sort_by, self.sort_order) == ("timestamp", "asc"):
            return None
        return Order(self.sort_by, self.sort_order == "desc")

    def selection(self, lookback_days: int, last: date | None = None) -> Selection:
        """Return the requested rows."""
        least = None if self.min_amount is None else decimal.Decimal(self.min_amount)
        return replace(super().selection(lookback_days, last), min_amount=least)


class Dimension(ResponseModel):
    """The fields of a chargeback row, without its time and its amount."""

    dimension_id: int = Field(description="Never changes, even after a recalculation; below 2^53.", examples=[1])
    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    identity_id: str = Field(
        description="The identity that pays; `UNALLOCATED` if none was found.", examples=["sa-123abc"]
    )
    cost_type: CostType
    allocation_method: str = Field(examples=["usage_ratio"])
    allocation_detail: str = Field(examples=["USAGE_RATIO_ALLOCATION"])


class ChargebackRow(Dimension):
    """One share of one billing line."""

    timestamp: Instant
    amount: Exact
    tags: dict[str, str] = Field(
        description="Resolved at query time: the identity's tags take precedence over the resource's.",
        examples=[{"team": "payments"}],
    )
    categories: dict[str, list[CategoryPart]] | None = Field(
        default=None,
        description="Where the tenant has cost categories: by key, the values to which the row is assigned.",
    )
    metadata: Metadata
    posted_period: str | None = left_out("With `basis=posted` only: the month to which it is posted.")
    charge_class: Literal["regular", "correction"] | None = left_out(
        "With `basis=posted` only. A correction is the difference from what was posted before, for one day and "
        "dimension."
    )
    charge_period: str | None = left_out("With `basis=posted` only: the month in which it was charged.")
    identity_name: str | None = Field(
        default=None, description="With `names` only: the identity's display name.", examples=["orders-service"]
    )
    resource_name: str | None = Field(
        default=None, description="With `names` only: the resource's display name.", examples=["prod"]
    )


class AllocationIssue(ResponseModel):
    """Costs that could not be allocated as their policy intends, summed over the range."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    identity_id: str = Field(examples=["UNALLOCATED"])
    allocation_detail: str = Field(description="Why.", examples=["NO_METRICS_LOCATED"])
    row_count: int
    usage_cost: Sum
    shared_cost: Sum
    total_cost: Sum


router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])

_ISSUE_COLUMNS: Final = AllocationIssue.columns()


@router.get("", response_model=PageOf[ChargebackRow], needs=Right.READ, files=CsvFile(rows="chargebacks.csv"))
def list_chargebacks(request: Facts, params: Annotated[ChargebackListQuery, Query()]) -> Response:
    """List chargeback rows with their tags, ordered by time and ids or by amount.

    `explain` in the metadata of a row is the link to its explanation, relative to the address of the list."""
    reader = request.reader
    selection = request.selection(params)
    items, total = reader.list_rows(CHARGEBACKS, selection, params.paging, params.order)
    if params.names:
        _add_names(request.tenant, items)
    for item in items:
        if item.get(CHARGE_CLASS) != CORRECTION:
            item["metadata"]["explain"] = chargeback_link(item, params.as_of)
    return page_response(items, total, page=params.page, page_size=params.page_size)


def _add_names(tenant: TenantView, items: list[dict[str, Any]]) -> None:
    """Add the display names of identity and resource to rows."""
    with tenant.store.control.read() as connection:
        for field, kind in (("identity", IDENTITIES), ("resource", RESOURCES)):
            names = names_of(connection, kind, {item[f"{field}_id"] for item in items})
            for item in items:
                known = names.get(item[f"{field}_id"])
                item[f"{field}_name"] = None if known is None else known.name


@router.get("/dates", needs=Right.READ)
def list_dates(request: Facts, _params: Annotated[FactsParameters, Query()]) -> DatesAnswer:
    """List all UTC days with chargeback rows; date parameters are ignored."""
    return DatesAnswer(dates=request.reader.dates(CHARGEBACKS))


@router.get("/allocation-issues", needs=Right.READ, files=CSV)
def list_issues(request: Facts, params: Annotated[ChargebackQuery, Query()]) -> PageOf[AllocationIssue] | Response:
    """List costs that could not be allocated as intended by their policy, with the reason, summed over the range."""
    pages = () if request.wants_csv else (params.paging,)
    found, total = allocation_issues(request.reader, request.selection(params), *pages)
    issues = [AllocationIssue(**each) for each in found]
    if request.wants_csv:
        return table_response("allocation_issues.csv", _ISSUE_COLUMNS, issues)
    return PageOf[AllocationIssue].of(issues, total, params.paging)


@router.get(
    "/{dimension_id}",
    needs=Right.READ,
    problems={404: "There is no such tenant, or no such dimension."},
)
def one_dimension(
    request: Facts,
    dimension_id: Annotated[str, Path(description="A `dimension_id` of a chargeback row.", pattern="^[0-9]{1,16}$")],
    _params: Annotated[FactsParameters, Query()],
) -> Dimension:
    """Return one dimension: the common fields of its chargeback rows."""
    found = dimension(request.reader, int(dimension_id))
    if found is None:
        name = request.tenant.tenant_name
        raise NotFound(f"Tenant {name} has no chargeback dimension {dimension_id[:80]!r}.")
    return Dimension(**found)
