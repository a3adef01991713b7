"""Costs in one answer: how much, who, over time, and compared with another period."""

from dataclasses import replace
from typing import Annotated

from fastapi import Query
from pydantic_core import to_json
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.cost_responses import BREAKDOWN_COLUMNS, breakdown_rows, cost_response
from chargeback.api.currency import RATES_HEADER, conversion_for, currency_of, rates_header
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import csv_response, digest_of, json_response
from chargeback.api.routing import Files, Routes
from chargeback.api.schemas.costs import MOST_TIMES, CostsAnswer, CostsQuery
from chargeback.api.tenant_requests import Facts
from chargeback.reports.costs import CostRequest, buckets_of, report
from chargeback.store.queries.datasets import DATASETS
from chargeback.store.queries.version import DataVersion

_NUMBERS = ("amount", "previous", "usage")

router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/costs", response_model=CostsAnswer, needs=Right.READ, files=Files(headers=RATES_HEADER), keep=True)
def show_costs(request: Facts, params: Annotated[CostsQuery, Query()]) -> Response:
    """Return the costs of a period: totals, breakdowns by columns or tags, a time series, a comparison.

    The default period is the 30 days up to the last calculated day. Compare two periods only if `days_with_costs` is
    the same for both: missing days are not savings. A file has the breakdowns: a line for
    each value, and for the others together.
    """
    tenant, reader, version = request.tenant, request.reader, request.version
    wanted = _request(params, tenant.lookback_days, version)
    windows = [wanted.window, wanted.compared_window]
    conversion = conversion_for(tenant, reader, params.currency, DATASETS, windows)
    wanted = replace(wanted, conversion=conversion)
    body = cost_response(report(tenant, reader, wanted), wanted)
    if request.wants_csv:
        rows, headers = breakdown_rows(body), rates_header(conversion)
        return csv_response("costs.csv", BREAKDOWN_COLUMNS, rows, numbers=_NUMBERS, headers=headers)
    body |= currency_of(tenant, conversion)
    # The version of all data would tell a caller with a scope that something outside it has changed.
    revision = version.digest if reader.scope is None else digest_of(to_json(body))
    return json_response(body | {"revision": revision})


def _request(params: CostsQuery, lookback_days: int, version: DataVersion) -> CostRequest:
    asked = params.comparison(lookback_days, version.control.last_calculated)
    request = CostRequest(
        asked.period,
        asked.compared,
        asked.selection,
        params.zone,
        params.time_bucket,
        tuple(params.by),
        params.series or params.by[0],
        params.top,
        frozenset(params.include),
    )
    if asked.period.days > MOST_TIMES and len(buckets_of(asked.period, params.time_bucket)) > MOST_TIMES:
        raise InvalidRequest([InvalidParameter("time_bucket", f"should make at most {MOST_TIMES} units of time")])
    return request
