"""Sums of chargebacks, and the response of all aggregates."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.currency import RATES_HEADER, CurrencyParameter, conversion_for, rates_header
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import csv_response, rendered_response
from chargeback.api.routing import CsvFile, Routes
from chargeback.api.selecting import ChargebackFilters, GroupedQuery, PostedQuery, groups_of
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Facts, FactsRequest
from chargeback.errors import HistoryGone, StorageError
from chargeback.model.currency import Conversion
from chargeback.reports.answers import (
    CONVERSION,
    DIRECT_AMOUNT,
    SHARED_IN,
    SHARED_OUT,
    Amount,
    ConversionItem,
    Grouped,
    ResponseModel,
    currency_of,
)
from chargeback.reports.names import display_names
from chargeback.reports.reconciliation import DIFFERS, EQUAL, NONE, PENDING, worst_state
from chargeback.store.queries.aggregate import MAX_BUCKETS, Aggregate, Grouping, shown_amounts
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import POSTING
from chargeback.store.queries.selection import Selection


class AggregateParameters(CurrencyParameter, GroupedQuery):
    """Parameters of every aggregate."""

    time_bucket: Literal["hour", "day", "week", "month", "all"] = Field(
        default="day",
        description="Unit of time, in the calendar of `timezone`; weeks start on Monday. `all`: the whole period is "
        "one unit; its time is the first UTC day that has rows.",
    )

    def grouping(self, conversion: Conversion | None) -> Grouping:
        """Return how rows are grouped, and in which currency they are summed."""
        rates = None if conversion is None else conversion.rates
        return Grouping(tuple(self.group_by), self.time_bucket, self.zone, rates)


class AggregateQuery(ChargebackFilters, PostedQuery, AggregateParameters):
    """Parameters of the aggregation."""

    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    names: bool = Field(default=False, description="Whether the display names of ids are included.")


class AggregateBucket(Grouped):
    """The sums of one group in one unit of time."""

    time_bucket: str = Field(
        description="`YYYY-MM-DD` (the day, the week's Monday, the month's 1st), or `YYYY-MM-DDTHH:00:00±hh:mm`.",
        examples=["2026-01-31"],
    )
    total_amount: Amount
    usage_amount: Amount
    shared_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    row_count: int


class AggregateAnswer(ResponseModel):
    """Sums by group and time. The totals include buckets that were left out because there were too many."""

    buckets: list[AggregateBucket]
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total_amount: Amount
    usage_amount: Amount
    shared_amount: Amount
    direct_amount: Amount | None = DIRECT_AMOUNT
    shared_in: Amount | None = SHARED_IN
    shared_out: Amount | None = SHARED_OUT
    total_rows: int
    names: dict[str, dict[str, str]] | None = Field(
        default=None,
        description="With `names` only: the display names of ids, by column. Ids without a name are left out.",
        examples=[{"identity_id": {"sa-123abc": "orders-service"}}],
    )


TRUNCATED = "X-Buckets-Truncated"

router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])

RECONCILED = "X-Reconciled"

RECONCILED_HEADER = {
    RECONCILED: {
        "description": "Whether charges equal the bill on all UTC days that the period touches, regardless of filters: "
        "the state of the worst day, as in `…/reconciliation`. Missing if the bill or the state of a day cannot be "
        "read.",
        "schema": {"type": "string", "enum": [EQUAL, DIFFERS, PENDING, NONE]},
    }
}
BUCKET_HEADERS = (
    RECONCILED_HEADER
    | CATEGORIES_HEADER
    | {
        TRUNCATED: {
            "description": f"`true` if there were more than {MAX_BUCKETS:,} buckets and the oldest were omitted.",
            "schema": {"type": "string", "enum": ["true"]},
        }
    }
)


BUCKET_FILES = CsvFile(headers=RATES_HEADER)


@router.get(
    "/aggregate",
    response_model=AggregateAnswer,
    needs=Right.READ,
    files=BUCKET_FILES,
    responses={200: {"headers": BUCKET_HEADERS}},
    keep=True,
)
def aggregate_chargebacks(request: Facts, params: Annotated[AggregateQuery, Query()]) -> Response:
    """Return chargebacks summed by time and columns, ordered by time, then columns.

    At most 10,000 buckets are returned. If there are more, the oldest units of time are omitted and the header
    `X-Buckets-Truncated` is set. The totals include all buckets. In a file, more than 10,000 buckets are an error,
    because a file without the oldest ones would look complete; with `names`, each id is followed by its display name.

    With `basis=posted`, each group also has `posted_period`, `charge_class` (`regular` or `correction`) and
    `charge_period`, the month in which it was charged.
    """
    params = params.with_posted_defaults
    if params.is_posted:
        params = params.model_copy(update={"group_by": [*params.group_by, *POSTING]})
    return aggregate_response(request, params, names=params.names)


def aggregate_response(request: FactsRequest, params: AggregateParameters, *, names: bool = False) -> Response:
    """Return the response of an aggregate endpoint: buckets, totals, with ``names`` the display names of ids, and a
    header if buckets were left out. A file must have all buckets, because an incomplete one would look complete. A
    further header has the state of the reconciliation."""
    tenant, selection = request.tenant, request.selection(params)
    conversion = conversion_for(tenant, request.reader, params.currency, [params.dataset], [selection.window])
    grouping = params.grouping(conversion)
    sums = request.reader.aggregate(params.dataset, selection, grouping)
    named = {}
    if names:
        with tenant.store.control.read() as connection:
            named = display_names(connection, params.group_by, [bucket["dimensions"] for bucket in sums.buckets])
    if not request.wants_csv:
        rest = currency_of(tenant.currency, conversion) | sums.totals | ({"names": named} if names else {})
        headers = {TRUNCATED: "true"} if sums.truncated else None
        response = rendered_response("buckets", sums.rendered, rest, headers=headers)
    elif sums.truncated:
        raise InvalidRequest([InvalidParameter("group_by", f"should make at most {MAX_BUCKETS:,} buckets")])
    else:
        response = _file(params, grouping, sums, named, rates_header(conversion))
    response.headers.update(_reconciled(request, selection))
    return response


def _reconciled(request: FactsRequest, selection: Selection) -> dict[str, str]:
    """Return the header with the state of the reconciliation, if it is known. It is about the whole bill, so callers
    with a scope do not get it."""
    reader, totals = request.reader.of_days, request.executor.day_totals
    if not reader.sees_everything:
        return {}
    with suppress(HistoryGone, StorageError), request.tenant.store.control.read() as connection:
        return {RECONCILED: worst_state(reader, connection, totals, selection.window.days())}
    return {}


def _file(
    params: AggregateParameters,
    grouping: Grouping,
    sums: Aggregate,
    names: Mapping[str, Mapping[str, str]],
    headers: Mapping[str, str],
) -> Response:
    """Return the buckets as CSV; each column of ids is followed by one with their display names."""
    columns = ["time_bucket"]
    for column in params.group_by:
        columns += [column, _name_of(column)] if column in names else [column]
    rows = (
        bucket
        | bucket["dimensions"]
        | {_name_of(column): known.get(bucket["dimensions"][column]) for column, known in names.items()}
        for bucket in sums.buckets
    )
    amounts = tuple(shown_amounts(params.dataset, grouping))
    name = f"{params.dataset.table}_aggregate.csv"
    return csv_response(name, (*columns, *amounts, "row_count"), rows, numbers=amounts, headers=headers)


def _name_of(column: str) -> str:
    return f"{column.removesuffix('_id')}_name"
