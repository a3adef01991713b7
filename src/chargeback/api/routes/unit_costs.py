"""What one unit of usage cost."""

from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from fastapi import Query
from pydantic import Field, field_validator
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.currency import RATES_HEADER, conversion_for, currency_of, rates_header
from chargeback.api.parameters import CurrencyParameter
from chargeback.api.problems import InvalidParameter
from chargeback.api.responses import csv_response, json_response
from chargeback.api.routes.topic_attributions import require_topics
from chargeback.api.routing import Files, Routes
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.costs import USUAL_PERIOD
from chargeback.api.schemas.datasets import CATEGORY_GROUPS, MAX_GROUPS, DatasetQuery, check_columns, column_or_tag
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.reports.answers import CONVERSION, Amount, ConversionItem, Exact, ResponseModel
from chargeback.reports.names import display_names
from chargeback.reports.periods import Period
from chargeback.reports.topic_costs import of_topics
from chargeback.reports.unit_costs import UNIT_MEASURES, UnitCost, unit_costs
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset

#: What can be grouped by: columns of chargebacks and, where topics are measured, theirs.
GROUPS = tuple(dict.fromkeys((*CHARGEBACKS.groups, *TOPIC_ATTRIBUTIONS.groups)))

Per = Literal["gib_in", "gib_out", "gib_stored", "topic"]


class UnitCostsQuery(CostColumns, CurrencyParameter, DatasetQuery):
    """Parameters of unit costs."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: CostColumns = CostColumns()
    per: Per = Field(
        default="gib_in",
        description="What the costs are divided by: `gib_in` and `gib_out`, GiB that identities wrote and read; "
        "`gib_stored`, GiB that topics retained, times days; `topic`, topics times days. The last two are about the "
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

    @property
    def columns(self) -> list[str]:
        """The columns of the groups, as the dataset that is measured calls them."""
        dataset = UNIT_MEASURES[self.per].dataset
        return [dataset.aliases.get(name, name) for name in self.group_by]

    def chosen_period(self, lookback_days: int, last: date | None) -> Period:
        """The days that are meant: without any, the last 30 that are calculated."""
        usual = self.period is None and self.start_date is None and self.end_date is None
        params = self.model_copy(update={"period": USUAL_PERIOD}) if usual else self
        return super(UnitCostsQuery, params).chosen_period(lookback_days, last)


class UnitCostSums(ResponseModel):
    """An amount, the usage of the same days, and what a unit cost."""

    amount: Amount = Field(description="The costs on the days that count.")
    excluded_amount: Amount = Field(description="The costs on days without the measurements; not part of `amount`.")
    usage: Exact | None = Field(
        description="The measured usage in units, rounded to six places; null if nothing was measured."
    )
    unit_cost: Exact | None = Field(
        description="`amount` divided by the exact usage, rounded to twelve places; null without usage."
    )
    days: int = Field(description="UTC days on which the amount lies.")
    days_with_usage: int = Field(description="UTC days of them on which there is usage above zero.")


class UnitCostItem(UnitCostSums):
    """One group."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])


class UnitCostsAnswer(ResponseModel):
    """What a unit of usage cost, by group and in total."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    per: Per
    unit: str = Field(description="What the usage is counted in.", examples=["GiB"])
    covers: str = Field(description="What the amount covers, in words.")
    measures: list[str] = Field(
        description="The measures that the usage is made of; empty if measured topics are counted.",
        examples=[["bytes_in"]],
    )
    total: UnitCostSums
    items: list[UnitCostItem] = Field(description="The groups with the largest amounts, the largest first.")
    groups: int = Field(description="How many groups there are.")
    missing_days: list[date] = Field(description="UTC days of which costs were left out, as nothing was measured.")
    names: dict[str, dict[str, str]] = Field(
        description="The display names of ids, by column.", examples=[{"identity_id": {"sa-123abc": "orders-service"}}]
    )
    ignored_filters: list[str] = Field(
        description="Filters that topics know nothing of, as identities and tags.", examples=[["identity_id"]]
    )


router = Routes(prefix="/tenants/{tenant_name}", tags=["Costs"])

_PROBLEMS = {400: "Something in the request is wrong, or topics are asked for and not attributed."}

_SUMS = ("amount", "excluded_amount", "usage", "unit_cost")
_COVERS = "all selected costs of %s, of every product; filter by `product_type` for the costs of a single one"


@router.get(
    "/unit-costs",
    response_model=UnitCostsAnswer,
    needs=Right.READ,
    problems=_PROBLEMS,
    files=Files(headers=RATES_HEADER),
    keep=True,
)
def show_unit_costs(request: Facts, params: Annotated[UnitCostsQuery, Query()]) -> Response:
    """Return what a unit of measured usage cost: all selected costs, divided by the usage of those who bear them.

    The default period is the 30 days up to the last calculated day. A day on which the usage of a resource was not
    measured does not count for the resource: its costs are in `excluded_amount`, and the day is in `missing_days`.
    A file has the groups.
    """
    tenant, measure = request.tenant, UNIT_MEASURES[params.per]
    if measure.dataset is TOPIC_ATTRIBUTIONS:
        require_topics(tenant, request.access)
    reader = request.reader
    version = request.version
    last = version.control.last_calculated
    chosen = params.chosen_period(tenant.lookback_days, last)
    asked = params.selection(tenant.lookback_days, last)
    selection, ignored = of_topics(asked) if measure.dataset is TOPIC_ATTRIBUTIONS else (asked, ())
    conversion = conversion_for(tenant, reader, params.currency, [measure.dataset], [selection.window])
    rates = None if conversion is None else conversion.rates
    found = unit_costs(reader, measure, selection, params.columns, params.limit, rates)
    items = [{"dimensions": dict(zip(params.group_by, item.key, strict=True))} | _sums(item) for item in found.items]
    if request.wants_csv:
        rows = (item | item["dimensions"] for item in items)
        columns = (*params.group_by, *_SUMS, "days", "days_with_usage")
        return csv_response("unit_costs.csv", columns, rows, numbers=_SUMS, headers=rates_header(conversion))
    own = {"start_date": chosen.start, "end_date": chosen.end} | currency_of(tenant, conversion)
    with tenant.store.control.read() as connection:
        names = display_names(connection, params.group_by, [item["dimensions"] for item in items])
    body = {
        "per": params.per,
        "unit": measure.unit.name,
        "covers": _COVERS % ("topics" if measure.dataset is TOPIC_ATTRIBUTIONS else "identities"),
        "measures": measure.measures,
        "total": _sums(found.total),
        "items": items,
        "groups": found.groups,
        "missing_days": found.missing_days,
        "names": names,
        "ignored_filters": ignored,
    }
    return json_response(own | body)


def _sums(cost: UnitCost) -> dict[str, Any]:
    return {
        "amount": render(cost.amount),
        "excluded_amount": render(cost.excluded),
        "usage": None if cost.usage is None else render(cost.usage),
        "unit_cost": None if cost.unit_cost is None else render(cost.unit_cost),
        "days": cost.days,
        "days_with_usage": cost.days_with_usage,
    }
