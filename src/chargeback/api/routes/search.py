"""Finding anything by a part of its name."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from chargeback.access.rights import Right
from chargeback.api.parameters import CommonParameters, SearchText
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Facts
from chargeback.reports.search import FoundItem, FoundList, search


class SearchQuery(CommonParameters):
    """Parameters of the search."""

    q: SearchText = Field(
        default="",
        description="Part of an id, a display name or a tag's value, in whatever case. Nothing finds nothing.",
    )
    limit: int = Field(default=20, ge=1, le=100, description="How many, the best first.")


router = Routes(prefix="/tenants/{tenant_name}", tags=["Inventory"])


@router.get("/search", needs=Right.READ, keep=True)
def find_anything(request: Facts, params: Annotated[SearchQuery, Query()]) -> FoundList:
    """Search identities, resources, topics and tag values by a part of the id, name or value.

    Matches at the beginning come first, then the most expensive ones."""
    reader = request.reader
    version = request.version
    found: list[FoundItem] = []
    if params.q:
        known = request.executor.entity_costs.load(request.tenant.tenant_name, reader, version)
        visible = reader.visible_entities()
        found = search(request.tenant, reader.visible_tags(), known, params.q, params.limit, visible)
    return FoundList(items=found, currency=request.tenant.currency)
