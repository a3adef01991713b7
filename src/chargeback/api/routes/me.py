"""The caller of a request, and the caller's rights."""

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import CallerKind
from chargeback.api.authorisation import Access
from chargeback.api.dependencies import CallerDep, ServicesDep
from chargeback.api.parameters import CommonParameters
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.reports.answers import ResponseModel

RightName = Literal["read", "export", "tag", "run", "close", "admin"]


class TenantRights(ResponseModel):
    """What the caller may do with one tenant."""

    tenant_name: str = Field(examples=["acme"])
    rights: list[RightName] = Field(description="`admin` includes all others.", examples=[["read", "export"]])
    scope: dict[str, list[str]] | None = Field(
        description="The rows that the caller may see: those that have one of the values of each condition. Conditions "
        "are filters of costs. Null means all rows.",
        examples=[{"category:cost_center": ["payments"]}],
    )
    role: str = Field(
        description="The role (its position in `access.roles`) or the token that grants the rights; empty if callers "
        "are not identified.",
        examples=["roles[2]"],
    )


class Me(ResponseModel):
    """The caller."""

    user: str = Field(description="The caller's name in the audit log.", examples=["ann@example.com"])
    kind: CallerKind = Field(
        description="The source of the name: the proxy, the issuer of a JWT, or a token of the service; `anonymous` if "
        "callers are not identified."
    )
    groups: list[str] = Field(examples=[["team-payments"]])
    tenants: list[TenantRights] = Field(description="The tenants that the caller may read, by name.")


router = Routes(tags=["Access"])


@router.get("/me", response_model=Me, needs=Access.AUTHENTICATED, only=(400, 500, 504))
async def who_am_i(services: ServicesDep, caller: CallerDep, _params: Annotated[CommonParameters, Query()]) -> Response:
    """Return who the caller is, and what the caller may do with which tenant."""
    found = [(name, access) for name in sorted(services.tenants) if (access := caller.access(name)) is not None]
    tenants = [
        TenantRights(
            tenant_name=name,
            rights=[each.value for each in sorted(access.rights)],
            scope=None if access.scope is None else access.scope.as_json(),
            role=access.role,
        )
        for name, access in found
    ]
    answer = Me(user=caller.name, kind=caller.kind, groups=list(caller.groups), tenants=tenants)
    return json_response(answer, headers={"Cache-Control": "no-store"})
