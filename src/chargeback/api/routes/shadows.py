"""Shadows: policies that are calculated in addition to those in force, and charge no one."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import CommonParameters
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Facts
from chargeback.reports.answers import PageOf
from chargeback.reports.shadows import ShadowAnswer, ShadowItem, list_shadows, show_shadow

router = Routes(prefix="/tenants/{tenant_name}/shadows", tags=["Policies"])


class ShadowQuery(CommonParameters):
    """Parameters of one shadow."""

    limit: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=20, description="The maximum number of identities in `largest`."
    )


@router.get("", needs=Right.READ, whole=True)
def show_shadows(request: Facts, params: Annotated[CommonParameters, Query()]) -> PageOf[ShadowItem]:
    """List the tenant's shadows, each with the amount that it would move."""
    with request.reading() as connection:
        found = list_shadows(connection, request.shadows(), request.now.date())
    return PageOf[ShadowItem].cut(found, params.paging)


@router.get("/{shadow_name}", needs=Right.READ, whole=True, problems={404: "There is no such tenant or shadow."})
def show_one_shadow(
    request: Facts,
    shadow_name: Annotated[str, Path(description="Its name in the configuration.", examples=["next"])],
    params: Annotated[ShadowQuery, Query()],
) -> ShadowAnswer:
    """Return what a shadow would have charged instead: by day, and the identities whose cost changes most. Lists and
    aggregates of chargebacks show its rows with `scenario`; within a scope if it is `visible`."""
    shadow, tenant = request.shadow(shadow_name), request.tenant
    with request.reading() as connection:
        return show_shadow(
            request.reader,
            connection,
            request.whole_store.facts,
            shadow,
            tenant.currency,
            request.now.date(),
            params.limit,
        )
