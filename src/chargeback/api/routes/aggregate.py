"""Sums of chargebacks, and what sums of other rows are answered with."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.answers import rendered_answer
from chargeback.api.dependencies import TheTenant, TheWork
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.schemas.chargebacks import AggregateAnswer, AggregateQuery
from chargeback.api.schemas.topic_attributions import TopicAggregateQuery
from chargeback.api.services import TenantView
from chargeback.api.work import Facts, Work
from chargeback.store.queries.aggregate import CHARGEBACKS, MOST_BUCKETS, Grouping, Summed, aggregate

TRUNCATED = "X-Buckets-Truncated"

router = APIRouter(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])

BUCKET_HEADERS = {
    TRUNCATED: {
        "description": f"`true` when there were more than {MOST_BUCKETS:,} buckets and the oldest were left out.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


@router.get(
    "/aggregate",
    response_model=AggregateAnswer,
    **documented(query=AggregateQuery, extra={200: {"headers": BUCKET_HEADERS}}),
)
async def aggregate_chargebacks(
    tenant: TheTenant, work: TheWork, asked: Annotated[AggregateQuery, query(AggregateQuery)]
) -> Response:
    """Chargebacks summed by time and columns, ordered by time, then columns.

    At most 10,000 buckets are returned: beyond, the oldest units of time are left out whole, and the header
    `X-Buckets-Truncated` says so. The totals cover everything.
    """
    return await sums_answer(work, tenant, CHARGEBACKS, asked)


async def sums_answer(
    work: Work, tenant: TenantView, summed: Summed, asked: AggregateQuery | TopicAggregateQuery
) -> Response:
    """The answer of an aggregate endpoint: buckets, totals, and a header where not all buckets are there."""
    window, filters = asked.window(tenant.lookback_days), asked.filters()
    grouping = Grouping(tuple(asked.group_by), asked.time_bucket, asked.zone)

    def _ask(facts: Facts) -> Response:
        narrowed = filters.condition(facts.book)
        sums = aggregate(facts.cursor, tenant.store.facts, summed, window, grouping, narrowed, facts.book)
        headers = {TRUNCATED: "true"} if sums.truncated else None
        return rendered_answer("buckets", sums.rendered, sums.totals, headers=headers)

    return await work.ask(tenant, _ask)
