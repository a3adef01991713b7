"""Lists as CSV files, by GET: the path of the list with `.csv` behind it."""

from typing import Annotated, Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFactsDep
from chargeback.api.schemas.billing import BillingQuery
from chargeback.api.schemas.chargebacks import ChargebackQuery
from chargeback.api.schemas.topic_attributions import TopicQuery

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
