"""Dependencies of routes: the tenant of the path, and the context of the request."""

from typing import Annotated

from fastapi import Depends, Path, Request

from chargeback.api.limits import CANCELLATION
from chargeback.api.problems import NotFound
from chargeback.api.services import Services
from chargeback.service.executor import RequestContext, RequestExecutor
from chargeback.service.tenant_view import TenantView


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _tenant(
    request: Request,
    tenant_name: Annotated[str, Path(description="Name of the tenant in the configuration.", examples=["acme"])],
) -> TenantView:
    services: Services = request.app.state.services
    try:
        return services.tenants[tenant_name]
    except KeyError:
        raise NotFound(f"There is no tenant {tenant_name!r}.") from None


async def _context(request: Request) -> RequestContext:
    executor: RequestExecutor = request.app.state.executor
    return executor.context_for(request.scope[CANCELLATION])


ServicesDep = Annotated[Services, Depends(_services)]
TenantDep = Annotated[TenantView, Depends(_tenant)]
ContextDep = Annotated[RequestContext, Depends(_context)]
