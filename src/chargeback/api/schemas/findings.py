"""Findings: what costs something without being used."""

from datetime import date
from typing import Literal

from pydantic import Field

from chargeback.api.parameters import CommonParameters, Day, Note, StrictModel
from chargeback.api.schemas.common import Decimal, Instant, PageOf, ResponseModel, Sum
from chargeback.api.schemas.tags import Author
from chargeback.store.queries.findings import LOOK_BACK_DAYS, MONTH_DAYS

FindingKind = Literal[
    "topic_without_traffic", "topic_never_read", "topic_never_written", "idle_resource", "idle_identity"
]


class FindingsQuery(CommonParameters):
    """Parameters of the findings, which are about the last calculated days; date parameters are ignored."""

    kind: list[FindingKind] = Field(default=[], description="Only findings of this kind, repeatable.")
    min_days: int = Field(
        default=14,
        ge=1,
        le=LOOK_BACK_DAYS,
        description="On how many measured days, at least, the subject was not used since it last was.",
    )
    state: Literal["open", "snoozed", "all"] = Field(
        default="open", description="Only findings that are not snoozed, only those that are, or all."
    )


class NewSnooze(StrictModel):
    """Why a finding is put off, and until when."""

    reason: Note = Field(description="For those who see it later.", examples=["Kept for the audit of 2026"])
    until: Day | None = Field(
        default=None, description="The UTC day on which the finding is open again. Default: never."
    )
    created_by: Author = "api"


class SnoozeItem(ResponseModel):
    """How a finding was put off."""

    reason: str = Field(examples=["Kept for the audit of 2026"])
    until: date | None = Field(description="The UTC day on which the finding is open again; null for never.")
    created_by: str = Field(examples=["alice"])
    created_at: Instant


class FindingSubject(ResponseModel):
    """What a finding is about."""

    type: str = Field(description="Its type in the inventory.", examples=["kafka_topic"])
    id: str = Field(examples=["lkc-abc123:topic:orders"])
    name: str | None = Field(examples=["orders"])
    cluster_id: str | None = Field(description="The cluster of a topic.", examples=["lkc-abc123"])


class FindingEvidence(ResponseModel):
    """What was measured since the subject was last used."""

    measured_days: int = Field(description="UTC days on which it was charged and measured.")
    unmeasured_days: int = Field(description="UTC days on which it was charged, but not measured.")
    last_measured: date
    bytes_in: Decimal | None = Field(description="Bytes written on these days; of topics only.")
    bytes_out: Decimal | None = Field(description="Bytes read on these days; of topics only.")


class FindingItem(ResponseModel):
    """Something that costs and was not used, as far as that was measured."""

    id: str = Field(description="The same for the same kind and subject.", examples=["66863039a46d3b69"])
    kind: FindingKind
    subject: FindingSubject
    owner: str | None = Field(description="Its owner in the inventory, if one is known.", examples=["sa-123abc"])
    tags: dict[str, str] = Field(examples=[{"team": "payments"}])
    since: date = Field(description="The first measured UTC day without use.")
    last_active: date | None = Field(
        description=f"The last UTC day with use; null if there was none in {LOOK_BACK_DAYS} days."
    )
    evidence: FindingEvidence
    monthly_cost: Sum = Field(
        description=f"Its cost on the last {MONTH_DAYS} days that are calculated, in the currency of the bill."
    )
    avoidable: Literal["none", "partial", "full"] = Field(
        description="How much of the monthly cost would not be charged without it: stored bytes would not, a "
        "cluster's capacity would."
    )
    avoidable_cost: Sum
    why: str
    confidence: Literal["high", "medium", "low"] = Field(
        description="High: every day since was measured. Low: less than half were."
    )
    action: str
    snooze: SnoozeItem | None


class FindingList(PageOf[FindingItem]):
    """One page of the findings, those with the largest cost first."""

    currency: str = Field(examples=["USD"])
    snoozed: int = Field(description="How many findings of these kinds are snoozed.")
