"""Why an identity, or a topic, has an amount of a billing line."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import Day, FactsParameters, Text
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFacts
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Facts
from chargeback.recompute.explain import ExplainKey, PortionNeeded, explain
from chargeback.recompute.explain_topic import TopicKey, explain_topic_row
from chargeback.recompute.stored_day import LineNotFound
from chargeback.reports.explain.charges import ExplainAnswer, explained_charge, names_of_explanation
from chargeback.reports.explain.topics import TopicExplainAnswer, cluster_names, explained_topic
from chargeback.reports.explain.visible import VisibleShares, as_seen, visible_topics
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
        description="Contenders per page, the largest first; the requested one is always listed.",
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
        description="The portion of the line, `portion` in the metadata of a chargeback row. Default: the portion in "
        "which the identity has a row, or the first. Needed if the identity has rows of several portions.",
    )


class TopicExplainQuery(ContendersQuery):
    """Parameters of an explanation: the key of a topic row, and the page of the topics."""

    date: Day = Field(description="The UTC day of the line.", examples=["2026-01-31"])
    line_id: Text = Field(description="The billing line: `line_id` in the metadata of a topic row or a line.")
    topic_name: Text = Field(description="The topic; also one that has nothing of the line, or `__UNATTRIBUTED__`.")


router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])


@router.get(
    "/explain",
    needs=Right.READ,
    problems={404: "There is no such tenant, day, line or portion, or the day is not calculated."},
    also=lambda request, _: request.tenant.rules.catalogue.hash,
)
def explain_amount(request: Facts, params: Annotated[ExplainQuery, Query()]) -> ExplainAnswer:
    """Explain what an identity is charged for a billing line, or why it is charged nothing, step by step.

    The line is calculated again from the kept evidence, and compared with the stored row. Without the evidence,
    `evidence` is null, and `evidence_missing` says why. Within a scope, the response has the visible rows of the line;
    all others are one contender without an id, and numbers that count or rank them are null. If a cost category of the
    scope splits the row, `row` and `revisions` have the visible part, and `visible` has this part and that of others.
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
    return explained_charge(found, names, tenant.currency, params.paging, part)


topic_router = Routes(prefix="/tenants/{tenant_name}/topic-attributions", tags=["Topic attributions"])


@topic_router.get(
    "/explain",
    needs=Right.READ,
    problems={**TOPIC_PROBLEMS, 404: "There is no such tenant, day or line, or the line has no topics."},
    also=lambda request, _: request.tenant.rules.topics and request.tenant.rules.topics.hash,
)
def explain_topic(request: TopicFacts, params: Annotated[TopicExplainQuery, Query()]) -> TopicExplainAnswer:
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
    return explained_topic(found, names, tenant.currency, params.paging, part)
