"""The bill beside what was charged for it."""

from datetime import date
from typing import Literal

from pydantic import Field

from chargeback.api.schemas.common import Decimal, Instant, ResponseModel
from chargeback.api.schemas.costs import DayState
from chargeback.api.schemas.datasets import PeriodQuery

ReconciledBy = Literal["day", "month", "product_type", "resource_id"]
PolicyState = Literal["current", "superseded"]


class ReconciliationQuery(PeriodQuery):
    """Parameters of the reconciliation."""

    group_by: ReconciledBy = Field(
        default="day",
        description="What each entry is about: a UTC day (`days`), or a month, product type or resource (`buckets`).",
    )


class ReconciledAmounts(ResponseModel):
    """What was billed beside what was charged for it."""

    state: DayState
    billed: Decimal
    charged: Decimal
    difference: Decimal = Field(description="`charged` minus `billed`, exactly.")
    unallocated: Decimal = Field(description="The part of `charged` that nobody could be charged for.")
    pending: Decimal = Field(
        description="The part of `billed` whose days are not calculated yet, or not from their present bill."
    )
    by_topic: Decimal | None = Field(description="What is attributed to topics; null where topics are not attributed.")
    lines: int = Field(description="Billing lines.")
    rows: int = Field(description="Chargeback rows.")
    revision: int | None = Field(
        description="Number of the day's revision, the highest one of several days; null if none is calculated.",
        examples=[1],
    )
    policies: PolicyState | None = Field(
        description="`superseded` if a day was calculated under other policies than those now configured for what is "
        "on its bill; else `current`. Null if no day is calculated, or an earlier version did it."
    )
    calculated_at: Instant | None = Field(description="Since when the day has that revision; the latest of several.")


class ReconciledDayItem(ReconciledAmounts):
    """One UTC day."""

    date: date
    topics: bool = Field(description="Whether its topics are attributed.")
    error: str | None
    fingerprint: str | None = Field(description="That of the bill from which the day was calculated.")
    gathered_at: Instant | None = Field(description="When its bill was last gathered.")


class ReconciledBucket(ReconciledAmounts):
    """One month, product type or resource. Its state is that of its worst day: `differs`, `pending`, `equal`,
    `none`."""

    value: str = Field(description="The month (`YYYY-MM`), product type or resource.", examples=["KAFKA_NUM_CKUS"])
    name: str | None = Field(description="The display name of a resource.", examples=["prod"])


class ReconciliationAnswer(ResponseModel):
    """The bill of some days beside what was charged for it. All entries sum to `total`."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    group_by: ReconciledBy
    total: ReconciledAmounts
    days: list[ReconciledDayItem] = Field(description="Grouped by day: every day of the period. Else empty.")
    buckets: list[ReconciledBucket] = Field(description="Grouped by anything else: every value. Else empty.")
