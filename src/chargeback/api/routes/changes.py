"""What changed between two ranges of days, and why."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routes.aggregate import display_names
from chargeback.api.routing import Routes
from chargeback.api.schemas.changes import ChangesAnswer, ChangesQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.service.changes import Change, changes, names_of_changes, together
from chargeback.service.wording import Names

router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Changes"])


@router.get("/changes", response_model=ChangesAnswer, needs=Right.READ, keep=True)
def explain_changes(request: Facts, params: Annotated[ChangesQuery, Query()]) -> Response:
    """Compare two ranges of days: the largest changes first, each as a sum of effects and in a sentence.

    The default is the 30 days up to the last calculated day, compared with as many days before. Effects sum to the
    difference exactly. Page parameters are ignored.
    """
    tenant = request.tenant
    reader = request.reader
    version = request.version
    asked = params.comparison(tenant.lookback_days, version.control.last_calculated)
    if asked.compared is None or asked.previous is None:
        raise InvalidRequest([InvalidParameter("compare", "should lie within the years 1970 to 2998")])
    found = changes(reader, asked.selection, asked.previous, params.group_by)

    shown, rest = found.items[: params.limit], found.items[params.limit :]
    other, totals = together(rest), together(found.items)
    with tenant.store.control.read() as connection:
        names = names_of_changes(connection, [*shown, other, totals], tenant.currency)

    def _amounts(change: Change) -> dict[str, Any]:
        return _changed(change, found.days, tenant.currency, names)

    items = [{"dimensions": dict(zip(params.group_by, item.key, strict=True))} | _amounts(item) for item in shown]
    return json_response(
        {
            "start_date": asked.period.start,
            "end_date": asked.period.end,
            "timezone": params.timezone,
            "days_with_costs": found.days[1],
            "compared_with": {
                "start_date": asked.compared.start,
                "end_date": asked.compared.end,
                "days_with_costs": found.days[0],
            },
            "currency": tenant.currency,
            "items": items,
            "other": {"count": len(rest)} | _amounts(other) if rest else None,
            "totals": _amounts(totals),
            "names": display_names(tenant, params.group_by, items),
        }
    )


def _changed(change: Change, days: tuple[int, int], currency: str, names: Names) -> dict[str, Any]:
    before, after = change.per_day(days)
    return {
        "before": render(change.before),
        "after": render(change.after),
        "delta": render(change.delta),
        "per_day_before": None if before is None else render(before),
        "per_day_after": None if after is None else render(after),
        "effects": {name: render(amount) for name, amount in change.effects.items()},
        "sentence": change.sentence(currency, names),
    }
