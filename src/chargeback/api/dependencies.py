"""Dependencies of routes: the tenant of the path, the caller of the request, and the caller's access."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Path, Request

from chargeback.access.caller import Caller, TenantAccess
from chargeback.api.authentication import authenticated
from chargeback.api.authorisation import ACCESS
from chargeback.api.services import Services
from chargeback.reports.tenant_view import TenantView


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _access(request: Request) -> TenantAccess:
    """Return what the caller may do with the tenant of the path, which was checked before."""
    access: TenantAccess = request.scope[ACCESS]
    return access


async def _tenant(
    request: Request,
    tenant_name: Annotated[str, Path(description="Name of the tenant in the configuration.", examples=["acme"])],
) -> TenantView:
    services: Services = request.app.state.services
    tenant = services.tenants[tenant_name].fenced()
    return tenant if services.mode == "both" else replace(tenant, pipeline=None)


ServicesDep = Annotated[Services, Depends(_services)]
AccessDep = Annotated[TenantAccess, Depends(_access)]
TenantDep = Annotated[TenantView, Depends(_tenant)]
CallerDep = Annotated[Caller, Depends(authenticated)]
