"""Costs over time as flat rows."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from fastapi import Query
from pydantic import Field
from pydantic_core import to_json
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.currency import CurrencyParameter, conversion_for
from chargeback.api.parameters import JSON_TYPE
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routing import Routes
from chargeback.api.selecting import MOST_TIMES, CostColumn, CostColumns, DatasetQuery, column_or_tag
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import start_of_day
from chargeback.model.money import render
from chargeback.reports.answers import CONVERSION, ConversionItem, ResponseModel
from chargeback.reports.costs import CostRequest, CostsAnswer, buckets_of, report
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

#: An amount as a JSON number with all its digits; programs that read it as binary floating point round it.
ShownNumber = Annotated[Any, Field(json_schema_extra={"type": "number", "examples": [1234.56]})]


class SeriesQuery(CostColumns, CurrencyParameter, DatasetQuery):
    """Parameters of the series."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    group_by: CostColumn | None = Field(
        default=None,
        description=f"A row for each value of this column and unit of time: {', '.join(COST_COLUMNS)}, `tag:<key>` or "
        "`category:<key>`. Default: a row for each unit of time.",
        examples=["product_category"],
        json_schema_extra=column_or_tag(COST_COLUMNS),
    )
    time_bucket: Literal["day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )
    top: int = Field(default=10, ge=1, le=50, description="How many values, the largest first; the others are one.")


class SeriesRow(ResponseModel):
    """The amount of one value in one unit of time."""

    time: datetime = Field(
        description="When the unit of time begins, with the offset of `timezone`.",
        examples=["2026-01-31T00:00:00+00:00"],
    )
    value: str | None = Field(description="Null for rows without a value, and for the sum of the other values.")
    name: str = Field(
        description="The name to show: the display name, or the value; `(other)` for the sum of the other values, "
        "`(none)` for rows without a value, `total` without `group_by`.",
        examples=["orders-service"],
    )
    amount: ShownNumber


class SeriesAnswer(ResponseModel):
    """Costs over time. The rows of a unit of time add up to its total, with all digits."""

    start_date: date
    end_date: date
    timezone: str = Field(examples=["UTC"])
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    total: ShownNumber
    rows: list[SeriesRow] = Field(description="Ordered by time, then by the costs of the values.")


#: The column that is summed if none is requested; only the sums over all of its values are returned.
_ANY_COLUMN = "product_category"

router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])


@router.get("/series", response_model=SeriesAnswer, needs=Right.READ, keep=True)
def show_series(request: Facts, params: Annotated[SeriesQuery, Query()]) -> Response:
    """Return costs over time as flat rows with JSON numbers, for display only.

    Dashboards such as Grafana can draw them directly. The numbers have all digits, but most programs read them as
    binary floating point, which rounds them: to calculate, use the decimal strings of `…/costs` or
    `…/chargebacks/aggregate`. Units of time without costs also have a row. Page parameters are ignored.
    """
    tenant = request.tenant
    reader = request.reader
    version = request.version
    last = version.control.last_calculated
    period = params.chosen_period(tenant.lookback_days, last)
    if period.days > MOST_TIMES and len(buckets_of(period, params.time_bucket)) > MOST_TIMES:
        raise InvalidRequest([InvalidParameter("time_bucket", f"should make at most {MOST_TIMES} units of time")])
    selection = params.selection(tenant.lookback_days, last)
    conversion = conversion_for(tenant, reader, params.currency, [CHARGEBACKS], [selection.window])
    by = params.group_by or _ANY_COLUMN
    wanted = CostRequest(
        period, None, selection, params.zone, params.time_bucket, (by,), by, params.top, frozenset(), conversion
    )
    found = report(tenant, reader, wanted)
    rows = [_row(*row) for row in _rows(found, params.zone, grouped=params.group_by is not None)]
    others = found.model_dump_json(include={"start_date", "end_date", "timezone", "currency", "conversion"})
    body = f'{{"rows":[{",".join(rows)}],"total":{render(found.total.amount)},{others[1:]}'
    return Response(body, media_type=JSON_TYPE)


def _rows(found: CostsAnswer, zone: ZoneInfo, *, grouped: bool) -> Iterator[tuple[str, str | None, str, Decimal]]:
    """Yield time, value, name and amount of each row."""
    (breakdown,) = found.breakdowns
    values = [
        (each.value, each.name or ("(none)" if each.value is None else each.value), each.amounts)
        for each in breakdown.items
    ]
    if breakdown.other is not None:
        values.append((None, "(other)", breakdown.other.amounts))
    if not grouped:
        values = [(None, "total", found.amounts)]
    for number, day in enumerate(found.times):
        begins = start_of_day(day, zone).astimezone(zone).isoformat()
        yield from ((begins, value, name, amounts[number]) for value, name, amounts in values)


def _row(begins: str, value: str | None, name: str, amount: Decimal) -> str:
    """Return a row as JSON, with the amount as a number with all digits, which no JSON encoder writes from a
    Decimal."""
    return f'{to_json({"time": begins, "value": value, "name": name}).decode()[:-1]},"amount":{render(amount)}}}'
