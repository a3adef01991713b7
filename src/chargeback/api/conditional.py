"""Conditional requests: an answer has an ETag, and a client that still has the answer gets 304 instead of it.

Without a scope, the ETag of an answer follows from the version of the data and is known before any query runs. Within a
scope, the content decides it: data outside the scope must not change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Request
from pydantic_core import to_json
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.caller import TenantAccess
from chargeback.api.authorisation import accepts_only_csv
from chargeback.api.compression import compressed
from chargeback.api.dependencies import AccessDep, ContextDep, ServicesDep, TenantDep
from chargeback.api.parameters import CommonParameters
from chargeback.api.responses import digest_of
from chargeback.page import accepts_encoding
from chargeback.service.executor import OpenReader, RequestContext, RequestExecutor, control_reader, entity_ids
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.given import EntityIds
from chargeback.store.control.revisions import read_entity_revisions
from chargeback.store.queries.version import DataVersion

#: Responses may be cached by the client only, and must be revalidated.
CACHE_CONTROL: Final = "private, no-cache"


class TenantRequest:
    """A request for data of one tenant, whose answer has an ETag. ``access`` is what the caller may do with it."""

    def __init__(
        self,
        request: Request,
        tenant: TenantView,
        context: RequestContext,
        access: TenantAccess,
        service_version: str,
    ) -> None:
        headers = request.headers
        self.executor: RequestExecutor = request.app.state.executor
        self.tenant = tenant
        self.context = context
        self.access = access
        self.takes_gzip = accepts_encoding(headers.get("accept-encoding", ""), "gzip")
        self._known_tags = headers.get("if-none-match", "")
        #: Whether the client asked for CSV, by the path or by accepting nothing else.
        self.wants_csv = request.url.path.endswith(".csv") or accepts_only_csv(request)
        self._made_of = [
            service_version,
            request.url.path,
            [tenant.tenant_name, tenant.tenant_id, tenant.ecosystem, tenant.currency],
            [tenant.topic_attribution_status, tenant.topic_attribution_error],
            tenant.currencies,
            [sorted(access.rights), None if access.scope is None else access.scope.as_json()],
        ]

    def etag(self, *made_of: object) -> str:
        """Return the ETag of an answer that is made of these values, of this request and its tenant's settings."""
        digest = hashlib.blake2b(to_json([*self._made_of, self.wants_csv, *made_of]), digest_size=16)
        return f'W/"{digest.hexdigest()}"'

    def known_tag(self, made_of: str) -> str | None:
        """Return the ETag of an answer before it is made, from the tag of all that it is made of (:meth:`etag`).

        Without a scope, that tag is the ETag. Within a scope it would change with what the caller does not see, so that
        the content decides the ETag; it is known if the answer was made of the same before.
        """
        if self.context.scope is None:
            return made_of
        known = self.executor.content_tags.get(made_of)
        return None if known is None else known[0].decode()

    def tag_of(self, response: Response, made_of: str) -> str:
        """Return the ETag of an answer that was made, see :meth:`known_tag`."""
        if self.context.scope is None:
            return made_of
        tag = self.etag(digest_of(response.body), sorted(response.headers.items()))
        self.executor.content_tags.put(made_of, tag.encode(), {})
        return tag

    def unchanged(self, tag: str | None) -> Response | None:
        """Return the response 304 if the client still has the answer with this ETag."""
        return Response(status_code=304, headers=_headers(tag)) if tag and tag in self._known_tags else None

    def finished(self, response: Response, tag: str) -> Response:
        """Return an answer with its ETag, as gzip where that is worth it; to be called in a thread."""
        response.headers.update(_headers(tag))
        return compressed(response) if self.takes_gzip else response


class ControlRequest(TenantRequest):
    """A request for data of one tenant's control database."""

    async def of_entities(
        self, params: CommonParameters, read: Callable[[Connection, EntityIds | None], Response]
    ) -> Response:
        """Return the answer that ``read`` makes of tags and inventory, and of nothing else; it is not called if the
        client still has the answer. It gets the entities that the caller may see, or None where these are all."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as connection:
                tag = self.etag(read_entity_revisions(connection), params.model_dump())
                unchanged = self.unchanged(tag)
                if unchanged is not None:
                    return unchanged
                response = read(connection, None)
            return self.finished(response, tag)

        def _narrowed(version: DataVersion, open_reader: OpenReader) -> Response:
            made_of = self.etag(version.digest, params.model_dump())
            unchanged = self.unchanged(self.known_tag(made_of))
            if unchanged is not None:
                return unchanged
            with open_reader() as reader:
                visible = entity_ids(reader.visible_entities())
            with control_reader(self.tenant, self.context.token) as connection:
                response = read(connection, visible)
            tag = self.tag_of(response, made_of)
            return self.unchanged(tag) or self.finished(response, tag)

        if self.context.scope is not None:
            return await self.context.query_version(self.tenant, _narrowed)
        return await self.context.run_blocking(self.tenant, _answer)

    async def of_anything(self, read: Callable[[Connection], Response]) -> Response:
        """Return the answer that ``read`` makes of any part of the database: its content decides the ETag."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as connection:
                response = read(connection)
            tag = self.etag(digest_of(response.body))
            return self.unchanged(tag) or self.finished(response, tag)

        return await self.context.run_blocking(self.tenant, _answer)

    async def of_version(self, read: Callable[[Connection], tuple[Response, str]]) -> Response:
        """Return the answer that ``read`` makes, with the strong ETag of a version, which it returns, too. It is never
        compressed: a strong ETag stands for each byte."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as connection:
                response, tag = read(connection)
            unchanged = self.unchanged(tag)
            response.headers.update(_headers(tag))
            return unchanged or response

        return await self.context.run_blocking(self.tenant, _answer)


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": CACHE_CONTROL, "Vary": "Accept, Accept-Encoding"}


async def _control(
    request: Request, tenant: TenantDep, context: ContextDep, access: AccessDep, services: ServicesDep
) -> ControlRequest:
    return ControlRequest(request, tenant, context, access, services.version)


ControlDep = Annotated[ControlRequest, Depends(_control)]
