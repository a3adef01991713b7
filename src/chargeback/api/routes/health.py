"""`GET /health`: the process is alive. Answered from memory, whatever else is going on."""

from fastapi import APIRouter
from starlette.responses import Response

from chargeback.api.authorisation import Openness
from chargeback.api.dependencies import ServicesDep
from chargeback.api.documentation import documented
from chargeback.api.parameters import no_parameters
from chargeback.api.responses import json_response
from chargeback.api.schemas.readiness import Health

router = APIRouter(tags=["Health"])


@router.get(
    "/health", response_model=Health, **documented(needs=Openness.OPEN, only=(400,)), dependencies=[no_parameters()]
)
async def health(services: ServicesDep) -> Response:
    """Return the status and version of the process."""
    return json_response({"status": "ok", "version": services.version})
