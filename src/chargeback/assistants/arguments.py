"""The arguments of tools."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from chargeback.api.parameters import CATEGORY_PARAMETER, NOT_PREFIX, TAG_PARAMETER, Day
from chargeback.api.routes.topic_attributions import TopicColumns
from chargeback.api.selecting import CostColumns
from chargeback.reports.periods import OTHER_PERIOD, PERIOD

MOST_ROWS: Final = 50
#: Columns that filter rows, in addition to tags and cost categories.
_COLUMNS: Final = frozenset({*CostColumns.model_fields, *TopicColumns.model_fields} - {"tags", "categories"})


def _known(filters: dict[str, list[str]]) -> dict[str, list[str]]:
    for key in filters:
        name = key.removeprefix(NOT_PREFIX)
        if name not in _COLUMNS and not re.fullmatch(f"{TAG_PARAMETER}|{CATEGORY_PARAMETER}", name):
            raise ValueError(
                f"{key[:80]!r} should be one of {', '.join(sorted(_COLUMNS))}, tag:<key> or category:<key>"
            )
    return filters


Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Tenant = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"),
    Field(description="Name of a tenant, as `describe` lists them."),
]
Filters = Annotated[
    dict[str, Annotated[list[Text], Field(min_length=1, max_length=100)]],
    AfterValidator(_known),
    Field(
        default_factory=dict,
        max_length=20,
        description="Only rows with one of these values, by column: identity_id, resource_id, environment_id, "
        "cluster_id, product_type, product_category, cost_type, `tag:<key>` or `category:<key>`; `not.<column>` "
        'excludes. Example: {"category:cost_center": ["payments"]}.',
    ),
]
Month = Annotated[str, StringConstraints(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$")]
GroupBy = Annotated[
    list[Text],
    Field(
        max_length=3,
        description="Columns: identity_id, resource_id, environment_id, cluster_id, product_type, product_category, "
        "cost_type, `tag:<key>` or `category:<key>`; of topics: topic_name, cluster_resource_id, env_id, product_type.",
    ),
]


class Arguments(BaseModel):
    """The arguments of a tool; unknown ones are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TenantArguments(Arguments):
    """Tenant arguments."""

    tenant: Tenant


class DescribeArguments(Arguments):
    """Arguments of `describe`."""

    tenant: Tenant | None = Field(default=None, description="Only this tenant, with its categories and products.")


class SearchArguments(TenantArguments):
    """Arguments of `search_entities`."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="Part of an id, a name or a tag's value."
    )
    limit: int = Field(default=10, ge=1, le=MOST_ROWS, description="How many, the best first.")


class PeriodArguments(TenantArguments):
    """Period arguments."""

    period: Annotated[str, StringConstraints(pattern=PERIOD)] = Field(
        default="30d",
        description="`7d` (any number of days), `week`, `month`, `quarter`, `year`: until the last calculated day; "
        "with `last-` before it, such as `last-month`: the whole one before; or a month such as `2026-10`.",
    )
    start_date: Day | None = Field(default=None, description="Instead of `period`: the first day, inclusive.")
    end_date: Day | None = Field(default=None, description="Instead of `period`: the last day, inclusive.")

    @model_validator(mode="after")
    def _both_dates(self) -> Self:
        if (self.start_date is None) != (self.end_date is None):
            raise ValueError("start_date and end_date should be given together")
        if self.start_date is not None and self.end_date is not None and self.start_date > self.end_date:
            raise ValueError("start_date should not be after end_date")
        return self


class CostsArguments(PeriodArguments):
    """Arguments of `query_costs`."""

    group_by: GroupBy = Field(default=["product_category"], min_length=1)
    dataset: Literal["costs", "topics"] = Field(
        default="costs", description="`costs` by who pays and for what, or `topics`: cost attributed to Kafka topics."
    )
    time_bucket: Literal["day", "week", "month"] | None = Field(
        default=None, description="Also over time; then `group_by` has one column, and `dataset` is `costs`."
    )
    filters: Filters
    currency: Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")] | None = Field(
        default=None, description="Another currency of the tenant, by its configured rates."
    )
    limit: int = Field(
        default=10, ge=1, le=MOST_ROWS, description="How many rows, the largest first; the rest is `other`."
    )

    @model_validator(mode="after")
    def _over_time(self) -> Self:
        if self.time_bucket is not None and (len(self.group_by) != 1 or self.dataset != "costs"):
            raise ValueError("with time_bucket, group_by should have one column, and dataset should be costs")
        return self


class CompareArguments(PeriodArguments):
    """Arguments of `compare_periods`."""

    compare: Annotated[str, StringConstraints(pattern=OTHER_PERIOD)] = Field(
        default="previous",
        description="The earlier period: `previous` (as many days before), `year`, or `2026-09-01..2026-09-30`.",
    )
    group_by: GroupBy = Field(default=["identity_id"], min_length=1)
    filters: Filters
    limit: int = Field(default=10, ge=1, le=MOST_ROWS, description="How many changes, the largest first.")


class ExplainArguments(TenantArguments):
    """Arguments of `explain_charge`."""

    date: Day = Field(description="The UTC day of the charge.")
    identity_id: Text = Field(description="Who is charged; also `UNALLOCATED`.")
    resource_id: Text | None = Field(default=None, description="Only charges for this resource.")
    product_type: Text | None = Field(default=None, description="Only charges for this product type.")
    line_id: Text | None = Field(default=None, description="The billing line. Default: that of the largest charge.")


class FindingsArguments(TenantArguments):
    """Arguments of `list_findings`."""

    kind: list[
        Literal["topic_without_traffic", "topic_never_read", "topic_never_written", "idle_resource", "idle_identity"]
    ] = Field(default=[], description="Only findings of these kinds.")
    limit: int = Field(default=10, ge=1, le=MOST_ROWS, description="How many, the most expensive first.")


class AnomaliesArguments(PeriodArguments):
    """Arguments of `anomalies`."""

    limit: int = Field(default=10, ge=1, le=MOST_ROWS, description="How many, the largest impact first.")


class BudgetsArguments(TenantArguments):
    """Arguments of `budget_status`."""

    month: Month | None = Field(
        default=None, description="The UTC month, such as `2026-10`. Default: that of the last calculated day."
    )
    limit: int = Field(default=MOST_ROWS, ge=1, le=MOST_ROWS, description="How many budgets.")


class ForecastArguments(TenantArguments):
    """Arguments of `forecast`."""

    filters: Filters


class StatementArguments(TenantArguments):
    """Arguments of `get_statement`."""

    period: Month = Field(description="The UTC month, such as `2026-10`.")
    by: Text = Field(description="What each statement is about: `category:<key>`, `tag:<key>` or `identity_id`.")
    value: Text | None = Field(
        default=None,
        description="Whose statement: a value of `by`. Without it, all statements of the month are listed.",
    )
