"""`GET /metrics/chargebacks`: the newest calculated day of the tenants with an emitter `prometheus`, to be scraped."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from fastapi import Request
from starlette.responses import Response

from chargeback.access.scope import RowScope
from chargeback.api.authorisation import Access, access_to
from chargeback.api.dependencies import CallerDep, ServicesDep
from chargeback.api.executor import RequestExecutor
from chargeback.api.problems import NotFound
from chargeback.api.routing import Routes
from chargeback.emitters.openmetrics import CONTENT_TYPE, GaugeSample
from chargeback.emitters.prometheus import ENDPOINT, exposition
from chargeback.errors import StorageError
from chargeback.pipeline.emit_facts import StoredSums
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.days import newest_calculated
from chargeback.store.queries.engine import CancellationToken
from chargeback.store.queries.reader import TenantReader

log = logging.getLogger(__name__)

#: A tenant that hangs must not delay the others: a scrape waits for ten seconds.
_TENANT_SECONDS = 8.0

router = Routes(root="", tags=["Metrics"])

Families = Mapping[str, Sequence[GaugeSample]]

_OPENMETRICS = {
    "description": "OpenMetrics text.",
    "content": {
        CONTENT_TYPE: {
            "schema": {"type": "string"},
            "example": '# TYPE chargeback_tenant_up gauge\nchargeback_tenant_up{tenant="acme"} 1\n# EOF\n',
        }
    },
}


@router.get(
    ENDPOINT,
    response_class=Response,
    needs=Access.AUTHENTICATED,
    only=(400, 404, 500, 504),
    problems={404: "No tenant has an emitter of the type `prometheus`."},
    responses={200: _OPENMETRICS},
)
async def scrape_chargebacks(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
    """Return the newest calculated day of each tenant as OpenMetrics gauges without timestamps. Of the tenants of the
    caller, they show what is within the scope.

    If a tenant's storage cannot be read, its gauges are omitted and `chargeback_tenant_up` is 0. The values are exact
    decimals; Prometheus stores them as floating-point numbers.
    """
    exposing = [tenant for tenant in services.tenants.values() if tenant.exposition is not None]
    shown = [(each, access) for each in exposing if (access := access_to(caller, each.tenant_name)) is not None]
    if not shown:
        raise NotFound("No tenant has an emitter of the type prometheus; add one to its plugin_settings.emitters.")
    executor: RequestExecutor = request.app.state.executor
    found = await asyncio.gather(*(_families(tenant, access.scope, executor) for tenant, access in shown))
    text = exposition({tenant.tenant_name: families for (tenant, _), families in zip(shown, found, strict=True)})
    return Response(text, headers={"Content-Type": CONTENT_TYPE})


async def _families(tenant: TenantView, scope: RowScope | None, executor: RequestExecutor) -> Families | None:
    """Return the samples of one tenant within a ``scope``, or None if its storage cannot be read in time."""
    shown = tenant.exposition

    def _read(reader: TenantReader) -> Families:
        with tenant.store.control.read() as connection:
            newest = newest_calculated(connection)
        if newest is None or shown is None:
            return {}
        return shown.last_day(newest, StoredSums(tenant.store, reader))

    try:
        # A separate token, so that one tenant's queries can be cancelled without the others'.
        async with asyncio.timeout(_TENANT_SECONDS):
            return await executor.context_for(CancellationToken(), scope).query_facts(tenant, _read)
    except StorageError as error:
        log.error("the storage of tenant %s cannot be used: %s", tenant.tenant_name, error)
    except TimeoutError:
        log.error("the storage of tenant %s has not responded within %g s", tenant.tenant_name, _TENANT_SECONDS)
    return None
