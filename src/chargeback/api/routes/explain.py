"""Why an identity has an amount of a billing line."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.allocation.policies import policies_hash
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.explain import ExplainAnswer, ExplainQuery
from chargeback.api.tenant_requests import Facts
from chargeback.recompute.explain import ExplainKey, PortionNeeded, explain
from chargeback.recompute.stored_day import LineNotFound
from chargeback.service.explanation import explanation_json, names_of_explanation
from chargeback.service.visible_explanation import VisibleShares, as_seen
from chargeback.store.queries.datasets import CHARGEBACKS

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
