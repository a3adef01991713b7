"""Conditional requests: an answer has an ETag, and a client that still has the answer gets 304 instead of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Request
from pydantic_core import to_json
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.api.compression import compressed
from chargeback.api.dependencies import ContextDep, ServicesDep, TenantDep
from chargeback.api.parameters import CommonParameters
from chargeback.page import accepts_encoding
from chargeback.service.executor import RequestContext, control_reader
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.revisions import read_entity_revisions

#: Responses may be cached by the client only, and must be revalidated.
CACHE_CONTROL: Final = "private, no-cache"
CSV_TYPE: Final = "text/csv"


class TenantRequest:
    """A request for data of one tenant, whose answer has an ETag."""

    def __init__(self, request: Request, tenant: TenantView, context: RequestContext, service_version: str) -> None:
        headers = request.headers
        self.tenant = tenant
        self.context = context
        self.takes_gzip = accepts_encoding(headers.get("accept-encoding", ""), "gzip")
        self._known_tags = headers.get("if-none-match", "")
        accepted = [part.partition(";")[0].strip() for part in headers.get("accept", "").split(",")]
        #: Whether the client asked for CSV, by the path or by accepting nothing else.
        self.wants_csv = request.url.path.endswith(".csv") or accepted == [CSV_TYPE]
        self._made_of = [
            service_version,
            request.url.path,
            [tenant.tenant_name, tenant.tenant_id, tenant.ecosystem, tenant.currency],
            [tenant.topic_attribution_status, tenant.topic_attribution_error],
        ]

    def etag(self, *made_of: object) -> str:
        """Return the ETag of an answer that is made of these values, of this request and its tenant's settings."""
        digest = hashlib.blake2b(to_json([*self._made_of, self.wants_csv, *made_of]), digest_size=16)
        return f'W/"{digest.hexdigest()}"'

    def unchanged(self, tag: str) -> Response | None:
        """Return the response 304 if the client still has the answer with this ETag."""
        return Response(status_code=304, headers=_headers(tag)) if tag in self._known_tags else None

    def finished(self, response: Response, tag: str) -> Response:
        """Return an answer with its ETag, as gzip where that is worth it; to be called in a thread."""
        response.headers.update(_headers(tag))
        return compressed(response) if self.takes_gzip else response


class ControlRequest(TenantRequest):
    """A request for data of one tenant's control database."""

    async def of_entities(self, params: CommonParameters, read: Callable[[Connection], Response]) -> Response:
        """Return the answer that ``read`` makes of tags and inventory, and of nothing else; it is not called if the
        client still has the answer."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as connection:
                tag = self.etag(read_entity_revisions(connection), params.model_dump())
                unchanged = self.unchanged(tag)
                if unchanged is not None:
                    return unchanged
                response = read(connection)
            return self.finished(response, tag)

        return await self.context.run_blocking(self.tenant, _answer)

    async def of_anything(self, read: Callable[[Connection], Response]) -> Response:
        """Return the answer that ``read`` makes of any part of the database: its content decides the ETag."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as connection:
                response = read(connection)
            tag = self.etag(hashlib.blake2b(response.body, digest_size=16).hexdigest())
            return self.unchanged(tag) or self.finished(response, tag)

        return await self.context.run_blocking(self.tenant, _answer)


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": CACHE_CONTROL, "Vary": "Accept, Accept-Encoding"}


async def _control(request: Request, tenant: TenantDep, context: ContextDep, services: ServicesDep) -> ControlRequest:
    return ControlRequest(request, tenant, context, services.version)


ControlDep = Annotated[ControlRequest, Depends(_control)]
