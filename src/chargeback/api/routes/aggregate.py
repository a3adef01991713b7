"""Sums of chargebacks, and the response of all aggregates."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.csv_tables import csv_response
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep, FactsRequest
from chargeback.api.parameters import query
from chargeback.api.problems import InvalidParameter, InvalidRequest
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
    **documented(query=AggregateQuery, extra={200: {"headers": BUCKET_HEADERS}}, etag=True),
)
async def aggregate_chargebacks(facts: FactsDep, params: Annotated[AggregateQuery, query(AggregateQuery)]) -> Response:
    """Return chargebacks summed by time and columns, ordered by time, then columns.

    At most 10,000 buckets are returned. If there are more, the oldest units of time are omitted and the header
    `X-Buckets-Truncated` is set. The totals include all buckets.
    """
    return await aggregate_response(facts, params, names=params.names)


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


async def aggregate_response(facts: FactsRequest, params: AggregateParameters, *, names: bool = False) -> Response:
    """Return the response of an aggregate endpoint: buckets, totals, with ``names`` the display names of ids, and a
    header if buckets were left out; or the buckets as a file, which must have all of them: it would look complete."""

    def _sum(reader: TenantReader, selection: Selection) -> Response:
        sums = reader.aggregate(params.dataset, selection, params.grouping)
        headers = {TRUNCATED: "true"} if sums.truncated else None
        named = display_names(facts.tenant, params.group_by, sums.buckets) if names else {}
        if not facts.wants_csv:
            rest = {"currency": facts.tenant.currency} | sums.totals | ({"names": named} if names else {})
            return rendered_response("buckets", sums.rendered, rest, headers=headers)
        if sums.truncated:
            raise InvalidRequest([InvalidParameter("group_by", f"should make at most {MAX_BUCKETS:,} buckets")])
        return _file(params, sums, named)

    return await facts.select(params, _sum, keep=True)


def _file(params: AggregateParameters, sums: Aggregate, names: Mapping[str, Mapping[str, str]]) -> Response:
    """The buckets as CSV; a column with display names follows that with the ids."""
    columns = ["time_bucket"]
    for column in params.group_by:
        columns += [column, _name_of(column)] if column in names else [column]
    rows = (
        bucket
        | bucket["dimensions"]
        | {_name_of(column): known.get(bucket["dimensions"][column]) for column, known in names.items()}
        for bucket in sums.buckets
    )
    amounts = tuple(params.dataset.amounts)
    name = f"{params.dataset.table}_aggregate.csv"
    return csv_response(name, (*columns, *amounts, "row_count"), rows, numbers=amounts)


def _name_of(column: str) -> str:
    return f"{column.removesuffix('_id')}_name"
