"""Why a topic has an amount of a billing line."""

from datetime import date
from typing import Literal

from pydantic import Field

from chargeback.api.parameters import Day, Text
from chargeback.api.schemas.common import Decimal, Instant, ResponseModel
from chargeback.api.schemas.explain import (
    VISIBLE,
    Arithmetic,
    ContendersQuery,
    ExplainedLine,
    ExplainLinks,
    RevisionAmount,
    Siblings,
    TriedMethod,
    VisiblePart,
)
from chargeback.api.schemas.topic_attributions import AttributionMethod


class TopicExplainQuery(ContendersQuery):
    """Parameters of an explanation: the key of a topic row, and the page of the topics."""

    date: Day = Field(description="The UTC day of the line.", examples=["2026-01-31"])
    line_id: Text = Field(description="The billing line: `line_id` in the metadata of a topic row or a line.")
    topic_name: Text = Field(description="The topic; also one that has nothing of the line, or `__UNATTRIBUTED__`.")


class ExplainedTopicRow(ResponseModel):
    """The stored topic row."""

    timestamp: Instant
    line_id: str
    env_id: str | None
    cluster_resource_id: str = Field(examples=["lkc-abc123"])
    topic_name: str = Field(examples=["orders"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NETWORK_WRITE"])
    attribution_method: AttributionMethod
    amount: Decimal
    topic_usage: Decimal | None
    total_usage: Decimal | None


class ContendingTopic(ResponseModel):
    """A topic that shares the line; or all those together that the caller may not see."""

    topic_name: str | None = Field(description="Null for others together.")
    value: Decimal | None = Field(description="What was measured; null if all parts are equal.")
    ratio: str = Field(
        description="Its part of the total, rounded to six places.", pattern=r"^\d+\.\d{2,6}$", examples=["0.27"]
    )


class TopicEvidence(ResponseModel):
    """What decided how the line was attributed."""

    measure: str | None = Field(examples=["topic_bytes_in"])
    total: Decimal | None = Field(description="The sum of all values; null if all parts are equal.")
    contenders: list[ContendingTopic] = Field(
        description="A page of them, the largest first, equal ones by name; and the topic that was asked for."
    )
    contenders_total: int = Field(description="How many there are on all pages; others together are one.")
    topics: int | None = Field(description="How many topics of the cluster are known on the day; null within a scope.")


class TopicExplainAnswer(ResponseModel):
    """Why a topic has an amount of a billing line: the line is attributed again from the kept measurements."""

    sentence: str = Field(description="The explanation in plain English, with rounded amounts.")
    date: date
    line_id: str
    topic_name: str
    row: ExplainedTopicRow | None = Field(description="Null if the topic has nothing.")
    why_nothing: str | None = Field(description="Why the topic has nothing; null if it has something.")
    line: ExplainedLine | None = Field(description="Null if the bill is lost.")
    attribution_method: AttributionMethod | None = Field(description="How the line was attributed; null if unknown.")
    methods: list[TriedMethod] = Field(description="All methods that were to be tried, in order.")
    evidence: TopicEvidence | None = Field(description="Null if it is missing, or the line is attributed to nothing.")
    evidence_missing: str | None = Field(description="Why the evidence is missing; null if it is there.")
    arithmetic: Arithmetic | None = Field(description="Null if the topic does not share the line.")
    visible: VisiblePart | None = VISIBLE
    siblings: Siblings
    revision: int | None = Field(description="The revision of the day's topic rows that was in force.")
    revisions: list[RevisionAmount]
    recomputed: Literal["same", "different"] | None = Field(
        description="Whether the calculation gives what is stored; null if the evidence is missing."
    )
    links: ExplainLinks
