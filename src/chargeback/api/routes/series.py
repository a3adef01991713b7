"""Costs over time as flat rows."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import Query
from pydantic_core import to_json
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.cost_responses import cost_response
from chargeback.api.currency import conversion_for, currency_of
from chargeback.api.parameters import JSON_TYPE
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routing import Routes
from chargeback.api.schemas.costs import MOST_TIMES
from chargeback.api.schemas.series import SeriesAnswer, SeriesQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import start_of_day
from chargeback.service.costs import CostRequest, buckets_of, report
from chargeback.store.queries.datasets import CHARGEBACKS

#: What is summed where no column is asked for; only the sums over all of its values are shown.
_ANY_COLUMN = "product_category"

router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/series", response_model=SeriesAnswer, needs=Right.READ, keep=True)
def show_series(request: Facts, params: Annotated[SeriesQuery, Query()]) -> Response:
    """Return costs over time as flat rows with JSON numbers, for display only.

    Dashboards such as Grafana draw them as they are. The numbers have all digits, but most programs read them as binary
    floating point, which rounds them: to calculate, use the decimal strings of `…/costs` or `…/chargebacks/aggregate`.
    Units of time without costs have a row, too. Page parameters are ignored.
    """
    tenant = request.tenant
    reader = request.reader
    version = request.version
    last = version.control.last_calculated
    period = params.chosen_period(tenant.lookback_days, last)
    if period.days > MOST_TIMES and len(buckets_of(period, params.time_bucket)) > MOST_TIMES:
        raise InvalidRequest([InvalidParameter("time_bucket", f"should make at most {MOST_TIMES} units of time")])
    selection = params.selection(tenant.lookback_days, last)
    conversion = conversion_for(tenant, reader, params.currency, [CHARGEBACKS], [selection.window])
    by = params.group_by or _ANY_COLUMN
    wanted = CostRequest(
        period, None, selection, params.zone, params.time_bucket, (by,), by, params.top, frozenset(), conversion
    )
    found = cost_response(report(tenant, reader, wanted), wanted)
    rest = {name: found[name] for name in ("start_date", "end_date", "timezone")}
    rows = [_row(*row) for row in _rows(found, params.zone, grouped=params.group_by is not None)]
    others = to_json(rest | currency_of(tenant, conversion)).decode()
    body = f'{{"rows":[{",".join(rows)}],"total":{found["total"]["amount"]},{others[1:]}'
    return Response(body, media_type=JSON_TYPE)


def _rows(found: dict[str, Any], zone: ZoneInfo, *, grouped: bool) -> Iterator[tuple[str, str | None, str, str]]:
    """Yield time, value, name and amount of each row."""
    breakdown = found["breakdowns"][0]
    values = [
        (each["value"], each["name"] or ("(none)" if each["value"] is None else each["value"]), each["amounts"])
        for each in breakdown["items"]
    ]
    if breakdown["other"] is not None:
        values.append((None, "(other)", breakdown["other"]["amounts"]))
    if not grouped:
        values = [(None, "total", found["amounts"])]
    for number, label in enumerate(found["times"]):
        begins = start_of_day(date.fromisoformat(label), zone).astimezone(zone).isoformat()
        yield from ((begins, value, name, amounts[number]) for value, name, amounts in values)


def _row(begins: str, value: str | None, name: str, amount: str) -> str:
    """Return a row as JSON. The amount is written as it is, so that no digit is lost on the way."""
    return f'{to_json({"time": begins, "value": value, "name": name}).decode()[:-1]},"amount":{amount}}}'
