"""Why a topic has an amount of a billing line."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.problems import NotFound
from chargeback.api.responses import json_response
from chargeback.api.routes.topic_attributions import TOPIC_PROBLEMS, TopicFacts
from chargeback.api.routing import Routes
from chargeback.api.schemas.explain_topic import TopicExplainAnswer, TopicExplainQuery
from chargeback.recompute.explain_topic import TopicKey, explain_topic_row
from chargeback.recompute.stored_day import LineNotFound
from chargeback.service.topic_explanation import cluster_names, topic_explanation_json
from chargeback.service.visible_explanation import as_seen, visible_topics
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS

router = Routes(prefix="/tenants/{tenant_name}/topic-attributions", tags=["Topic attributions"])


@router.get(
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
