"""Finding anything by a part of its name."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.responses import json_response
from chargeback.api.schemas.search import FoundList, SearchQuery
from chargeback.model.money import render
from chargeback.service.search import search
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Inventory"])


@router.get(
    "/search",
    response_model=FoundList,
    **documented(query=SearchQuery, facts=True),
)
async def find_anything(facts: FactsDep, params: Annotated[SearchQuery, query(SearchQuery)]) -> Response:
    """Search identities, resources, topics and tag values by a part of the id, name or value.

    Matches at the beginning come first, then the most expensive ones."""

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        last = version.control.last_calculated
        found = search(facts.tenant, reader, params.q, last, params.limit) if params.q else []
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
