"""Topic attributions."""

from typing import Annotated, ClassVar

from fastapi import Body, Depends, Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right, TenantAccess
from chargeback.api.dependencies import AccessDep, TenantDep
from chargeback.api.parameters import DateRangeParameters, FactsParameters, OptionalText, Text
from chargeback.api.problems import ApiError
from chargeback.api.responses import page_response
from chargeback.api.routes.aggregate import BUCKET_FILES, BUCKET_HEADERS, AggregateParameters, aggregate_response
from chargeback.api.routing import CsvFile, Routes
from chargeback.api.selecting import DatasetQuery, Filters, groups_of
from chargeback.api.tenant_requests import Export, Facts, FactsRequest, RowsFile, file_answer, format_field, rows_file
from chargeback.model.topics import AttributionMethod
from chargeback.reports.answers import (
    CONVERSION,
    DIRECT_AMOUNT,
    SHARED_IN,
    SHARED_OUT,
    Amount,
    CategoryPart,
    ConversionItem,
    DatesAnswer,
    Exact,
    Instant,
    Metadata,
    PageOf,
    ResponseModel,
)
from chargeback.reports.explain.links import topic_link
from chargeback.reports.tenant_view import TenantView
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.export import ExportFormat
from chargeback.store.queries.selection import Selection


class TopicColumns(Filters):
    """The columns by which topic rows are filtered."""

    cluster_resource_id: list[Text] = Field(default=[], description="Only topics of this cluster.")
    topic_name: list[Text] = Field(default=[], description="Only topics of this name.")
    product_type: list[Text] = Field(default=[], description="Only this product type.")
    attribution_method: list[AttributionMethod] = Field(default=[], description="Only rows made this way.")
    env_id: list[OptionalText] = Field(
        default=[], description="Only topics in this environment; empty: where it is unknown."
    )
    product_category: list[Text] = Field(default=[], description="Only this product category.")
    line_id: list[Text] = Field(default=[], description="Only the shares of this billing line.")


class TopicQuery(TopicColumns, DatasetQuery):
    """Parameters of the list of topic rows."""

    dataset: ClassVar[Dataset] = TOPIC_ATTRIBUTIONS

    excluded: TopicColumns = TopicColumns()


class TopicAggregateQuery(TopicQuery, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(TOPIC_ATTRIBUTIONS, "topic_name")


class TopicExportRequest(DateRangeParameters):
    """The days to export, and the format; all fields have defaults."""

    format: ExportFormat = format_field()

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of rows."""
        return Selection(self.window(lookback_days))


class TopicRow(ResponseModel):
    """One topic's share of one billing line."""

    dimension_id: int = Field(description="Never changes, even after a recalculation; below 2^53.", examples=[1])
    ecosystem: str = Field(examples=["confluent_cloud"])
    tenant_id: str = Field(examples=["acme"])
    timestamp: Instant
    env_id: str | None = Field(description="The environment of the cluster; null if unknown.", examples=["env-abc12"])
    cluster_resource_id: str = Field(examples=["lkc-abc123"])
    topic_name: str = Field(
        description="`__UNATTRIBUTED__` stands for all topics if none is known or the metrics are unavailable.",
        examples=["orders"],
    )
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NETWORK_WRITE"])
    attribution_method: AttributionMethod
    amount: Exact
    categories: dict[str, list[CategoryPart]] | None = Field(
        default=None,
        description="Where the tenant has cost categories: by key, the values to which the row is assigned.",
    )
    metadata: Metadata


class TopicBucket(ResponseModel):
    """The sum of one group in one unit of time."""

    dimensions: dict[str, str | None] = Field(examples=[{"topic_name": "orders"}])
    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    row_count: int


class TopicAggregateAnswer(ResponseModel):
    """Sums by group and time. The totals include buckets that were left out because there were too many."""

    buckets: list[TopicBucket]
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    total_rows: int


router = Routes(prefix="/tenants/{tenant_name}/topic-attributions", tags=["Topic attributions"])

TOPIC_PROBLEMS = {400: "The request is invalid, or topic attribution is not enabled for this tenant."}
_FILE = file_answer("ecosystem,tenant_id,timestamp\r\n")


class TopicsUnavailable(ApiError):
    """Topic attribution is disabled for the tenant, or its settings are invalid."""

    status = 400
    kind = "topic-attribution-unavailable"


async def _with_topics(tenant: TenantDep, access: AccessDep) -> TenantView:
    require_topics(tenant, access)
    return tenant


def require_topics(tenant: TenantView, access: TenantAccess) -> None:
    """Check that the topics of a tenant are attributed; a refusal has only reasons that the caller may know.

    Raises:
        TopicsUnavailable: they are not.
    """
    match tenant.topic_attribution_status:
        case "enabled":
            return
        case "config_error":
            raise TopicsUnavailable(
                f"The topic attribution settings of tenant {tenant.tenant_name} are invalid: "
                f"{access.reason(tenant.topic_attribution_error)}"
            )
        case _:
            raise TopicsUnavailable(
                f"Topic attribution is disabled for tenant {tenant.tenant_name}; "
                "plugin_settings.topic_attribution.enabled: true enables it."
            )


TopicTenantDep = Annotated[TenantView, Depends(_with_topics)]


async def _topic_facts(request: Facts, _tenant: TopicTenantDep) -> FactsRequest:
    return request


#: As :data:`Facts`, for a tenant whose topics are attributed.
TopicFacts = Annotated[FactsRequest, Depends(_topic_facts)]


@router.get(
    "",
    response_model=PageOf[TopicRow],
    needs=Right.READ,
    problems=TOPIC_PROBLEMS,
    files=CsvFile(rows="topic_attributions.csv"),
)
def list_topic_attributions(request: TopicFacts, params: Annotated[TopicQuery, Query()]) -> Response:
    """List topic attribution rows, ordered by time and ids. The rows of a billing line sum to its cost.

    `explain` in the metadata of a row is the link to its explanation, relative to the address of the list."""
    reader = request.reader
    selection = request.selection(params)
    items, total = reader.list_rows(TOPIC_ATTRIBUTIONS, selection, params.paging)
    for item in items:
        item["metadata"]["explain"] = topic_link(item, params.as_of)
    return page_response(items, total, page=params.page, page_size=params.page_size)


@router.get(
    "/aggregate",
    response_model=TopicAggregateAnswer,
    needs=Right.READ,
    problems=TOPIC_PROBLEMS,
    files=BUCKET_FILES,
    responses={200: {"headers": BUCKET_HEADERS}},
    keep=True,
)
def aggregate_topic_attributions(request: TopicFacts, params: Annotated[TopicAggregateQuery, Query()]) -> Response:
    """Return topic attribution rows summed by time and columns, ordered by time, then columns. Tags are those of the
    topic.

    At most 10,000 buckets are returned. If there are more, the oldest units of time are omitted and the header
    `X-Buckets-Truncated` is set. The totals include all buckets. In a file, more than 10,000 buckets are an error.
    """
    return aggregate_response(request, params)


@router.get("/dates", needs=Right.READ, problems=TOPIC_PROBLEMS)
def list_topic_dates(request: TopicFacts, _params: Annotated[FactsParameters, Query()]) -> DatesAnswer:
    """List all UTC days with topic attribution rows; date parameters are ignored."""
    return DatesAnswer(dates=request.reader.dates(TOPIC_ATTRIBUTIONS))


@router.post("/export", response_class=Response, needs=Right.EXPORT, problems=TOPIC_PROBLEMS, responses={200: _FILE})
def export_topic_attributions(
    request: Export,
    _tenant: TopicTenantDep,
    params: Annotated[TopicExportRequest, Body(default_factory=TopicExportRequest)],
) -> RowsFile:
    """Stream topic attribution rows as a file: CSV, Parquet or JSON lines.

    Parquet keeps the types: `amount` is a DECIMAL(38, 12), `timestamp` an instant in UTC. JSON lines have the values of
    the list, amounts as strings.

    In CSV, parse `amount` as a decimal, not as a binary floating-point number: it is exact to twelve places (pandas:
    `dtype={"amount": str}`, then `Decimal`; a spreadsheet rounds to 15 digits). Text that a spreadsheet could take for
    a formula is defused with apostrophes: one at the beginning of a text that begins with `=`, `+`, `-`, `@`, `'`, tab
    or line break, and one after each `;`, tab or line break that `=`, `+`, `-`, `@`, `'` or `"` follows. To undo it,
    remove one apostrophe at the beginning and after each `;`, tab and line break. The other formats have texts as they
    are.

    If the connection closes before the end of the transfer, the export has failed, and the file is incomplete.
    """
    selection = params.selection(request.tenant.lookback_days)
    return rows_file(
        "topic_attributions",
        params.format,
        lambda reader: reader.export(TOPIC_ATTRIBUTIONS, selection, form=params.format),
    )
