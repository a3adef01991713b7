"""Billing lines."""

from typing import Annotated, ClassVar

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import Id, OptionalText, Text
from chargeback.api.responses import page_response
from chargeback.api.routing import CsvFile, Routes
from chargeback.api.selecting import DatasetQuery, Filters
from chargeback.api.tenant_requests import Facts
from chargeback.reports.answers import Exact, Instant, Metadata, PageOf, ResponseModel
from chargeback.store.queries.datasets import BILLING_LINES, Dataset


class BillingColumns(Filters):
    """The columns by which billing lines are filtered."""

    product_type: list[Text] = Field(default=[], description="Only lines of this product type, as billed.")
    resource_id: list[Id] = Field(default=[], description="Only lines of this resource.")
    product_category: list[Text] = Field(default=[], description="Only lines of this product category.")
    environment_id: list[OptionalText] = Field(
        default=[], description="Only lines in this environment; empty: lines in none."
    )
    cluster_id: list[OptionalText] = Field(
        default=[],
        description="Only lines of resources in this Kafka cluster, as the inventory has it now; empty: of those in "
        "none.",
    )
    line_id: list[Text] = Field(default=[], description="Only this line.")
    ecosystem: list[Text] = Field(default=[], description="Only lines on the bill of this ecosystem.")


class BillingQuery(BillingColumns, DatasetQuery):
    """Parameters of the list of billing lines."""

    dataset: ClassVar[Dataset] = BILLING_LINES

    excluded: BillingColumns = BillingColumns()


class BillingLineItem(ResponseModel):
    """One line of the provider's bill."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    timestamp: Instant
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    quantity: Exact | None
    unit_price: Exact | None
    total_cost: Exact
    currency: str = Field(examples=["USD"])
    granularity: str = Field(examples=["daily"])
    metadata: Metadata


router = Routes(prefix="/tenants/{tenant_name}", tags=["Billing"])


@router.get("/billing", response_model=PageOf[BillingLineItem], needs=Right.READ, files=CsvFile(rows="billing.csv"))
def list_billing(request: Facts, params: Annotated[BillingQuery, Query()]) -> Response:
    """List billing lines as billed by the provider, ordered by time and ids."""
    reader = request.reader
    selection = request.selection(params)
    items, total = reader.list_rows(BILLING_LINES, selection, params.paging)
    return page_response(items, total, page=params.page, page_size=params.page_size)
