"""Policies as anyone can read them."""

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import Query
from pydantic import Field
from sqlalchemy import Connection

from chargeback.access.rights import Right
from chargeback.api.parameters import CommonParameters, Day, Text
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control
from chargeback.model.days import DayRange, utc_today
from chargeback.reports.answers import PageOf
from chargeback.reports.changes import policies_used
from chargeback.reports.policies import PolicyItem, PolicyVersionItem, applies_to, list_policies, list_versions
from chargeback.store.control.day_revisions import read_policy_versions
from chargeback.store.control.policies import UsedPolicy, used_policies
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection


class PoliciesQuery(CommonParameters):
    """Parameters of the list of policies."""

    hash: Text | None = Field(
        default=None, description="Only the policy with this hash, `policy` in the metadata of a chargeback row."
    )
    date: Day | None = Field(
        default=None, description="The policies in force on this UTC day; today, if it is left out."
    )
    product_type: Text | None = Field(
        default=None, description="Only policies of this product type, also by a pattern or an alias."
    )


router = Routes(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get("/policies", needs=Right.READ)
def show_policies(request: Control, params: Annotated[PoliciesQuery, Query()]) -> PageOf[PolicyItem]:
    """List how each product type is split: the policies in force on a day, then those by which other days were
    calculated.

    Within a scope, the uses are those of visible rows."""
    rules = request.tenant.rules
    seen = None
    if request.context.scope is not None:
        with request.reader() as reader:
            seen = _seen(reader)
    found = [
        each
        for each in list_policies(rules, _used(request.connection, seen), params.date or utc_today())
        if params.hash in {None, each.hash}
        and (params.product_type is None or applies_to(rules, each, params.product_type))
    ]
    return PageOf[PolicyItem].cut(found, params.paging)


@router.get("/policies/history", needs=Right.READ)
def show_policy_versions(request: Control, params: Annotated[CommonParameters, Query()]) -> PageOf[PolicyVersionItem]:
    """List the versions of the tenant's own policies: from when on each is in force, why, and how many days it has
    calculated. Policies without dates have no versions."""
    is_scoped = request.context.scope is not None
    calculated = None if is_scoped else read_policy_versions(request.connection, None)
    return PageOf[PolicyVersionItem].cut(list_versions(request.tenant.rules.catalogue, calculated), params.paging)


def _seen(reader: TenantReader) -> dict[str, list[str]]:
    """Return the hashes of the policies of visible rows, by product type."""
    days = reader.dates(CHARGEBACKS)
    return policies_used(reader, Selection.of_days(DayRange.spanning(days)).window) if days else {}


def _used(connection: Connection, seen: Mapping[str, Collection[str]] | None) -> list[UsedPolicy]:
    """Return the policies that were used, for rows that are ``seen``; None: for all rows."""
    found = used_policies(connection)
    return found if seen is None else [each for each in found if each.hash in seen.get(each.product_type, ())]
