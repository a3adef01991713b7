"""Lists, sums and costs as CSV files, by GET: the path with `.csv` behind it."""

from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep
from chargeback.api.currency import RATES_HEADER
from chargeback.api.documentation import csv_answer, documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import CommonParameters, query
from chargeback.api.routes.aggregate import RECONCILED_HEADER, aggregate_response
from chargeback.api.routes.chargebacks import list_issues
from chargeback.api.routes.costs import show_costs
from chargeback.api.routes.findings import list_findings
from chargeback.api.routes.inventory import list_identities, list_resources
from chargeback.api.routes.tags import list_tags
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFactsDep
from chargeback.api.routes.topics import summarise_topics
from chargeback.api.routes.unit_costs import UNIT_COST_PROBLEMS, show_unit_costs
from chargeback.api.schemas.billing import BillingQuery
from chargeback.api.schemas.chargebacks import AggregateQuery, ChargebackQuery
from chargeback.api.schemas.costs import CostsQuery
from chargeback.api.schemas.findings import FindingsQuery
from chargeback.api.schemas.inventory import IdentityQuery, ResourceQuery
from chargeback.api.schemas.tags import TagsQuery
from chargeback.api.schemas.topic_attributions import TopicAggregateQuery, TopicQuery
from chargeback.api.schemas.topics import TopicsQuery
from chargeback.api.schemas.unit_costs import UnitCostsQuery

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Export"])


def _file(
    model: type[CommonParameters], *, rows: bool = False, problems: Any = None, headers: Any = None
) -> dict[str, Any]:
    """Return arguments for the route of a file. Files of ``rows`` are sent while they are made; others have an ETag."""
    order = ", by time and ids" if rows else ""
    success = csv_answer(f"CSV (RFC 4180, UTF-8){order}, with texts written as by the export.", headers=headers)
    return {
        "response_class": Response,
        **documented(needs=Right.EXPORT, query=model, problems=problems, extra={200: success}, etag=not rows),
    }


@router.get("/chargebacks.csv", **_file(ChargebackQuery, rows=True))
async def download_chargebacks(facts: FactsDep, params: Annotated[ChargebackQuery, query(ChargebackQuery)]) -> Response:
    """Download all matching chargeback rows as CSV; `page` is ignored."""
    return await facts.download(params, "chargebacks.csv")


@router.get("/billing.csv", **_file(BillingQuery, rows=True))
async def download_billing(facts: FactsDep, params: Annotated[BillingQuery, query(BillingQuery)]) -> Response:
    """Download all matching billing lines as CSV; `page` is ignored."""
    return await facts.download(params, "billing.csv")


@router.get("/topic-attributions.csv", **_file(TopicQuery, rows=True, problems=TOPIC_PROBLEMS))
async def download_topic_attributions(
    facts: TopicFactsDep, params: Annotated[TopicQuery, query(TopicQuery)]
) -> Response:
    """Download all matching topic rows as CSV; `page` is ignored."""
    return await facts.download(params, "topic_attributions.csv")


@router.get("/costs.csv", **_file(CostsQuery, headers=RATES_HEADER))
async def download_costs(facts: FactsDep, params: Annotated[CostsQuery, query(CostsQuery)]) -> Response:
    """Download the breakdowns of the costs of a period as CSV: a line for each value, and for the others together."""
    return await show_costs(facts, params)


@router.get("/topics.csv", **_file(TopicsQuery, problems=TOPIC_PROBLEMS, headers=RATES_HEADER))
async def download_topics(facts: TopicFactsDep, params: Annotated[TopicsQuery, query(TopicsQuery)]) -> Response:
    """Download all matching topics with their costs and their traffic as CSV; `top` is ignored."""
    return await summarise_topics(facts, params)


@router.get("/findings.csv", **_file(FindingsQuery))
async def download_findings(facts: FactsDep, params: Annotated[FindingsQuery, query(FindingsQuery)]) -> Response:
    """Download all matching findings as CSV; `page` is ignored."""
    return await list_findings(facts, params)


@router.get("/unit-costs.csv", **_file(UnitCostsQuery, problems=UNIT_COST_PROBLEMS, headers=RATES_HEADER))
async def download_unit_costs(facts: FactsDep, params: Annotated[UnitCostsQuery, query(UnitCostsQuery)]) -> Response:
    """Download what a unit of usage cost as CSV, one line per group."""
    return await show_unit_costs(facts, params)


@router.get("/chargebacks/aggregate.csv", **_file(AggregateQuery, headers=RECONCILED_HEADER | RATES_HEADER))
async def download_aggregate(facts: FactsDep, params: Annotated[AggregateQuery, query(AggregateQuery)]) -> Response:
    """Download sums of chargebacks as CSV, one line per bucket; with `names`, each id is followed by its display name.

    More than 10,000 buckets are an error, because a file without the oldest ones would look complete.
    """
    return await aggregate_response(facts, params, names=params.names)


@router.get(
    "/topic-attributions/aggregate.csv",
    **_file(TopicAggregateQuery, problems=TOPIC_PROBLEMS, headers=RECONCILED_HEADER | RATES_HEADER),
)
async def download_topic_aggregate(
    facts: TopicFactsDep, params: Annotated[TopicAggregateQuery, query(TopicAggregateQuery)]
) -> Response:
    """Download sums of topic attribution rows as CSV, one line per bucket; more than 10,000 are an error."""
    return await aggregate_response(facts, params)


@router.get("/chargebacks/allocation-issues.csv", **_file(ChargebackQuery))
async def download_issues(facts: FactsDep, params: Annotated[ChargebackQuery, query(ChargebackQuery)]) -> Response:
    """Download all matching allocation issues as CSV; `page` is ignored."""
    return await list_issues(facts, params)


@router.get("/resources.csv", **_file(ResourceQuery))
async def download_resources(control: ControlDep, params: Annotated[ResourceQuery, query(ResourceQuery)]) -> Response:
    """Download all matching resources as CSV; `page` is ignored."""
    return await list_resources(control, params)


@router.get("/identities.csv", **_file(IdentityQuery))
async def download_identities(control: ControlDep, params: Annotated[IdentityQuery, query(IdentityQuery)]) -> Response:
    """Download all matching identities as CSV; `page` is ignored."""
    return await list_identities(control, params)


@router.get("/tags.csv", **_file(TagsQuery))
async def download_tags(control: ControlDep, params: Annotated[TagsQuery, query(TagsQuery)]) -> Response:
    """Download all matching tags as CSV; `page` is ignored."""
    return await list_tags(control, params)
