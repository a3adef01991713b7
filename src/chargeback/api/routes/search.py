"""Finding anything by a part of its name."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import CommonParameters, SearchText
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.reports.answers import ResponseModel, Sum
from chargeback.reports.search import Found, Kind, search


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


router = Routes(prefix="/tenants/{tenant_name}", tags=["Inventory"])


@router.get("/search", response_model=FoundList, needs=Right.READ, keep=True)
def find_anything(request: Facts, params: Annotated[SearchQuery, Query()]) -> Response:
    """Search identities, resources, topics and tag values by a part of the id, name or value.

    Matches at the beginning come first, then the most expensive ones."""
    reader = request.reader
    version = request.version
    found: list[Found] = []
    if params.q:
        known = request.executor.entity_costs.load(request.tenant.tenant_name, reader, version)
        visible = reader.visible_entities()
        found = search(request.tenant, reader.visible_tags(), known, params.q, params.limit, visible)
    return json_response({"items": [_item(each) for each in found], "currency": request.tenant.currency})


def _item(found: Found) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "id": found.id,
        "name": found.name,
        "type": found.type,
        "parent_id": found.parent_id,
        "amount": None if found.amount is None else render(found.amount),
    }
