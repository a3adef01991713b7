"""Answers made of a tenant's facts.

The ETag stands for everything that decides an answer: the versions of the tables, the revisions of tags, inventory and
days, what the configuration says of the tenant, and the request. It is known before any query runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from chargeback.api.conditional import CACHE_CONTROL, CSV_TYPE, TenantRequest
from chargeback.api.dependencies import ContextDep, ServicesDep, TenantDep
from chargeback.api.parameters import CommonParameters, FactsParameters
from chargeback.api.responses import ByteStream
from chargeback.api.schemas.datasets import DatasetQuery
from chargeback.service.answer_cache import AnswerCache
from chargeback.service.executor import OpenReader, RequestContext
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.revisions import read_revisions
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagCache
from chargeback.store.queries.version import DataVersion


class FactsRequest(TenantRequest):
    """A request for something made of one tenant's facts."""

    def __init__(self, request: Request, tenant: TenantView, context: RequestContext, service_version: str) -> None:
        super().__init__(request, tenant, context, service_version)
        self._answers: AnswerCache = request.app.state.executor.answers
        self.tags: TagCache = request.app.state.executor.tags

    async def answer(
        self, params: CommonParameters, make: Callable[[TenantReader], Response], *, keep: bool = False
    ) -> Response:
        """Return the answer that ``make`` makes, in a thread of the tenant's, unless the client still has it. With
        ``keep`` it is cached for the same request of any client."""
        return await self.versioned_answer(params, lambda reader, _: make(reader), keep=keep)

    async def select(
        self, params: DatasetQuery, make: Callable[[TenantReader, Selection], Response], *, keep: bool = False
    ) -> Response:
        """Return the same of an answer that is made of selected rows."""

        def _make(reader: TenantReader, version: DataVersion) -> Response:
            return make(reader, params.selection(self.tenant.lookback_days, version.control.last_calculated))

        return await self.versioned_answer(params, _make, keep=keep)

    async def download(self, params: DatasetQuery, name: str) -> Response:
        """Return all selected rows as a CSV file of that name, which is sent while it is made."""
        tenant = self.tenant

        def _read(reader: TenantReader) -> Iterator[memoryview]:
            with tenant.store.control.read() as connection:
                last = read_revisions(connection).last_calculated
            yield from reader.export_csv(params.dataset, params.selection(tenant.lookback_days, last))

        return await ByteStream.begin(
            self.context,
            self.context.stream(tenant, _read, params.as_of),
            media_type=CSV_TYPE,
            headers={
                "Content-Disposition": f"attachment; filename={name}",
                "Cache-Control": CACHE_CONTROL,
                "Vary": "Accept",
            },
        )

    async def versioned_answer(
        self,
        params: CommonParameters,
        make: Callable[[TenantReader, DataVersion], Response],
        *,
        keep: bool = False,
        also: object = None,
    ) -> Response:
        """Return the answer of a ``make`` that needs the version of the data; ``also`` is what else decides it."""

        def _answer(version: DataVersion, open_reader: OpenReader) -> Response:
            tag = self.etag(version.digest, params.model_dump(), params.days(self.tenant.lookback_days), also)
            unchanged = self.unchanged(tag)
            if unchanged is not None:
                return unchanged
            key = f"{tag}{self.takes_gzip}"
            known = self._answers.get(key) if keep else None
            if known is not None:
                return Response(known[0], headers=known[1])
            with open_reader() as reader:
                response = make(reader, version)
            response = self.finished(response, tag)
            if keep:
                self._answers.put(key, bytes(response.body), dict(response.headers))
            return response

        as_of = params.as_of if isinstance(params, FactsParameters) else None
        return await self.context.query_version(self.tenant, _answer, as_of)


async def _facts(request: Request, tenant: TenantDep, context: ContextDep, services: ServicesDep) -> FactsRequest:
    return FactsRequest(request, tenant, context, services.version)


FactsDep = Annotated[FactsRequest, Depends(_facts)]
