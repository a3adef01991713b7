"""What one unit of usage cost."""

from datetime import date, datetime
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.common import Amount, Decimal, ResponseModel
from chargeback.api.schemas.costs import USUAL_PERIOD
from chargeback.api.schemas.currency import CONVERSION, ConversionItem, CurrencyParameter
from chargeback.api.schemas.datasets import CATEGORY_GROUPS, MAX_GROUPS, DatasetQuery, check_columns, column_or_tag
from chargeback.service.periods import Period
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.unit_costs import UNIT_MEASURES

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
    usage: Decimal | None = Field(
        description="The measured usage in units, rounded to six places; null if nothing was measured."
    )
    unit_cost: Decimal | None = Field(
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
