"""Sums of chargebacks, and the response of all aggregates."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.csv_tables import csv_response
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep, FactsRequest
from chargeback.api.parameters import query
from chargeback.api.responses import rendered_response
from chargeback.api.schemas.chargebacks import AggregateAnswer, AggregateQuery
from chargeback.api.schemas.datasets import AggregateParameters
from chargeback.store.queries.aggregate import MAX_BUCKETS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

TRUNCATED = "X-Buckets-Truncated"

router = APIRouter(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])

BUCKET_HEADERS = {
    TRUNCATED: {
        "description": f"`true` if there were more than {MAX_BUCKETS:,} buckets and the oldest were omitted.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


@router.get(
    "/aggregate",
    response_model=AggregateAnswer,
    **documented(query=AggregateQuery, extra={200: {"headers": BUCKET_HEADERS}}, etag=True),
)
async def aggregate_chargebacks(facts: FactsDep, params: Annotated[AggregateQuery, query(AggregateQuery)]) -> Response:
    """Return chargebacks summed by time and columns, ordered by time, then columns.

    At most 10,000 buckets are returned. If there are more, the oldest units of time are omitted and the header
    `X-Buckets-Truncated` is set. The totals include all buckets.
    """
    return await aggregate_response(facts, params)


async def aggregate_response(facts: FactsRequest, params: AggregateParameters) -> Response:
    """Return the response of an aggregate endpoint: buckets, totals, and a header if buckets were left out; or the
    buckets as a file."""

    def _sum(reader: TenantReader, selection: Selection) -> Response:
        sums = reader.aggregate(params.dataset, selection, params.grouping)
        headers = {TRUNCATED: "true"} if sums.truncated else None
        if not facts.wants_csv:
            rest = {"currency": facts.tenant.currency} | sums.totals
            return rendered_response("buckets", sums.rendered, rest, headers=headers)
        amounts = tuple(params.dataset.amounts)
        columns = ("time_bucket", *params.group_by, *amounts, "row_count")
        rows = (bucket | bucket["dimensions"] for bucket in sums.buckets)
        name = f"{params.dataset.table}_aggregate.csv"
        return csv_response(name, columns, rows, numbers=amounts, headers=headers)

    return await facts.select(params, _sum, keep=True)
