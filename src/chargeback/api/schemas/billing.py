"""Billing lines."""

from typing import ClassVar

from pydantic import Field

from chargeback.api.parameters import Id, Text
from chargeback.api.schemas.common import Decimal, Instant, Metadata, ResponseModel
from chargeback.api.schemas.datasets import DatasetQuery
from chargeback.store.queries.datasets import BILLING_LINES, Dataset


class BillingQuery(DatasetQuery):
    """Parameters of the list of billing lines."""

    dataset: ClassVar[Dataset] = BILLING_LINES

    product_type: Text | None = Field(default=None, description="Only lines of this product type, as billed.")
    resource_id: Id | None = Field(default=None, description="Only lines of this resource.")


class BillingLineItem(ResponseModel):
    """One line of the provider's bill."""

    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    timestamp: Instant
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    quantity: Decimal | None
    unit_price: Decimal | None
    total_cost: Decimal
    currency: str = Field(examples=["USD"])
    granularity: str = Field(examples=["daily"])
    metadata: Metadata
