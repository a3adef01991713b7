"""Sums of chargebacks, and the response of all aggregates."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep, FactsRequest
from chargeback.api.parameters import query
from chargeback.api.responses import rendered_response
from chargeback.api.schemas.chargebacks import AggregateAnswer, AggregateQuery
from chargeback.api.schemas.datasets import AggregateParameters
from chargeback.service.costs import NAMED_COLUMNS
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.names import names_of
from chargeback.store.queries.aggregate import MAX_BUCKETS, Aggregate
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
    **documented(query=AggregateQuery, extra={200: {"headers": BUCKET_HEADERS}}, facts=True),
)
async def aggregate_chargebacks(facts: FactsDep, params: Annotated[AggregateQuery, query(AggregateQuery)]) -> Response:
    """Return chargebacks summed by time and columns, ordered by time, then columns.

    At most 10,000 buckets are returned. If there are more, the oldest units of time are omitted and the header
    `X-Buckets-Truncated` is set. The totals include all buckets.
    """

    def _names(sums: Aggregate) -> dict[str, Any]:
        return {"names": display_names(facts.tenant, params.group_by, sums.buckets)} if params.names else {}

    return await aggregate_response(facts, params, _names)


def display_names(
    tenant: TenantView, columns: Iterable[str], buckets: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Return the display names of the ids in buckets, by column and id. Ids without a name are left out."""
    ids = {column: {bucket["dimensions"][column] for bucket in buckets} - {None} for column in columns}
    with tenant.store.control.read() as connection:
        return {
            column: {
                entity_id: entity.name
                for entity_id, entity in names_of(connection, NAMED_COLUMNS[column], found).items()
                if entity.name is not None
            }
            for column, found in ids.items()
            if column in NAMED_COLUMNS
        }


async def aggregate_response(
    facts: FactsRequest, params: AggregateParameters, more: Callable[[Aggregate], dict[str, Any]] = lambda _: {}
) -> Response:
    """Return the response of an aggregate endpoint: buckets, totals, ``more`` members, and a header if buckets were
    left out."""

    def _sum(reader: TenantReader, selection: Selection) -> Response:
        sums = reader.aggregate(params.dataset, selection, params.grouping)
        headers = {TRUNCATED: "true"} if sums.truncated else None
        return rendered_response("buckets", sums.rendered, sums.totals | more(sums), headers=headers)

    return await facts.select(params, _sum, keep=True)
