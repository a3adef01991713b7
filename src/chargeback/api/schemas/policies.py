"""Policies as anyone can read them."""

from typing import Literal

from pydantic import Field

from chargeback.api.parameters import CommonParameters, Text
from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.api.schemas.explain import PolicyPortion


class PoliciesQuery(CommonParameters):
    """Parameters of the list of policies."""

    hash: Text | None = Field(
        default=None, description="Only the policy with this hash, `policy` in the metadata of a chargeback row."
    )
    product_type: Text | None = Field(
        default=None, description="Only policies of this product type, also by a pattern or an alias."
    )


class PolicyItem(ResponseModel):
    """The policy of a product type."""

    product_type: str = Field(description="The name, or a pattern.", examples=["KAFKA_NUM_CKUS"])
    hash: str = Field(description="The same for equal policies.")
    source: Literal["shipped", "configured", "recorded", "unknown"] = Field(
        description="`shipped`: the ecosystem's own; `configured`: changed by the tenant's configuration; `recorded`: "
        "was used and is not in force any more; `unknown`: no policy is known for the product type, so its cost is "
        "charged to nobody."
    )
    portions: list[PolicyPortion]
    first_used_at: Instant | None = Field(description="When a day was first calculated by it; null if none was.")
