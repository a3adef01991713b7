"""Explanations of topic rows for the front ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final, Literal, Self

from pydantic import Field
from sqlalchemy import Connection

from chargeback.allocation.explain import OTHERS, PortionExplanation, UsageSplit
from chargeback.allocation.methods import EVEN_ACTIVE, UNALLOCATED, AllocationMethod, MethodKind
from chargeback.model.money import render
from chargeback.model.topics import UNATTRIBUTED, AttributionMethod
from chargeback.recompute.explain_topic import TopicExplanation
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.reports.explain.charges import (
    USUAL_CONTENDERS,
    VISIBLE,
    Arithmetic,
    ExplainedLine,
    Ratio,
    RevisionAmount,
    Siblings,
    TriedMethod,
    arithmetic_of,
    listed_participants,
    part_sentence,
    stored_fields,
)
from chargeback.reports.explain.links import ExplainLinks, links
from chargeback.reports.explain.sentence import fallback
from chargeback.reports.explain.visible import VisiblePart
from chargeback.reports.wording import calendar_day, measured, money_text, rounded
from chargeback.store.control.inventory_lists import RESOURCES, names_of
from chargeback.store.queries.paging import Page

_METHODS: Final = {EVEN_ACTIVE: "even(topics)", UNALLOCATED: "unattributed"}
#: What happened to the bytes of a topic, by the measures.
_VERBS: Final[Mapping[tuple[str, ...], str]] = {
    ("topic_bytes_in",): "received",
    ("topic_bytes_out",): "sent",
    ("topic_retained_bytes",): "retained",
}


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
    amount: Exact
    topic_usage: Exact | None
    total_usage: Exact | None


class ContendingTopic(ResponseModel):
    """A topic that shares the line; or the sum of those that the caller may not see."""

    topic_name: str | None = Field(description="The topic; null for the sum of others.")
    value: Exact | None = Field(description="The measured value; null if all parts are equal.")
    ratio: Ratio


class TopicEvidence(ResponseModel):
    """The evidence by which the line was attributed."""

    measure: str | None = Field(examples=["topic_bytes_in"])
    total: Exact | None = Field(description="The sum of all values; null if all parts are equal.")
    contenders: list[ContendingTopic] = Field(
        description="A page of the contenders, the largest first, equal ones by name; and the requested topic."
    )
    contenders_total: int = Field(description="The number of contenders on all pages; the sum of others counts as one.")
    topics: int | None = Field(description="The number of known topics of the cluster on the day; null within a scope.")

    @classmethod
    def of(cls, found: UsageSplit, requested: str, page: Page) -> Self:
        """Return the evidence of a line, with a page of the topics."""
        contenders = [
            ContendingTopic(
                topic_name=None if each.identity_id == OTHERS else each.identity_id,
                value=each.value,
                ratio=render(rounded(each.ratio, 6)),
            )
            for each in listed_participants(found, requested, page)
        ]
        return cls(
            measure=found.measure,
            total=found.total,
            contenders=contenders,
            contenders_total=len(found.participants),
            topics=found.members,
        )


class TopicExplainAnswer(ResponseModel):
    """Why a topic has an amount of a billing line: the line is attributed again from the stored measurements."""

    sentence: str = Field(description="The explanation in plain English, with rounded amounts.")
    date: date
    line_id: str
    topic_name: str
    row: ExplainedTopicRow | None = Field(description="Null if the topic has nothing.")
    why_nothing: str | None = Field(description="Why the topic has nothing; null if it has something.")
    line: ExplainedLine | None = Field(description="Null if the bill is lost.")
    attribution_method: AttributionMethod | None = Field(description="How the line was attributed; null if unknown.")
    methods: list[TriedMethod] = Field(description="All methods of attribution, in order.")
    evidence: TopicEvidence | None = Field(description="Null if it is missing, or the line is attributed to no topic.")
    evidence_missing: str | None = Field(description="Why the evidence is missing; null if it is there.")
    arithmetic: Arithmetic | None = Field(description="Null if the topic does not share the line.")
    visible: VisiblePart | None = VISIBLE
    siblings: Siblings
    revision: int | None = Field(description="The revision of the day's topic rows that was in force.")
    revisions: list[RevisionAmount]
    recomputed: Literal["same", "different"] | None = Field(
        description="Whether the calculation agrees with the stored row; null if the evidence is missing."
    )
    links: ExplainLinks


def cluster_names(connection: Connection, found: TopicExplanation) -> dict[str, str]:
    """Return the display name of the cluster of an explanation by its id, if it is known."""
    clusters = [each for each in (_cluster(found),) if each is not None]
    of_bill = {} if found.line is None else {found.line["resource_id"]: found.line["resource_name"]}
    named = names_of(connection, RESOURCES, clusters)
    return {id_: name for id_ in clusters if (name := (named[id_].name if id_ in named else None) or of_bill.get(id_))}


def explained_topic(
    found: TopicExplanation,
    names: Mapping[str, str],
    currency: str,
    page: Page = USUAL_CONTENDERS,
    part: VisiblePart | None = None,
) -> TopicExplainAnswer:
    """Return an explanation with a page of its topics. ``names`` are those of clusters, ``part`` is the visible part of
    the row, if not all of it is visible."""
    row, portion, key = found.row, found.portion, found.key
    usage_split = None if portion is None else portion.usage_split
    return TopicExplainAnswer(
        sentence=f"{topic_sentence(found, names, currency)}{part_sentence(found, part, currency)}",
        date=key.day,
        line_id=key.line_id,
        topic_name=key.topic_name,
        row=None if row is None else ExplainedTopicRow.like(row),
        why_nothing=None if portion is None else portion.why_nothing,
        line=None if found.line is None else ExplainedLine.of(found.line, names),
        attribution_method=found.method,
        methods=TriedMethod.all_of(portion, _method),
        evidence=None if usage_split is None else TopicEvidence.of(usage_split, key.topic_name, page),
        evidence_missing=found.missing,
        arithmetic=arithmetic_of(portion),
        **stored_fields(found, part),
        links=links(key.day, key.line_id, key.as_of, rows="topic-attributions"),
    )


def _method(method: AllocationMethod) -> str:
    return _METHODS.get(method, str(method))


def _cluster(found: TopicExplanation) -> str | None:
    if found.billed is None:
        return None
    cluster: str = found.billed["resource_id" if found.line is not None else "cluster_resource_id"]
    return cluster


def topic_sentence(found: TopicExplanation, names: Mapping[str, str], currency: str) -> str:
    """Return an explanation in words, for people who do not know the service."""
    cluster, day, portion = _cluster(found) or "", calendar_day(found.key.day), found.portion
    topic = "No topic" if found.key.topic_name == UNATTRIBUTED else f"Topic {found.key.topic_name}"
    where = names.get(cluster, cluster)
    if portion is None or found.line is None:
        has = "nothing" if found.row is None else money_text(found.row["amount"], currency)
        return (
            f"Topic {found.key.topic_name} has {has} of {_line_text(found, where)} on {day}. "
            f"How is not known: {found.missing}."
        )
    applied, usage_split, mine = portion.applied, portion.usage_split, None
    if usage_split is not None:
        mine = usage_split.participant(found.key.topic_name)
    if applied is None or usage_split is None or mine is None:
        return f"{topic} has nothing of {where} on {day}: {portion.why_nothing}."
    if applied.method.kind is MethodKind.UNALLOCATED:
        reasons = "; ".join(dict.fromkeys(each.why_not for each in portion.methods if each.why_not))
        did = f"No topic of {where} could be found on {day}: {reasons}"
    elif mine.value is not None and usage_split.total is not None:
        verb = _VERBS.get(applied.method.arguments, "used")
        did = f"{topic} {measured(applied.method, mine.value, usage_split.total, verb)} on {where} on {day}"
    elif len(usage_split.participants) == 1:
        did = f"{topic} was the only topic of {where} on {day}"
    else:
        count = "several" if usage_split.participant(OTHERS) else len(usage_split.participants)
        did = f"{topic} was one of {count} topics of {where} on {day}"
    return f"{did}. {_split(found, portion, applied.method, currency)}"


def _split(found: TopicExplanation, portion: PortionExplanation, method: AllocationMethod, currency: str) -> str:
    """Return the sentence about the calculation of the amount."""
    line = f"The {(found.line or {})['product_type']} line of {money_text(portion.amount, currency)}"
    amount = None if portion.arithmetic is None else portion.arithmetic.amount
    part = f"{money_text(amount, currency) if amount else 'nothing'} for {found.key.topic_name}"
    if method.kind is MethodKind.UNALLOCATED:
        return f"{line} is attributed to no topic: {part}."
    how = f"follows {method.measured}" if method.kind is MethodKind.USAGE else "is shared evenly"
    return f"{line} {how}{fallback(portion)}: {part}."


def _line_text(found: TopicExplanation, cluster: str) -> str:
    if found.billed is None:
        return f"line {found.key.line_id}"
    return f"the {found.billed['product_type']} line of {cluster}"
