"""Unit costs: the costs of one unit of usage."""

from datetime import datetime
from typing import Annotated, Any, ClassVar

from fastapi import Query
from pydantic import Field, field_validator
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.currency import RATES_HEADER, CurrencyParameter, conversion_for, rates_header
from chargeback.api.problems import InvalidParameter
from chargeback.api.responses import csv_response
from chargeback.api.routes.topic_attributions import require_topics
from chargeback.api.routing import CsvFile, Routes
from chargeback.api.selecting import (
    CATEGORY_GROUPS,
    MAX_GROUPS,
    CostColumns,
    DatasetQuery,
    UsualPeriodQuery,
    check_columns,
    column_or_tag,
)
from chargeback.api.tenant_requests import Facts
from chargeback.reports.unit_costs import UNIT_MEASURES, Per, UnitCostsAnswer, UnitCostSums, unit_costs_answer
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset

#: The columns of groups: those of chargebacks and, for measures of topics, those of topics.
GROUPS = tuple(dict.fromkeys((*CHARGEBACKS.groups, *TOPIC_ATTRIBUTIONS.groups)))


class UnitCostsQuery(CostColumns, CurrencyParameter, UsualPeriodQuery, DatasetQuery):
    """Parameters of unit costs."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    per: Per = Field(
        default="gib_in",
        description="The divisor of the costs: `gib_in` and `gib_out`, GiB that identities wrote and read; "
        "`gib_stored`, GiB that topics retained, times days; `topic`, topics times days. The last two divide the "
        "costs of topics.",
    )
    group_by: list[str] = Field(
        default=[],
        max_length=MAX_GROUPS,
        description=f"Columns to group by, repeatable: {', '.join(GROUPS)}, `tag:<key>`, or {CATEGORY_GROUPS}; those "
        "of chargebacks with `gib_in` and `gib_out`, those of topics with the others. Default: the total only.",
        json_schema_extra={"items": column_or_tag(GROUPS)},
    )
    limit: int = Field(default=100, ge=1, le=1000, description="How many groups, those with the largest amounts first.")

    @field_validator("group_by")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        check_columns(value, GROUPS)
        return list(dict.fromkeys(value))

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that the measured costs have the columns of the groups."""
        errors = super().cross_checks(raw, now)
        measure = UNIT_MEASURES.get(raw.get("per", "gib_in"))
        if measure is None:
            return errors
        dataset = measure.dataset
        wrong = [
            name
            for name in raw.get("group_by", [])
            if name in GROUPS and dataset.aliases.get(name, name) not in dataset.groups
        ]
        if wrong:
            errors.append(InvalidParameter("group_by", f"should not have {', '.join(wrong)} with this `per`"))
        return errors


router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])

_PROBLEMS = {400: "The request is invalid, or topics are requested but not attributed."}


@router.get(
    "/unit-costs",
    needs=Right.READ,
    problems=_PROBLEMS,
    files=CsvFile(headers=RATES_HEADER),
    keep=True,
)
def show_unit_costs(request: Facts, params: Annotated[UnitCostsQuery, Query()]) -> UnitCostsAnswer | Response:
    """Return the cost of a unit of measured usage: all selected costs, divided by the usage of the same identities or
    topics.

    The default period is the 30 days up to the last calculated day. If the usage of a resource was not measured on a
    day, the day does not count for the resource: its costs are in `excluded_amount`, and the day is in `missing_days`.
    A file has the groups.
    """
    tenant, reader, dataset = request.tenant, request.reader, UNIT_MEASURES[params.per].dataset
    if dataset is TOPIC_ATTRIBUTIONS:
        require_topics(tenant, request.access)
    period = params.chosen_period(tenant.lookback_days, request.version.control.last_calculated)
    selection = request.selection(params)
    conversion = conversion_for(tenant, reader, params.currency, [dataset], [selection.window])
    found = unit_costs_answer(tenant, reader, params.per, period, selection, params.group_by, params.limit, conversion)
    if request.wants_csv:
        columns = (*params.group_by, *UnitCostSums.model_fields)
        rows = (dict(item) | item.dimensions for item in found.items)
        return csv_response("unit_costs.csv", columns, rows, headers=rates_header(conversion))
    return found
