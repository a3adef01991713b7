"""Who sends a request."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from chargeback.api.authorisation import Openness
from chargeback.api.dependencies import CallerDep, ServicesDep
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.me import Me
from chargeback.api.schemas.tenants import TenantsQuery

router = Routes(tags=["Access"])


@router.get("/me", response_model=Me, needs=Openness.KNOWN, only=(400, 500, 504))
async def who_am_i(services: ServicesDep, caller: CallerDep, _params: Annotated[TenantsQuery, Query()]) -> Response:
    """Return who the caller is, and what the caller may do with which tenant."""
    found = [(name, access) for name in sorted(services.tenants) if (access := caller.access(name)) is not None]
    answer = {
        "user": caller.name,
        "kind": caller.kind,
        "groups": list(caller.groups),
        "tenants": [
            {
                "tenant_name": name,
                "rights": sorted(access.rights),
                "scope": None if access.scope is None else access.scope.as_json(),
                "role": access.role,
            }
            for name, access in found
        ],
    }
    return json_response(answer, headers={"Cache-Control": "no-store"})
