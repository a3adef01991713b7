"""``plugin_settings`` of a system that has only metrics."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, StringConstraints, Tag, field_validator, model_validator

from chargeback.ecosystems.constructed.settings import (
    PRESENCE,
    ConstructedSettings,
    Query,
    Rate,
    Text,
    check_known_measures,
    check_sources,
)
from chargeback.ecosystems.settings import LabelName
from chargeback.settings import Settings

_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,62}$"


class Fixed(Settings):
    """A fixed number of units all day: ``count × 24 h × rate``."""

    type: Literal["fixed"]
    count: Annotated[int, Field(ge=1, le=1_000_000)]


class StorageGib(Settings):
    """A gauge of bytes: its mean over the day in GiB ``× 24 h × rate``."""

    type: Literal["storage_gib"]
    query: Query


class NetworkGib(Settings):
    """The bytes of each step, summed over the day in GiB ``× rate``."""

    type: Literal["network_gib"]
    query: Query


def _kind(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else getattr(value, "type", None)


CostQuantity = Annotated[
    Annotated[Fixed, Tag("fixed")]
    | Annotated[StorageGib, Tag("storage_gib")]
    | Annotated[NetworkGib, Tag("network_gib")],
    Discriminator(
        _kind,
        custom_error_type="cost_quantity_type",
        custom_error_message="`type` should be fixed, storage_gib or network_gib",
    ),
]


class CostType(Settings):
    """One line of the bill. ``name`` is its product type.

    With ``usage_ratio`` it is split by the values of ``allocation_query`` per value of ``allocation_label`` (by default
    the label of the identity source), summed over the steps of the day.
    """

    name: Annotated[str, StringConstraints(pattern=_NAME)]
    product_category: Text
    rate: Rate
    cost_quantity: CostQuantity
    allocation_strategy: Literal["even_split", "usage_ratio"] = "even_split"
    allocation_query: Query | None = None
    allocation_label: LabelName | None = None

    @model_validator(mode="after")
    def _strategy_is_complete(self) -> Self:
        if self.allocation_strategy == "usage_ratio" and self.allocation_query is None:
            raise ValueError("allocation_query required when allocation_strategy is usage_ratio")
        if self.allocation_strategy == "even_split" and (self.allocation_query or self.allocation_label):
            raise ValueError("allocation_query and allocation_label require allocation_strategy usage_ratio")
        return self

    @property
    def measure(self) -> str:
        """The measure of its usage."""
        return self.name.lower()


class GenericMetricsSettings(ConstructedSettings):
    """Everything under ``plugin_settings``."""

    cost_types: tuple[CostType, ...]

    @field_validator("cost_types")
    @classmethod
    def _names_differ(cls, value: tuple[CostType, ...]) -> tuple[CostType, ...]:
        if not value:
            raise ValueError("should list at least one cost type")
        measures = [each.measure for each in value]
        if len(measures) != len(set(measures)):
            raise ValueError("two cost types have the same name")
        if PRESENCE in measures:
            raise ValueError(f"{PRESENCE} is reserved for a built-in measure; choose another name for the cost type")
        return value

    @model_validator(mode="after")
    def _can_be_measured(self) -> Self:
        check_sources(
            self,
            (
                each.name
                for each in self.cost_types
                if each.cost_quantity.type != "fixed" or each.allocation_query is not None
            ),
        )
        check_known_measures(self.allocation_policies, self.measures)
        return self

    @property
    def measures(self) -> frozenset[str]:
        """The measures that a policy's ``usage(…)`` may name."""
        used = {each.measure for each in self.cost_types if each.allocation_query is not None}
        return frozenset(used | {PRESENCE})

    @property
    def queries(self) -> dict[str, str]:
        """Every query of the cost types, by its purpose."""
        queries: dict[str, str] = {}
        for each in self.cost_types:
            if not isinstance(each.cost_quantity, Fixed):
                queries[f"{each.name} cost_quantity"] = each.cost_quantity.query
            if each.allocation_query is not None:
                queries[f"{each.name} allocation_query"] = each.allocation_query
        return queries

    @property
    def summed_queries(self) -> list[str]:
        """The purposes of the queries that are added up over the steps of the day."""
        gauges = {f"{each.name} cost_quantity" for each in self.cost_types if each.cost_quantity.type == "storage_gib"}
        return [purpose for purpose in self.queries if purpose not in gauges]
