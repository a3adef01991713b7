"""Policies as anyone can read them."""

from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import query
from chargeback.api.responses import page_response
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.policies import PoliciesQuery, PolicyItem
from chargeback.model.days import render_instant
from chargeback.service.explanation import policy_json
from chargeback.service.policies import ListedPolicy, applies_to, list_policies
from chargeback.store.control.policies import used_policies

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get(
    "/policies", response_model=PageOf[PolicyItem], **documented(needs=Right.READ, query=PoliciesQuery, etag=True)
)
async def show_policies(control: ControlDep, params: Annotated[PoliciesQuery, query(PoliciesQuery)]) -> Response:
    """List how each product type is split: the policies in force, then those by which earlier days were calculated."""
    rules = control.tenant.rules

    def _read(connection: Connection) -> Response:
        found = [
            each
            for each in list_policies(rules, used_policies(connection))
            if params.hash in {None, each.policy.hash}
            and (params.product_type is None or applies_to(rules, each, params.product_type))
        ]
        page = params.paging
        items = [_item(each) for each in found[page.offset : page.offset + page.limit]]
        return page_response(items, len(found), page=params.page, page_size=params.page_size)

    return await control.of_anything(_read)


def _item(listed: ListedPolicy) -> dict[str, Any]:
    return {
        "product_type": listed.product_type,
        "hash": listed.policy.hash,
        "source": listed.source,
        "portions": policy_json(listed.policy),
        "first_used_at": None if listed.first_used_at is None else render_instant(listed.first_used_at),
    }
