"""How costs flow through several columns."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.currency import conversion_for, currency_of
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.flow import FlowAnswer, FlowQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.service.costs import NAMED_COLUMNS, Names, names_in
from chargeback.store.queries.costs import Breakdown
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.flow import Flow, flow

router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/flow", response_model=FlowAnswer, needs=Right.READ, keep=True)
def show_flow(request: Facts, params: Annotated[FlowQuery, Query()]) -> Response:
    """Return how costs flow from the values of each column to those of the next, compared with another period."""
    tenant = request.tenant
    reader = request.reader
    version = request.version
    asked = params.comparison(tenant.lookback_days, version.control.last_calculated)
    windows = [asked.selection.window, asked.previous]
    conversion = conversion_for(tenant, reader, params.currency, [CHARGEBACKS], windows)
    rates = None if conversion is None else conversion.rates
    found = flow(reader, asked.selection, asked.previous, params.by, params.tops, rates)
    with tenant.store.control.read() as connection:
        names = names_in(connection, found.columns)
    dates = {"start_date": asked.period.start, "end_date": asked.period.end}
    own = dates | currency_of(tenant, conversion) | {"by": params.by}
    return json_response(own | _graph(found, names, has_previous=asked.compared is not None))


def _graph(found: Flow, names: Names, *, has_previous: bool) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    firsts = []
    for number, column in enumerate(found.columns):
        firsts.append(len(nodes))
        nodes += _nodes(number, column, names, has_previous=has_previous)
    links = [
        {
            "source": firsts[link.column] + link.source,
            "target": firsts[link.column + 1] + link.target,
            "amount": render(link.amount),
            "previous": render(link.previous) if has_previous else None,
        }
        for link in found.links
    ]
    return {"nodes": nodes, "links": links}


def _nodes(number: int, column: Breakdown, names: Names, *, has_previous: bool) -> list[dict[str, Any]]:
    kind = NAMED_COLUMNS.get(column.by)
    nodes: list[dict[str, Any]] = []
    for item in column.items:
        known = None if kind is None or item.value is None else names[kind].get(item.value)
        nodes.append(
            {
                "column": number,
                "by": column.by,
                "value": item.value,
                "name": None if known is None else known.name,
                "amount": render(item.amount),
                "previous": render(item.previous) if has_previous else None,
                "other": None,
            }
        )
    if column.other is not None:
        count, amount, previous = column.other
        nodes.append(
            {
                "column": number,
                "by": column.by,
                "value": None,
                "name": None,
                "amount": render(amount),
                "previous": render(previous) if has_previous else None,
                "other": count,
            }
        )
    return nodes
