"""`GET /health`: the process is alive. Answered from memory, whatever else is going on."""

from starlette.responses import Response

from chargeback.api.authorisation import Openness
from chargeback.api.dependencies import ServicesDep
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.readiness import Health

router = Routes(tags=["Health"])


@router.get("/health", response_model=Health, needs=Openness.OPEN, only=(400,))
async def health(services: ServicesDep) -> Response:
    """Return the status and version of the process."""
    return json_response({"status": "ok", "version": services.version})
