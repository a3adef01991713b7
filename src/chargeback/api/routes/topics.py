"""Topics in summary: what they cost, what went through them, which only cost."""

from datetime import date
from typing import Annotated, ClassVar

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.cost_responses import topics_response
from chargeback.api.currency import RATES_HEADER, conversion_for, currency_of, rates_header
from chargeback.api.parameters import CurrencyParameter
from chargeback.api.responses import csv_response, json_response
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFacts
from chargeback.api.routing import Files, Routes
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.costs import ComparingQuery, OtherTopics, TopicCostItem
from chargeback.model.money import render
from chargeback.reports.answers import CONVERSION, Amount, ConversionItem, Exact, ResponseModel
from chargeback.reports.topic_costs import of_topics, topic_costs
from chargeback.store.control.inventory_lists import RESOURCES
from chargeback.store.control.names import names_of
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset


class TopicsQuery(CostColumns, CurrencyParameter, ComparingQuery):
    """Parameters of the summary of topics: the filters of costs, of which those that topics know count."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    top: int = Field(default=100, ge=1, le=1000, description="How many topics are named.")


class TopicSummaryItem(TopicCostItem):
    """One topic, and what went through it."""

    bytes_in: Exact | None = Field(description="Bytes written to it; null where that was not measured.")
    bytes_out: Exact | None = Field(description="Bytes read from it; null where that was not measured.")
    zombie: bool = Field(description="It cost something although nothing went through it, as far as was measured.")


class TopicsSummary(ResponseModel):
    """The topics with the largest cost, and the others together."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total: Amount
    items: list[TopicSummaryItem]
    other: OtherTopics | None
    ignored_filters: list[str] = Field(
        description="Filters that topics know nothing of, as identities and tags.", examples=[["identity_id"]]
    )


_NUMBERS = ("amount", "previous", "bytes_in", "bytes_out")

router = Routes(prefix="/tenants/{tenant_name}", tags=["Topic attributions"])


@router.get(
    "/topics",
    response_model=TopicsSummary,
    needs=Right.READ,
    problems=TOPIC_PROBLEMS,
    files=Files(headers=RATES_HEADER),
    keep=True,
)
def summarise_topics(request: TopicFacts, params: Annotated[TopicsQuery, Query()]) -> Response:
    """Return the most expensive topics of a period, compared with another period.

    The filters are those of costs. Topic costs have no identities and no tags of identities: such filters are ignored
    and listed in `ignored_filters`. A filter by resource selects the cluster of the topics. A file has all topics,
    whatever `top`.
    """
    tenant = request.tenant
    reader = request.reader
    version = request.version
    asked = params.comparison(tenant.lookback_days, version.control.last_calculated)
    selection, ignored = of_topics(asked.selection)
    windows = [selection.window, asked.previous]
    conversion = conversion_for(tenant, reader, params.currency, [TOPIC_ATTRIBUTIONS], windows)
    rates = None if conversion is None else conversion.rates
    top = None if request.wants_csv else params.top
    found = topic_costs(reader, selection, asked.previous, top, traffic=True, rates=rates)
    with tenant.store.control.read() as connection:
        clusters = names_of(connection, RESOURCES, {item.cluster_id for item in found.items})
    body = topics_response(found, clusters, has_previous=asked.compared is not None)
    for shown, item in zip(body["items"], found.items, strict=True):
        shown["bytes_in"] = None if item.bytes_in is None else render(item.bytes_in)
        shown["bytes_out"] = None if item.bytes_out is None else render(item.bytes_out)
        shown["zombie"] = item.is_zombie
    if request.wants_csv:
        columns, headers = tuple(TopicSummaryItem.model_fields), rates_header(conversion)
        return csv_response("topics.csv", columns, body["items"], numbers=_NUMBERS, headers=headers)
    own = {"start_date": asked.period.start, "end_date": asked.period.end} | currency_of(tenant, conversion)
    return json_response(own | body | {"ignored_filters": ignored})
