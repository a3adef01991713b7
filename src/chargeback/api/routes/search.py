"""Finding anything by a part of its name."""

from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.responses import json_response
from chargeback.api.schemas.search import FoundList, SearchQuery
from chargeback.model.money import render
from chargeback.service.search import Found, search
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Inventory"])


@router.get(
    "/search",
    response_model=FoundList,
    **documented(needs=Right.READ, query=SearchQuery, etag=True),
)
async def find_anything(facts: FactsDep, params: Annotated[SearchQuery, query(SearchQuery)]) -> Response:
    """Search identities, resources, topics and tag values by a part of the id, name or value.

    Matches at the beginning come first, then the most expensive ones."""

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        found: list[Found] = []
        if params.q:
            known = facts.executor.entity_costs.load(facts.tenant.tenant_name, reader, version)
            visible = reader.visible_entities()
            found = search(facts.tenant, reader.visible_tags(), known, params.q, params.limit, visible)
        return json_response({"items": [_item(each) for each in found], "currency": facts.tenant.currency})

    return await facts.versioned_answer(params, _make, keep=True)


def _item(found: Found) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "id": found.id,
        "name": found.name,
        "type": found.type,
        "parent_id": found.parent_id,
        "amount": None if found.amount is None else render(found.amount),
    }
