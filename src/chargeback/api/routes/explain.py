"""Why an identity, or a topic, has an amount of a billing line."""

from datetime import date
from typing import Annotated, Final, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.allocation.policies import policies_hash
from chargeback.api.parameters import Day, FactsParameters, Text
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import json_response
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, AttributionMethod, TopicFacts
from chargeback.api.routing import Routes
from chargeback.api.schemas.chargebacks import CostType
from chargeback.api.tenant_requests import Facts
from chargeback.recompute.explain import ExplainKey, PortionNeeded, explain
from chargeback.recompute.explain_topic import TopicKey, explain_topic_row
from chargeback.recompute.stored_day import LineNotFound
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.reports.explain.charges import explanation_json, names_of_explanation
from chargeback.reports.explain.topics import cluster_names, topic_explanation_json
from chargeback.reports.explain.visible import VisibleShares, as_seen, visible_topics
from chargeback.reports.policies import PolicyPortion
from chargeback.store.control.day_revisions import CAUSES
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS

#: More portions than any policy has.
MOST_PORTIONS = 1000


class ContendersQuery(FactsParameters):
    """Parameters of an explanation; the page is that of the contenders. The range of dates has no effect."""

    page: int = Field(default=1, ge=1, description="Page of the contenders, from 1.")
    page_size: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="Contenders per page, the largest first; the one that was asked for is always listed.",
    )


class ExplainQuery(ContendersQuery):
    """Parameters of an explanation: the key of a chargeback row, and the page of the contenders."""

    date: Day = Field(description="The UTC day of the line.", examples=["2026-01-31"])
    line_id: Text = Field(description="The billing line: `line_id` in the metadata of a chargeback row or a line.")
    identity_id: Text = Field(description="The identity; also one that gets nothing of the line, or `UNALLOCATED`.")
    portion: int | None = Field(
        default=None,
        ge=1,
        le=MOST_PORTIONS,
        description="The portion of the line, `portion` in the metadata of a chargeback row. Default: the one of which "
        "the identity has a row, or the first. Needed if the identity has rows of several portions.",
    )


class ExplainedRow(ResponseModel):
    """The stored chargeback row."""

    timestamp: Instant
    line_id: str
    portion: int
    identity_id: str = Field(examples=["sa-123abc"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    cost_type: CostType
    allocation_method: str = Field(examples=["usage_ratio"])
    allocation_detail: str = Field(examples=["USAGE_RATIO_ALLOCATION"])
    chain_position: int
    policy_hash: str
    amount: Exact
    portion_share: Exact
    identity_usage: Exact | None
    total_usage: Exact | None


class ExplainedLine(ResponseModel):
    """The billing line."""

    timestamp: Instant
    line_id: str
    resource_id: str = Field(examples=["lkc-abc123"])
    resource_name: str | None
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    quantity: Exact | None
    unit_price: Exact | None
    total_cost: Exact
    currency: str = Field(examples=["USD"])
    granularity: str
    unit: str | None
    description: str | None


class ExplainedPolicy(ResponseModel):
    """The policy by which the line was split."""

    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    matched: str | None = Field(description="Its name or pattern; null if it is in no catalogue any more.")
    hash: str
    source: Literal["shipped", "configured", "recorded"] = Field(
        description="`shipped`: the ecosystem's own; `configured`: changed by the tenant's configuration; `recorded`: "
        "in force when the row was calculated, and not any more."
    )
    portions: list[PolicyPortion]


class ExplainedPortion(ResponseModel):
    """The portion that is explained: its share of the line, and its exact cost."""

    number: int
    share: Exact
    amount: Exact


class TriedMethod(ResponseModel):
    """A method of the portion's chain."""

    position: int
    method: str = Field(examples=["usage(bytes_in + bytes_out)"])
    applied: bool
    why_not: str | None = Field(description="Why it did not apply, and so what it would have needed.")
    candidates: int | None = Field(description="How many identities it finds; null within a scope.")


class Contender(ResponseModel):
    """An identity that shares the portion; or all those together that the caller may not see."""

    identity_id: str | None = Field(description="Null for others together.")
    name: str | None
    value: Exact | None = Field(description="What was measured or charged; null if all parts are equal.")
    ratio: str = Field(
        description="Its part of the total, rounded to six places.", pattern=r"^\d+\.\d{2,6}$", examples=["0.27"]
    )


class ExplainedEvidence(ResponseModel):
    """What decided how the portion was split."""

    measure: str | None = Field(examples=["bytes_in + bytes_out"])
    total: Exact | None = Field(description="The sum of all values; null if all parts are equal.")
    contenders: list[Contender] = Field(
        description="A page of them, the largest first, equal ones by id; and the identity that was asked for."
    )
    contenders_total: int = Field(description="How many there are on all pages; others together are one.")
    members: int | None = Field(description="How many identities were active on the resource; null within a scope.")
    metrics_available: bool


class Arithmetic(ResponseModel):
    """How the amount follows from the portion, in units of 10⁻¹² of the absolute amount."""

    exact: str = Field(description="The exact share as a fraction.", pattern=r"^\d+/\d+$", examples=["10/3"])
    units_floor: str = Field(description="The share rounded down, as a text.", pattern=r"^\d+$")
    spare_units: int | None = Field(
        description="How many units remain when all shares are rounded down. They go, one each, to the largest "
        "remainders, equal ones by id. Null within a scope."
    )
    remainder_rank: int | None = Field(
        description="The place of the identity's remainder, from 1; null within a scope."
    )
    extra_unit: bool = Field(description="Whether the identity got one of the spare units.")
    amount: Exact


class VisiblePart(ResponseModel):
    """What the caller's scope shows of a row that a cost category splits."""

    amount: Exact = Field(description="The visible part, as lists and sums have it.")
    others: Exact = Field(description="The rest of the row.")


#: Says of an explanation how much of its row the caller sees.
VISIBLE: Final = Field(
    description="What the caller's scope shows of the row; null if that is all of it, or there is no row. Then "
    "`row` and `revisions` have the visible part, and the calculation has the whole amount."
)


class Siblings(ResponseModel):
    """All stored rows of the line."""

    rows: int | None = Field(description="How many; null within a scope.")
    sum: Exact
    equals_line: bool | None = Field(description="Whether they sum to the line; null if the bill is lost.")


class RevisionAmount(ResponseModel):
    """The amount in one revision of the day."""

    revision: int
    calculated_at: Instant
    cause: str = Field(examples=["bill_changed"], json_schema_extra={"enum": list(CAUSES)})
    line_id: str | None = Field(
        description="The line in that revision: one whose content changed has another id. Null if there is none, or if "
        "several may be the one."
    )
    amount: Exact | None = Field(
        description="Zero without a line or a row; null if it is not known: it is no longer kept, or several lines may "
        "be the one."
    )


class ExplainLinks(ResponseModel):
    """Where to look further; relative to the address of the answer."""

    line: str = Field(description="The billing line.", examples=["../billing?line_id=0f3a"])
    rows: str = Field(description="All rows of the line.")
    policy: str | None = Field(description="The policy; null if it is not recorded, and for topics.")
    bill: str = Field(description="The bill of the day.")
    revisions: str = Field(description="The revisions of the day.", examples=["../days/2026-01-31/revisions"])


class ExplainAnswer(ResponseModel):
    """Why an identity has an amount of a billing line: the line is calculated again from the kept evidence."""

    sentence: str = Field(description="The explanation in plain English, with rounded amounts.")
    date: date
    line_id: str
    identity_id: str
    identity_name: str | None
    row: ExplainedRow | None = Field(description="Null if the identity gets nothing.")
    why_nothing: str | None = Field(description="Why the identity gets nothing; null if it gets something.")
    line: ExplainedLine | None = Field(description="Null if the bill is lost.")
    policy: ExplainedPolicy | None = Field(description="Null if it is not recorded.")
    portion: ExplainedPortion | None = Field(description="Null if the evidence is missing.")
    methods: list[TriedMethod] = Field(description="All methods of the portion, in order.")
    evidence: ExplainedEvidence | None = Field(description="Null if it is missing, or the portion costs nothing.")
    evidence_missing: str | None = Field(description="Why the evidence is missing; null if it is there.")
    arithmetic: Arithmetic | None = Field(description="Null if the identity does not share the portion.")
    visible: VisiblePart | None = VISIBLE
    siblings: Siblings
    revision: int | None = Field(description="The revision of the day that was in force.")
    revisions: list[RevisionAmount]
    recomputed: Literal["same", "different"] | None = Field(
        description="Whether the calculation gives what is stored; null if the evidence is missing."
    )
    links: ExplainLinks


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
    amount: Exact
    topic_usage: Exact | None
    total_usage: Exact | None


class ContendingTopic(ResponseModel):
    """A topic that shares the line; or all those together that the caller may not see."""

    topic_name: str | None = Field(description="Null for others together.")
    value: Exact | None = Field(description="What was measured; null if all parts are equal.")
    ratio: str = Field(
        description="Its part of the total, rounded to six places.", pattern=r"^\d+\.\d{2,6}$", examples=["0.27"]
    )


class TopicEvidence(ResponseModel):
    """What decided how the line was attributed."""

    measure: str | None = Field(examples=["topic_bytes_in"])
    total: Exact | None = Field(description="The sum of all values; null if all parts are equal.")
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


router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])


@router.get(
    "/explain",
    response_model=ExplainAnswer,
    needs=Right.READ,
    problems={404: "There is no such tenant, day, line or portion, or the day is not calculated."},
    also=lambda request, _: policies_hash(request.tenant.rules.catalogue.policies),
)
def explain_amount(request: Facts, params: Annotated[ExplainQuery, Query()]) -> Response:
    """Explain what an identity is charged for a billing line, or why it is charged nothing, step by step.

    The line is calculated again from the kept evidence, and compared with the stored row. Without the evidence,
    `evidence` is null, and `evidence_missing` says why. Within a scope, the answer has the visible rows of the line;
    all others are one contender without an id, and numbers that count or rank them are null. Of a row that a cost
    category of the scope splits, `row` and `revisions` have the visible part, and `visible` what it is and what others
    have.
    """
    tenant = request.tenant
    key = ExplainKey(params.date, params.line_id, params.identity_id, params.portion, params.as_of)
    reader = request.reader
    try:
        shares = None if reader.scope is None else VisibleShares(reader, key)
        found = explain(request.whole_store, tenant.rules, key)
        found, part = (found, None) if shares is None else as_seen(reader, CHARGEBACKS, found, shares.of(found))
    except LineNotFound as error:
        raise NotFound(str(error)) from None
    except PortionNeeded as error:
        raise InvalidRequest([InvalidParameter("portion", str(error))]) from None
    with tenant.store.control.read() as connection:
        names = names_of_explanation(connection, found, params.paging)
    return json_response(explanation_json(found, names, tenant.currency, params.paging, part))


topic_router = Routes(prefix="/tenants/{tenant_name}/topic-attributions", tags=["Topic attributions"])


@topic_router.get(
    "/explain",
    response_model=TopicExplainAnswer,
    needs=Right.READ,
    problems={**TOPIC_PROBLEMS, 404: "There is no such tenant, day or line, or the line has no topics."},
    also=lambda request, _: request.tenant.rules.topics and request.tenant.rules.topics.hash,
)
def explain_topic(request: TopicFacts, params: Annotated[TopicExplainQuery, Query()]) -> Response:
    """Explain what a topic has of a billing line, or why it has nothing, step by step.

    The line is attributed again from the kept measurements, and compared with the stored row. Without them, or after a
    change of settings that matters, `evidence` is null, and `evidence_missing` says why.
    """
    tenant = request.tenant
    key = TopicKey(params.date, params.line_id, params.topic_name, params.as_of)
    plan = tenant.rules.topics
    reader = request.reader
    if plan is None:  # the plugin failed when the service started; see the log
        raise NotFound(f"The settings of topic attribution of tenant {tenant.tenant_name} could not be read.")
    try:
        visible = None if reader.scope is None else visible_topics(reader, key)
        found = explain_topic_row(request.whole_store, plan, key)
        found, part = (found, None) if visible is None else as_seen(reader, TOPIC_ATTRIBUTIONS, found, visible)
    except LineNotFound as error:
        raise NotFound(str(error)) from None
    with tenant.store.control.read() as connection:
        names = cluster_names(connection, found)
    return json_response(topic_explanation_json(found, names, tenant.currency, params.paging, part))
