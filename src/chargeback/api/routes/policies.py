"""Policies as anyone can read them."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import CommonParameters, Text
from chargeback.api.responses import page_response
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control
from chargeback.model.days import DayRange, render_instant
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.reports.changes import policies_used
from chargeback.reports.policies import ListedPolicy, PolicyPortion, applies_to, list_policies, policy_json
from chargeback.store.control.policies import UsedPolicy, used_policies
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection


class PoliciesQuery(CommonParameters):
    """Parameters of the list of policies."""

    hash: Text | None = Field(
        default=None, description="Only the policy with this hash, `policy` in the metadata of a chargeback row."
    )
    product_type: Text | None = Field(
        default=None, description="Only policies of this product type, also by a pattern or an alias."
    )


class PolicyItem(ResponseModel):
    """The policy of a product type."""

    product_type: str = Field(description="The name, or a pattern.", examples=["KAFKA_NUM_CKUS"])
    hash: str = Field(description="The same for equal policies.")
    source: Literal["shipped", "configured", "recorded", "unknown"] = Field(
        description="`shipped`: the ecosystem's own; `configured`: changed by the tenant's configuration; `recorded`: "
        "was used and is not in force any more; `unknown`: no policy is known for the product type, so its cost is "
        "charged to nobody."
    )
    portions: list[PolicyPortion]
    first_used_at: Instant | None = Field(description="When a day was first calculated by it; null if none was.")


router = Routes(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get("/policies", response_model=PageOf[PolicyItem], needs=Right.READ)
def show_policies(request: Control, params: Annotated[PoliciesQuery, Query()]) -> Response:
    """List how each product type is split: the policies in force, then those by which earlier days were calculated.

    Within a scope, the uses are those of visible rows."""
    rules = request.tenant.rules
    seen = None
    if request.context.scope is not None:
        with request.reader() as reader:
            seen = _seen(reader)
    found = [
        each
        for each in list_policies(rules, _used(request.connection, seen))
        if params.hash in {None, each.policy.hash}
        and (params.product_type is None or applies_to(rules, each, params.product_type))
    ]
    page = params.paging
    items = [_item(each) for each in found[page.offset : page.offset + page.limit]]
    return page_response(items, len(found), page=params.page, page_size=params.page_size)


def _seen(reader: TenantReader) -> dict[str, list[str]]:
    """Return the hashes of the policies of visible rows, by product type."""
    days = reader.dates(CHARGEBACKS)
    return policies_used(reader, Selection.of_days(DayRange.spanning(days)).window) if days else {}


def _used(connection: Connection, seen: Mapping[str, Collection[str]] | None) -> list[UsedPolicy]:
    """Return the policies that were used, for rows that are ``seen``; None: for all rows."""
    found = used_policies(connection)
    return found if seen is None else [each for each in found if each.hash in seen.get(each.product_type, ())]


def _item(listed: ListedPolicy) -> dict[str, Any]:
    return {
        "product_type": listed.product_type,
        "hash": listed.policy.hash,
        "source": listed.source,
        "portions": policy_json(listed.policy),
        "first_used_at": None if listed.first_used_at is None else render_instant(listed.first_used_at),
    }
