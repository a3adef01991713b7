"""Finding anything by a part of its name."""

from pydantic import Field

from chargeback.api.parameters import CommonParameters, SearchText
from chargeback.api.schemas.common import ResponseModel, Sum
from chargeback.service.search import Kind


class SearchQuery(CommonParameters):
    """Parameters of the search."""

    q: SearchText = Field(
        default="",
        description="Part of an id, a display name or a tag's value, in whatever case. Nothing finds nothing.",
    )
    limit: int = Field(default=20, ge=1, le=100, description="How many, the best first.")


class FoundItem(ResponseModel):
    """Something that was found."""

    kind: Kind
    id: str = Field(description="Its id; of a topic, its name; of a tag, its value.", examples=["sa-123abc"])
    name: str | None = Field(examples=["orders-service"])
    type: str | None = Field(description="Its type in the inventory; of a tag, its key.", examples=["service_account"])
    parent_id: str | None = Field(description="Of a resource, what it lies in; of a topic, its cluster.")
    amount: Sum | None = Field(description="What it cost in the last 30 calculated days; null where nothing.")


class FoundList(ResponseModel):
    """What was found."""

    items: list[FoundItem]
    currency: str = Field(examples=["USD"])
