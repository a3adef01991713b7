"""Policies as anyone can read them."""

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import Query
from pydantic import Field
from sqlalchemy import Connection

from chargeback.access.rights import Right
from chargeback.api.parameters import CommonParameters, Text
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control
from chargeback.model.days import DayRange
from chargeback.reports.answers import PageOf
from chargeback.reports.changes import policies_used
from chargeback.reports.policies import PolicyItem, applies_to, list_policies
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


router = Routes(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get("/policies", needs=Right.READ)
def show_policies(request: Control, params: Annotated[PoliciesQuery, Query()]) -> PageOf[PolicyItem]:
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
        if params.hash in {None, each.hash}
        and (params.product_type is None or applies_to(rules, each, params.product_type))
    ]
    return PageOf[PolicyItem].cut(found, params.paging)


def _seen(reader: TenantReader) -> dict[str, list[str]]:
    """Return the hashes of the policies of visible rows, by product type."""
    days = reader.dates(CHARGEBACKS)
    return policies_used(reader, Selection.of_days(DayRange.spanning(days)).window) if days else {}


def _used(connection: Connection, seen: Mapping[str, Collection[str]] | None) -> list[UsedPolicy]:
    """Return the policies that were used, for rows that are ``seen``; None: for all rows."""
    found = used_policies(connection)
    return found if seen is None else [each for each in found if each.hash in seen.get(each.product_type, ())]
