"""Why an identity has an amount of a billing line."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.allocation.policies import policies_hash
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import json_response
from chargeback.api.schemas.explain import ExplainAnswer, ExplainQuery
from chargeback.recompute.explain import ExplainKey, PortionNeeded, explain
from chargeback.recompute.stored_day import LineNotFound
from chargeback.service.explanation import explanation_json, names_of_explanation
from chargeback.service.visible_explanation import VisibleShares, as_seen
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])


@router.get(
    "/explain",
    response_model=ExplainAnswer,
    **documented(
        needs=Right.READ,
        query=ExplainQuery,
        problems={404: "There is no such tenant, day, line or portion, or the day is not calculated."},
        etag=True,
    ),
)
async def explain_amount(facts: FactsDep, params: Annotated[ExplainQuery, query(ExplainQuery)]) -> Response:
    """Explain what an identity is charged for a billing line, or why it is charged nothing, step by step.

    The line is calculated again from the kept evidence, and compared with the stored row. Without the evidence,
    `evidence` is null, and `evidence_missing` says why. Within a scope, the answer has the visible rows of the line;
    all others are one contender without an id, and numbers that count or rank them are null. Of a row that a cost
    category of the scope splits, `row` and `revisions` have the visible part, and `visible` what it is and what others
    have.
    """
    tenant = facts.tenant
    key = ExplainKey(params.date, params.line_id, params.identity_id, params.portion, params.as_of)

    def _make(reader: TenantReader, _version: DataVersion) -> Response:
        try:
            shares = None if reader.scope is None else VisibleShares(reader, key)
            found = explain(facts.whole_store, tenant.rules, key)
            found, part = (found, None) if shares is None else as_seen(reader, CHARGEBACKS, found, shares.of(found))
        except LineNotFound as error:
            raise NotFound(str(error)) from None
        except PortionNeeded as error:
            raise InvalidRequest([InvalidParameter("portion", str(error))]) from None
        with tenant.store.control.read() as connection:
            names = names_of_explanation(connection, found, params.paging)
        return json_response(explanation_json(found, names, tenant.currency, params.paging, part))

    return await facts.versioned_answer(params, _make, also=policies_hash(tenant.rules.catalogue.policies))
