"""Finding anything by a part of its name."""

from typing import Annotated

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.responses import json_response
from chargeback.api.schemas.search import FoundList, SearchQuery
from chargeback.model.money import render
from chargeback.service.search import search
from chargeback.store.queries.entity_costs import EntityCostCache
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Inventory"])


@router.get(
    "/search",
    response_model=FoundList,
    **documented(query=SearchQuery, facts=True),
)
async def find_anything(
    request: Request, facts: FactsDep, params: Annotated[SearchQuery, query(SearchQuery)]
) -> Response:
    """Search identities, resources, topics and tag values by a part of the id, name or value.

    Matches at the beginning come first, then the most expensive ones."""

    costs: EntityCostCache = request.app.state.executor.entity_costs

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        if not params.q:
            return json_response({"items": []})
        known = costs.load(facts.tenant.tenant_name, reader, version)
        found = search(facts.tenant, reader.tags, known, params.q, params.limit)
        items = [
            {
                "kind": each.kind,
                "id": each.id,
                "name": each.name,
                "type": each.type,
                "parent_id": each.parent_id,
                "amount": None if each.amount is None else render(each.amount),
            }
            for each in found
        ]
        return json_response({"items": items})

    return await facts.versioned_answer(params, _make, keep=True)
