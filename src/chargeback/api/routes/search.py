"""Search by a part of a name."""

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import SearchText
from chargeback.api.routing import Routes
from chargeback.api.selecting import UsualPeriodQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import instants
from chargeback.reports.search import FoundItem, FoundList, entity_costs, search


class SearchQuery(UsualPeriodQuery):
    """Parameters of the search."""

    q: SearchText = Field(
        default="",
        description="Part of an id, a display name or a value of a tag or a cost category, case-insensitive. Nothing "
        "finds nothing.",
    )
    limit: int = Field(default=20, ge=1, le=100, description="How many, the best first.")


router = Routes(prefix="/tenants/{tenant_name}", tags=["Inventory"])


@router.get("/search", needs=Right.READ, keep=True)
def find_anything(request: Facts, params: Annotated[SearchQuery, Query()]) -> FoundList:
    """Search identities, resources, topics, and values of tags and cost categories by a part of the id, name or value.

    Matches at the beginning of a name come first, then those with the largest costs in the period."""
    reader, tenant, version = request.reader, request.tenant, request.version
    period = params.chosen_period(tenant.lookback_days, version.control.last_calculated)
    window = instants(period.start, period.end, params.zone)
    found: list[FoundItem] = []
    if params.q:
        costs = request.executor.entity_costs.get(
            f"{tenant.tenant_name} {reader.scope_digest} {window}",
            (version.digest, params.as_of),
            partial(entity_costs, reader, window),
        )
        visible = reader.visible_entities()
        # Registers are about the whole bill.
        known = reader.categories.index.by_key if reader.sees_everything else {}
        registers = {key: each.category.register for key, each in known.items()}
        found = search(tenant, reader.visible_tags(), costs, params.q, params.limit, visible, registers)
    return FoundList(items=found, currency=tenant.currency, start_date=period.start, end_date=period.end)
