"""What routes ask for: the tenant of the path, and the work of the request."""

from typing import Annotated

from fastapi import Depends, Path, Request

from chargeback.api.limits import QUESTION
from chargeback.api.problems import NotFound
from chargeback.api.services import Services, TenantView
from chargeback.api.work import Work, Workshop


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


async def _work(request: Request) -> Work:
    workshop: Workshop = request.app.state.workshop
    return workshop.work_for(request.scope[QUESTION])


TheServices = Annotated[Services, Depends(_services)]
TheTenant = Annotated[TenantView, Depends(_tenant)]
TheWork = Annotated[Work, Depends(_work)]
