"""A summary of topics: their costs, their traffic, and those that have costs but no traffic."""

from typing import Annotated, ClassVar

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.currency import RATES_HEADER, CurrencyParameter, conversion_for, rates_header
from chargeback.api.responses import table_response
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFacts
from chargeback.api.routing import CsvFile, Routes
from chargeback.api.selecting import ComparingQuery, CostColumns
from chargeback.reports.topic_costs import TopicsSummary, TopicSummaryItem, topics_summary
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset


class TopicsQuery(CostColumns, CurrencyParameter, ComparingQuery):
    """Parameters of the summary of topics: the filters of costs; those that topics do not have are ignored."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    top: int = Field(default=100, ge=1, le=1000, description="How many topics are named.")


router = Routes(prefix="/tenants/{tenant_name}", tags=["Topic attributions"])


@router.get(
    "/topics",
    needs=Right.READ,
    problems=TOPIC_PROBLEMS,
    files=CsvFile(headers=RATES_HEADER),
    keep=True,
)
def summarise_topics(request: TopicFacts, params: Annotated[TopicsQuery, Query()]) -> TopicsSummary | Response:
    """Return the most expensive topics of a period, compared with another period.

    The filters are those of costs. Topic costs have no identities and no tags of identities: such filters are ignored
    and listed in `ignored_filters`. A filter by resource selects the cluster of the topics. A file has all topics, and
    `top` is ignored.
    """
    comparison = request.comparison(params)
    windows = [comparison.selection.window, comparison.previous]
    conversion = conversion_for(request.tenant, request.reader, params.currency, [TOPIC_ATTRIBUTIONS], windows)
    top = None if request.wants_csv else params.top
    answer = topics_summary(request.tenant, request.reader, comparison, top, conversion)
    if request.wants_csv:
        columns = TopicSummaryItem.columns()
        return table_response("topics.csv", columns, answer.items, headers=rates_header(conversion))
    return answer
