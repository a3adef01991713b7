"""What one unit of usage cost."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.csv_tables import csv_response
from chargeback.api.currency import RATES_HEADER, conversion_for, currency_of, rates_header
from chargeback.api.responses import json_response
from chargeback.api.routes.aggregate import display_names
from chargeback.api.routes.topic_attributions import require_topics
from chargeback.api.routing import Files, Routes
from chargeback.api.schemas.unit_costs import UnitCostsAnswer, UnitCostsQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.service.costs import of_topics
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.queries.unit_costs import UNIT_MEASURES, UnitCost, unit_costs

router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])

_PROBLEMS = {400: "Something in the request is wrong, or topics are asked for and not attributed."}

_SUMS = ("amount", "excluded_amount", "usage", "unit_cost")
_COVERS = "all selected costs of %s, of every product; filter by `product_type` for the costs of a single one"


@router.get(
    "/unit-costs",
    response_model=UnitCostsAnswer,
    needs=Right.READ,
    problems=_PROBLEMS,
    files=Files(headers=RATES_HEADER),
    keep=True,
)
def show_unit_costs(request: Facts, params: Annotated[UnitCostsQuery, Query()]) -> Response:
    """Return what a unit of measured usage cost: all selected costs, divided by the usage of those who bear them.

    The default period is the 30 days up to the last calculated day. A day on which the usage of a resource was not
    measured does not count for the resource: its costs are in `excluded_amount`, and the day is in `missing_days`.
    A file has the groups.
    """
    tenant, measure = request.tenant, UNIT_MEASURES[params.per]
    if measure.dataset is TOPIC_ATTRIBUTIONS:
        require_topics(tenant, request.access)
    reader = request.reader
    version = request.version
    last = version.control.last_calculated
    chosen = params.chosen_period(tenant.lookback_days, last)
    asked = params.selection(tenant.lookback_days, last)
    selection, ignored = of_topics(asked) if measure.dataset is TOPIC_ATTRIBUTIONS else (asked, ())
    conversion = conversion_for(tenant, reader, params.currency, [measure.dataset], [selection.window])
    rates = None if conversion is None else conversion.rates
    found = unit_costs(reader, measure, selection, params.columns, params.limit, rates)
    items = [{"dimensions": dict(zip(params.group_by, item.key, strict=True))} | _sums(item) for item in found.items]
    if request.wants_csv:
        rows = (item | item["dimensions"] for item in items)
        columns = (*params.group_by, *_SUMS, "days", "days_with_usage")
        return csv_response("unit_costs.csv", columns, rows, numbers=_SUMS, headers=rates_header(conversion))
    own = {"start_date": chosen.start, "end_date": chosen.end} | currency_of(tenant, conversion)
    body = {
        "per": params.per,
        "unit": measure.unit.name,
        "covers": _COVERS % ("topics" if measure.dataset is TOPIC_ATTRIBUTIONS else "identities"),
        "measures": measure.measures,
        "total": _sums(found.total),
        "items": items,
        "groups": found.groups,
        "missing_days": found.missing_days,
        "names": display_names(tenant, params.group_by, items),
        "ignored_filters": ignored,
    }
    return json_response(own | body)


def _sums(cost: UnitCost) -> dict[str, Any]:
    return {
        "amount": render(cost.amount),
        "excluded_amount": render(cost.excluded),
        "usage": None if cost.usage is None else render(cost.usage),
        "unit_cost": None if cost.unit_cost is None else render(cost.unit_cost),
        "days": cost.days,
        "days_with_usage": cost.days_with_usage,
    }
