"""Costs in one answer: how much, who, over time, and compared with another period."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter
from pydantic_core import to_json
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.cost_responses import BREAKDOWN_COLUMNS, breakdown_rows, cost_response
from chargeback.api.csv_tables import csv_response
from chargeback.api.currency import conversion_for, currency_of, rates_header
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import digest_of, json_response
from chargeback.api.schemas.costs import MOST_TIMES, CostsAnswer, CostsQuery
from chargeback.service.costs import CostRequest, buckets_of, report
from chargeback.store.queries.datasets import DATASETS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

_NUMBERS = ("amount", "previous", "usage")

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get(
    "/costs",
    response_model=CostsAnswer,
    **documented(needs=Right.READ, query=CostsQuery, etag=True),
)
async def show_costs(facts: FactsDep, params: Annotated[CostsQuery, query(CostsQuery)]) -> Response:
    """Return the costs of a period: totals, breakdowns by columns or tags, a time series, a comparison.

    The default period is the 30 days up to the last calculated day. Compare two periods only if `days_with_costs` is
    the same for both: missing days are not savings. With `Accept: text/csv`, the breakdowns are returned as a file.
    """

    def _read(reader: TenantReader, version: DataVersion) -> Response:
        request = _request(params, facts.tenant.lookback_days, version)
        windows = [request.window, request.compared_window]
        conversion = conversion_for(facts.tenant, reader, params.currency, DATASETS, windows)
        request = replace(request, conversion=conversion)
        body = cost_response(report(facts.tenant, reader, request), request)
        if facts.wants_csv:
            rows, headers = breakdown_rows(body), rates_header(conversion)
            return csv_response("costs.csv", BREAKDOWN_COLUMNS, rows, numbers=_NUMBERS, headers=headers)
        body |= currency_of(facts.tenant, conversion)
        # The version of all data would tell a caller with a scope that something outside it has changed.
        revision = version.digest if reader.scope is None else digest_of(to_json(body))
        return json_response(body | {"revision": revision})

    return await facts.versioned_answer(params, _read, keep=True)


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
