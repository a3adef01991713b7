"""Revisions of days, and what changed between two moments."""

from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from chargeback.api.parameters import When, instant_if_valid
from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.chargebacks import ChargebackFilters
from chargeback.api.schemas.common import Decimal, Instant, ResponseModel, Sum
from chargeback.api.schemas.datasets import GroupedQuery, groups_of
from chargeback.store.control.day_revisions import CAUSES
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset

MOST_CHANGES = 1000

RevisedName = Literal["chargebacks", "topics"]

#: Half of an amount, which may have a digit more.
HalfAmount = Annotated[str, Field(pattern=r"^-?\d+\.\d{2,25}$", examples=["1234.56"])]


class RevisionItem(ResponseModel):
    """One content that a day has had."""

    dataset: RevisedName = Field(description="Whether it is about charges or about the attribution to topics.")
    revision: int = Field(description="1 for the first content.", examples=[1])
    calculated_at: Instant = Field(description="From when on the day has this content.")
    cause: str = Field(description=f"Why: {', '.join(f'`{cause}`' for cause in CAUSES)}.", examples=["bill_changed"])
    run_id: str | None = Field(description="The run that calculated it; null if it is not known.", examples=["17"])
    rows: int
    total: Decimal | None = Field(description="The sum of the amounts; null if it is not known.")
    moved: Decimal | None = Field(
        description="Half of the sum of what changed for each identity (or topic) since the revision before."
    )
    billing_fingerprint: str | None = Field(description="Fingerprint of the bill that it was calculated from.")
    policies_hash: str | None = Field(description="One hash for the policies of all product types of the bill.")
    is_kept: bool = Field(description="Whether its rows can still be shown with `as_of`.")


class DayRevisions(ResponseModel):
    """The revisions of one day, the oldest first."""

    date: date
    items: list[RevisionItem]


class DifferenceQuery(ChargebackFilters, GroupedQuery):
    """Parameters of the comparison of two moments: ``from_as_of``, and ``as_of``, by default the present."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    from_as_of: When = Field(description="The earlier moment.", examples=["2026-01-31T12:00:00Z"])
    limit: int = Field(default=100, ge=1, le=MOST_CHANGES, description="How many changes, the largest first.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that the moments are in order."""
        problems = super().cross_checks(raw, now)
        first, second = instant_if_valid(raw.get("from_as_of")), instant_if_valid(raw.get("as_of"))
        if first is not None and second is not None and first > second:
            problems.append(InvalidParameter("from_as_of", "should not be after as_of"))
        return problems


class RestatedItem(ResponseModel):
    """What one combination of values was charged before and after."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])
    before: Sum
    after: Sum
    delta: Sum
    causes: list[str] = Field(description="Why its days changed.", examples=[["bill_changed"]])


class RestatedRest(ResponseModel):
    """The changes that are not listed, together."""

    count: int
    before: Sum
    after: Sum
    delta: Sum


class Difference(ResponseModel):
    """What changed between two moments, by the size of the change."""

    currency: str = Field(examples=["USD"])
    total_before: Sum
    total_after: Sum
    delta: Sum
    moved: HalfAmount = Field(description="Half of the sum of all changes, each without its sign.")
    items: list[RestatedItem]
    other: RestatedRest | None = Field(description="The changes beyond `limit`, together.")
