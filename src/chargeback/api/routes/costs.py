"""Costs in one response: totals, breakdowns, a time series, and a comparison with another period."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field, field_validator
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.currency import RATES_HEADER, CurrencyParameter, conversion_for, rates_header
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import digest_of, table_response
from chargeback.api.routing import CsvFile, Routes
from chargeback.api.selecting import (
    CATEGORY_GROUPS,
    MOST_TIMES,
    ComparingQuery,
    CostColumns,
    PostedQuery,
    check_columns,
    column_or_tag,
)
from chargeback.api.tenant_requests import Facts, check_posted
from chargeback.reports.costs import (
    PARTS,
    POSTED_PARTS,
    USUAL,
    BreakdownRow,
    CostRequest,
    CostsAnswer,
    breakdown_rows,
    breakdowns_of,
    buckets_of,
    report,
)
from chargeback.reports.periods import months_before
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import DATASETS
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.version import DataVersion

#: The most breakdowns of one request.
MOST_BREAKDOWNS = 6
_PART = "|".join(PARTS)


class CostsQuery(CostColumns, CurrencyParameter, PostedQuery, ComparingQuery):
    """Parameters of the costs."""

    excluded: CostColumns = CostColumns()
    by: list[str] = Field(
        default=["identity_id"],
        min_length=1,
        max_length=MOST_BREAKDOWNS,
        description=f"The columns of the breakdowns, repeatable: {', '.join(COST_COLUMNS)}, `tag:<key>`, or "
        f"{CATEGORY_GROUPS}; at most {MOST_BREAKDOWNS}. `usual` stands for the first cost category, the tag that at "
        "least half of the cost has, identity_id, environment_id, product_type and resource_id, as long as there is "
        "room.",
        json_schema_extra={"items": column_or_tag((*COST_COLUMNS, USUAL))},
    )
    series: str | None = Field(
        default=None,
        description="The column of `by` for the time series. Default: the first.",
        json_schema_extra=column_or_tag(COST_COLUMNS),
    )
    top: int = Field(default=7, ge=1, le=50, description="How many values each breakdown names.")
    time_bucket: Literal["day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )
    include: list[str] = Field(
        default=[],
        description=f"Further parts of the response, repeatable or separated by commas: {', '.join(PARTS)}.",
        examples=[["issues,days"]],
        json_schema_extra={"items": {"type": "string", "pattern": f"^({_PART})(,({_PART}))*$"}},
    )

    @field_validator("by")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        check_columns(value, (*COST_COLUMNS, USUAL))
        return list(dict.fromkeys(value))

    @field_validator("include")
    @classmethod
    def _parts(cls, value: list[str]) -> list[str]:
        parts = [part for each in value for part in each.split(",") if part]
        for part in parts:
            if part not in PARTS:
                raise ValueError(f"{part[:80]!r} should be one of {', '.join(PARTS)}")
        return sorted(set(parts))

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that the series is one of the breakdowns."""
        errors = super().cross_checks(raw, now)
        series = raw.get("series")
        if series is not None and (series == USUAL or series not in raw.get("by", ["identity_id"])):
            errors.append(InvalidParameter("series", "should be one of by"))
        if raw.get("basis") == "posted":
            if USUAL in raw.get("by", ()):
                errors.append(InvalidParameter("by", "should not have usual with basis=posted"))
            accrued = {part for each in raw.get("include", ()) for part in each.split(",")} - {"", *POSTED_PARTS}
            if accrued:
                known = ", ".join(POSTED_PARTS)
                errors.append(InvalidParameter("include", f"should have {known} only with basis=posted"))
            if raw.get("compare", "previous") not in {"previous", "none"}:
                errors.append(InvalidParameter("compare", "should be previous or none with basis=posted"))
        return errors


router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/costs", needs=Right.READ, files=CsvFile(headers=RATES_HEADER), keep=True)
def show_costs(request: Facts, params: Annotated[CostsQuery, Query()]) -> CostsAnswer | Response:
    """Return the costs of a period: totals, breakdowns by columns or tags, a time series, a comparison.

    The default period is the 30 days up to the last calculated day. Compare two periods only if `days_with_costs` is
    the same for both: missing days are not savings. A file has the breakdowns: a line for
    each value, and for the others together.
    """
    tenant, reader, version = request.tenant, request.reader, request.version
    params = params.with_posted_defaults
    wanted = _request(params, tenant.lookback_days, version)
    check_posted(reader, wanted.window)
    if isinstance(reader, PostedReader) and wanted.compared is not None and not reader.books.has(wanted.compared.start):
        wanted = replace(wanted, compared=None)
    by = breakdowns_of(reader, version.control.last_calculated, params.by, MOST_BREAKDOWNS)
    wanted = replace(wanted, by=by, series=by[0] if wanted.series == USUAL else wanted.series)
    windows = [wanted.window, wanted.compared_window]
    conversion = conversion_for(tenant, reader, params.currency, DATASETS, windows)
    answer = report(tenant, reader, replace(wanted, conversion=conversion))
    if request.wants_csv:
        columns = BreakdownRow.columns()
        return table_response("costs.csv", columns, breakdown_rows(answer), headers=rates_header(conversion))
    # The version of all data would reveal to a caller with a scope that data outside it has changed.
    figures = None if reader.sees_everything else answer.model_dump_json(exclude={"revision"})
    revision = version.digest if figures is None else digest_of(figures.encode())
    return answer.model_copy(update={"revision": revision})


def _request(params: CostsQuery, lookback_days: int, version: DataVersion) -> CostRequest:
    comparison = params.comparison(lookback_days, version.control.last_calculated)
    if params.is_posted and comparison.compared is not None:
        comparison = replace(comparison, compared=months_before(comparison.period))
    request = CostRequest(
        comparison.period,
        comparison.compared,
        comparison.selection,
        params.zone,
        params.time_bucket,
        tuple(params.by),
        params.series or params.by[0],
        params.top,
        frozenset(params.include),
        is_posted=params.is_posted,
    )
    if comparison.period.days > MOST_TIMES and len(buckets_of(comparison.period, params.time_bucket)) > MOST_TIMES:
        raise InvalidRequest([InvalidParameter("time_bucket", f"should make at most {MOST_TIMES} units of time")])
    return request
