"""Lists and sums as CSV files, by GET: their path with `.csv` behind it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routes.aggregate import display_names
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFactsDep
from chargeback.api.schemas.billing import BillingQuery
from chargeback.api.schemas.chargebacks import AggregateQuery, ChargebackQuery
from chargeback.api.schemas.topic_attributions import TopicQuery
from chargeback.store.queries.aggregate import MAX_BUCKETS, Aggregate
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import END_OF_LINE, csv_field

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Export"])

_CSV: Final[dict[int, Any]] = {
    200: {
        "description": "The rows as CSV (RFC 4180, UTF-8), by time and ids, written as by the export.",
        "content": {"text/csv": {"schema": {"type": "string"}}},
        "headers": {
            "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name."}
        },
    }
}


@router.get("/chargebacks.csv", response_class=Response, **documented(query=ChargebackQuery, extra=_CSV))
async def download_chargebacks(facts: FactsDep, params: Annotated[ChargebackQuery, query(ChargebackQuery)]) -> Response:
    """Download all matching chargeback rows as CSV; `page` is ignored."""
    return await facts.download(params, "chargebacks.csv")


@router.get(
    "/chargebacks/aggregate.csv", response_class=Response, **documented(query=AggregateQuery, extra=_CSV, facts=True)
)
async def download_aggregate(facts: FactsDep, params: Annotated[AggregateQuery, query(AggregateQuery)]) -> Response:
    """Download sums of chargebacks as CSV, one line per bucket; `page` is ignored.

    The columns are `time_bucket`, those of `group_by` (with `names`, each id is followed by its display name), the
    amounts and `row_count`. More than 10,000 buckets are an error, because a file without the oldest ones would look
    complete.
    """

    def _make(reader: TenantReader, selection: Selection) -> Response:
        sums = reader.aggregate(params.dataset, selection, params.grouping)
        if sums.truncated:
            raise InvalidRequest([InvalidParameter("group_by", f"should make at most {MAX_BUCKETS:,} buckets")])
        names = display_names(facts.tenant, params.group_by, sums.buckets) if params.names else {}
        headers = {"Content-Disposition": "attachment; filename=aggregate.csv"}
        return Response(_sums_as_csv(sums, params.group_by, names), media_type="text/csv", headers=headers)

    return await facts.select(params, _make, keep=True)


def _sums_as_csv(sums: Aggregate, columns: list[str], names: Mapping[str, Mapping[str, str]]) -> str:
    amounts = [*CHARGEBACKS.amounts, "row_count"]
    heads = ["time_bucket"]
    for column in columns:
        heads += [column, f"{column.removesuffix('_id')}_name"] if column in names else [column]
    lines = [[*heads, *amounts]]
    for bucket in sums.buckets:
        fields = [bucket["time_bucket"]]
        for column in columns:
            value = bucket["dimensions"][column] or ""
            fields.append(csv_field(value))
            if column in names:
                fields.append(csv_field(names[column].get(value, "")))
        lines.append([*fields, *(str(bucket[name]) for name in amounts)])
    return "".join(f"{','.join(line)}{END_OF_LINE}" for line in lines)


@router.get("/billing.csv", response_class=Response, **documented(query=BillingQuery, extra=_CSV))
async def download_billing(facts: FactsDep, params: Annotated[BillingQuery, query(BillingQuery)]) -> Response:
    """Download all matching billing lines as CSV; `page` is ignored."""
    return await facts.download(params, "billing.csv")


@router.get(
    "/topic-attributions.csv",
    response_class=Response,
    **documented(query=TopicQuery, problems=TOPIC_PROBLEMS, extra=_CSV),
)
async def download_topic_attributions(
    facts: TopicFactsDep, params: Annotated[TopicQuery, query(TopicQuery)]
) -> Response:
    """Download all matching topic rows as CSV; `page` is ignored."""
    return await facts.download(params, "topic_attributions.csv")
