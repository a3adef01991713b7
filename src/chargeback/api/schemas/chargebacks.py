"""How chargebacks are filtered."""

from typing import ClassVar

from pydantic import Field

from chargeback.api.parameters import Id, OptionalText, Text
from chargeback.api.schemas.datasets import DatasetQuery, Filters
from chargeback.model.chargeback import CostType
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset


class CostColumns(Filters):
    """The columns by which costs are filtered."""

    identity_id: list[Text] = Field(default=[], description="Only costs charged to this identity.")
    product_type: list[Text] = Field(default=[], description="Only this product type.")
    resource_id: list[Id] = Field(default=[], description="Only costs of this resource.")
    cost_type: list[CostType] = Field(default=[], description="Only usage cost, or only shared cost.")
    product_category: list[Text] = Field(default=[], description="Only this product category.")
    environment_id: list[OptionalText] = Field(
        default=[], description="Only costs in this environment; empty: costs in none."
    )
    cluster_id: list[OptionalText] = Field(
        default=[],
        description="Only costs of resources in this Kafka cluster, as the inventory has it now; empty: of those in "
        "none.",
    )
    allocation_method: list[Text] = Field(default=[], description="Only what was allocated by this method.")
    allocation_detail: list[Text] = Field(default=[], description="Only what was allocated for this reason.")


class ChargebackColumns(CostColumns):
    """The columns by which chargeback rows are filtered."""

    line_id: list[Text] = Field(default=[], description="Only the shares of this billing line.")


class ChargebackFilters(ChargebackColumns, DatasetQuery):
    """The filters of chargebacks."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: ChargebackColumns = ChargebackColumns()
