"""The costs of a period: everything that a page shows at once."""

from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator

from chargeback.api.parameters import CurrencyParameter
from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.datasets import CATEGORY_GROUPS, DatasetQuery, check_columns, column_or_tag
from chargeback.model.days import instants
from chargeback.reports.answers import CONVERSION, Amount, ComparedWith, ConversionItem, Instant, ResponseModel
from chargeback.reports.costs import PARTS
from chargeback.reports.periods import COMPARISON, Comparison, Period, compared_period
from chargeback.reports.reconciliation import ReconciledState
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

#: The maximum number of units of time in a response.
MOST_TIMES = 1000
#: So many breakdowns at once.
_PART = "|".join(PARTS)
MOST_BREAKDOWNS = 6
#: What is shown unless dates or another period are given.
USUAL_PERIOD = "30d"

ComparisonName = Annotated[str, StringConstraints(pattern=COMPARISON)]


class ComparingQuery(DatasetQuery):
    """Parameters of what compares two periods."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    compare: ComparisonName = Field(
        default="previous",
        description="The other period: `previous` (as many days before), `year` (the same dates a year before), `none`,"
        " or two dates, `2026-09-01..2026-09-30`.",
        examples=["previous"],
    )

    @field_validator("compare")
    @classmethod
    def _possible(cls, value: str) -> str:
        compared_period(value, Period(date(2001, 1, 1), date(2001, 1, 1)))
        return value

    def _periods(self, lookback_days: int, last: date | None) -> tuple[Period, Period | None]:
        """The period and the one that it is compared with; one that would be before all time is none."""
        usual = self.period is None and self.start_date is None and self.end_date is None
        params = self.model_copy(update={"period": USUAL_PERIOD}) if usual else self
        period = params.chosen_period(lookback_days, last)
        try:
            return period, compared_period(self.compare, period)
        except (OverflowError, ValueError):
            return period, None

    def comparison(self, lookback_days: int, last: date | None) -> Comparison:
        """The rows of both periods; ``last`` is the last calculated day."""
        period, compared = self._periods(lookback_days, last)
        selection = replace(self.selection(lookback_days, last), window=instants(period.start, period.end, self.zone))
        previous = None if compared is None else instants(compared.start, compared.end, self.zone)
        return Comparison(period, compared, selection, previous)


class CostsQuery(CostColumns, CurrencyParameter, ComparingQuery):
    """Parameters of the costs."""

    excluded: CostColumns = CostColumns()
    by: list[str] = Field(
        default=["identity_id"],
        min_length=1,
        max_length=MOST_BREAKDOWNS,
        description=f"What the costs are broken down by, repeatable: {', '.join(COST_COLUMNS)}, `tag:<key>`, or "
        f"{CATEGORY_GROUPS}; at most {MOST_BREAKDOWNS}.",
        json_schema_extra={"items": column_or_tag(COST_COLUMNS)},
    )
    series: str | None = Field(
        default=None,
        description="Which of `by` is broken down over time. Default: the first.",
        json_schema_extra=column_or_tag(COST_COLUMNS),
    )
    top: int = Field(default=7, ge=1, le=50, description="How many values each breakdown names.")
    time_bucket: Literal["day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks begin on Monday."
    )
    include: list[str] = Field(
        default=[],
        description=f"What comes with the sums, repeatable or separated by commas: {', '.join(PARTS)}.",
        examples=[["issues,days"]],
        json_schema_extra={"items": {"type": "string", "pattern": f"^({_PART})(,({_PART}))*$"}},
    )

    @field_validator("by")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        check_columns(value, COST_COLUMNS)
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
        """The series is one of the breakdowns."""
        errors = super().cross_checks(raw, now)
        series = raw.get("series")
        if series is not None and series not in raw.get("by", ["identity_id"]):
            errors.append(InvalidParameter("series", "should be one of by"))
        return errors


class CostTotal(ResponseModel):
    """The sums of everything that matches."""

    amount: Amount
    usage: Amount
    shared: Amount
    rows: int
    unallocated: Amount = Field(description="What nobody could be charged for.")
    previous: Amount | None = Field(description="The other period's sum; null without one.")
    previous_unallocated: Amount | None


class CostItem(ResponseModel):
    """One value of a breakdown."""

    value: str | None = Field(description="Null for rows without a value.", examples=["sa-123abc"])
    name: str | None = Field(description="Its display name, where the value is an id.", examples=["orders-service"])
    kind: str | None = Field(description="Its type in the inventory.", examples=["service_account"])
    deleted_at: Instant | None
    amount: Amount
    previous: Amount | None
    usage: Amount
    rows: int
    amounts: list[Amount] = Field(description="By time, in the breakdown of the series; else empty.")


class OtherValues(ResponseModel):
    """All values that are not named, together."""

    count: int
    amount: Amount
    previous: Amount | None
    amounts: list[Amount]


class CostMover(ResponseModel):
    """A value whose cost changed much."""

    value: str | None
    name: str | None
    amount: Amount
    previous: Amount


class CostBreakdown(ResponseModel):
    """The costs by the values of one column or tag. Items and `other` sum to the total."""

    by: str = Field(examples=["identity_id"])
    items: list[CostItem] = Field(description="The values with the largest amounts, the largest first.")
    other: OtherValues | None
    movers: list[CostMover] = Field(description="The values that changed most; empty without another period.")


class CostIssue(ResponseModel):
    """What was not allocated as its policy intends, for one reason."""

    reason: str = Field(examples=["NO_OWNER_LOCATED"])
    unallocated: bool = Field(description="True: charged to nobody. False: split by the next method.")
    amount: Amount
    rows: int
    resources: int = Field(description="How many resources it is about.")


class CostDay(ResponseModel):
    """One UTC day of the whole tenant, whatever the filters."""

    date: date
    state: ReconciledState
    billed: Amount
    charged: Amount
    difference: Amount
    topics: bool = Field(description="Whether its topics are attributed.")
    error: str | None


class CostForecast(ResponseModel):
    """What the month of the last calculated day will have cost, of what matches the filters."""

    until: date
    actual_to: date
    actual: Amount
    expected: Amount
    low: Amount
    high: Amount
    method: str = Field(description="How it was found, in words.")


class TopicCostItem(ResponseModel):
    """One topic."""

    cluster_resource_id: str = Field(examples=["lkc-abc123"])
    cluster_name: str | None = Field(examples=["prod"])
    topic_name: str = Field(examples=["orders"])
    amount: Amount
    previous: Amount | None


class OtherTopics(ResponseModel):
    """All topics that are not named, together."""

    count: int
    amount: Amount
    previous: Amount | None


class CostTopics(ResponseModel):
    """The topics with the largest cost. Topics know no identities: filters by these, and by tags, are ignored."""

    total: Amount
    items: list[TopicCostItem]
    other: OtherTopics | None
    ignored_filters: list[str] = Field(examples=[["identity_id"]])


class CostsAnswer(ResponseModel):
    """The costs of a period, and of the period that it is compared with."""

    start_date: date
    end_date: date
    timezone: str = Field(examples=["UTC"])
    currency: str = Field(examples=["USD"])
    conversion: ConversionItem | None = CONVERSION
    revision: str = Field(
        description="The version of the data: the same revision, the same figures. "
        "Within a scope, that of these figures."
    )
    compared_with: ComparedWith | None
    days_with_costs: int = Field(description="UTC days of the period that have costs, whatever the filters.")
    times: list[date] = Field(description="The units of time that the period touches, ascending.")
    amounts: list[Amount] = Field(description="The amount of each unit of time.")
    previous_amounts: list[Amount | None] = Field(
        description="The other period's amounts, its first day beside the first day; null where it has no costs at "
        "all. Empty without another period."
    )
    total: CostTotal
    breakdowns: list[CostBreakdown]
    issues: list[CostIssue] | None = Field(description="Null unless included, as the following.")
    days: list[CostDay] | None
    forecast: CostForecast | None = Field(description="Null also where there are too few days to tell.")
    topics: CostTopics | None = Field(description="Null also where topics are not attributed.")
