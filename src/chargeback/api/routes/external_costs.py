"""Costs from elsewhere beside those stored here."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Body
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.external_costs import ExternalCosts, ExternalReconciliation
from chargeback.api.tenant_requests import Calculation
from chargeback.model.days import ONE_DAY
from chargeback.model.money import difference, render, total
from chargeback.service.cost_files import CostFileError, period_of, read_costs
from chargeback.service.external_costs import (
    ComparedCost,
    CostComparison,
    compare_costs,
    dataset_of,
    entity_names,
)

router = Routes(prefix="/tenants/{tenant_name}/reconciliation", tags=["Reconciliation"])


@router.post("/external", response_model=ExternalReconciliation, needs=Right.READ, whole=True)
def reconcile_with_file(request: Calculation, params: Annotated[ExternalCosts, Body()]) -> Response:
    """Compare an invoice, or the provider's own cost allocation, with the bill or the chargebacks: theirs, ours, and
    the difference, by entity and product type.

    The file is sent as text in JSON, and its columns are named by a mapping; nothing is stored. A file above 8 MiB can
    be compared by `chargeback reconcile`.
    """
    tenant, reader = request.tenant, request.facts
    try:
        costs = read_costs(params.csv, params.mapping, tenant.currency)
    except CostFileError as error:
        raise InvalidRequest([InvalidParameter("csv", str(mistake)) for mistake in error.mistakes]) from None
    days = period_of(costs, params.start_date, params.end_date)
    if days is None:
        raise InvalidRequest([InvalidParameter("start_date", "is needed with end_date: the file has no days")])
    if days.start >= days.end:
        raise InvalidRequest([InvalidParameter("start_date", f"should not be after the end, {days.end - ONE_DAY}")])
    found = compare_costs(reader, costs, params.mapping, days)
    with tenant.store.control.read() as connection:
        names = entity_names(connection, found, params.mapping)
    return json_response(
        {
            "start_date": days.start,
            "end_date": days.end - ONE_DAY,
            "currency": tenant.currency,
            "compared_with": dataset_of(params.mapping).table,
            "lines": found.lines,
            "outside": found.outside,
        }
        | _answer(found, names, params.limit)
    )


def _answer(found: CostComparison, names: Mapping[str, str], limit: int) -> dict[str, Any]:
    listed, rest = found.items[:limit], found.items[limit:]
    return {
        "total": _amounts(found.items),
        "only_theirs": _one_sided([item.theirs for item in found.items if item.ours is None]),
        "only_ours": _one_sided([item.ours for item in found.items if item.theirs is None]),
        "items": [
            {
                "entity": item.key[0],
                "name": None if item.key[0] is None else names.get(item.key[0]),
                "product_type": item.key[1],
                "theirs": None if item.theirs is None else render(item.theirs),
                "ours": None if item.ours is None else render(item.ours),
                "delta": render(item.delta),
            }
            for item in listed
        ],
        "other": {"count": len(rest)} | _amounts(rest) if rest else None,
    }


def _amounts(items: Sequence[ComparedCost]) -> dict[str, str]:
    theirs = total(item.theirs for item in items if item.theirs is not None)
    ours = total(item.ours for item in items if item.ours is not None)
    return {"theirs": render(theirs), "ours": render(ours), "delta": render(difference(ours, theirs))}


def _one_sided(amounts: Sequence[Any]) -> dict[str, Any]:
    return {"count": len(amounts), "amount": render(total(amounts))}
