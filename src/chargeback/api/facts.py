"""Answers made of a tenant's facts.

The ETag stands for everything that decides an answer: the versions of the tables, the revisions of tags, inventory and
days, what the configuration says of the tenant, and the request. It is known before any query runs. Within a scope it
stands for the content of the answer, see :mod:`~chargeback.api.conditional`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from chargeback.api.conditional import CACHE_CONTROL, TenantRequest
from chargeback.api.dependencies import AccessDep, ContextDep, ServicesDep, TenantDep
from chargeback.api.parameters import CSV_TYPE, CommonParameters, FactsParameters
from chargeback.api.responses import ByteStream, attachment
from chargeback.api.schemas.datasets import DatasetQuery
from chargeback.service.executor import OpenReader
from chargeback.store.control.revisions import read_revisions
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion
from chargeback.store.tenant import TenantStore

#: Names the versions of the tenant's cost categories, as ``key=version``.
CATEGORIES_VERSION = "X-Cost-Categories-Version"
CATEGORIES_HEADER = {
    CATEGORIES_VERSION: {
        "description": "The versions of the tenant's cost categories that the answer is made of, as `key=version`. "
        "Missing if it has none.",
        "schema": {"type": "string", "examples": ["cost_center=3, stage=1"]},
    }
}


class FactsRequest(TenantRequest):
    """A request for something made of one tenant's facts."""

    @property
    def whole_store(self) -> TenantStore:
        """The tenant's storage with all facts, for what is calculated again from whole lines; whoever uses it narrows
        its answer by the scope itself."""
        return self.tenant.whole_store

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
            headers.update(category_versions(reader))
            yield from reader.export(params.dataset, params.selection(tenant.lookback_days, last))

        headers = attachment(name) | {"Cache-Control": CACHE_CONTROL, "Vary": "Accept"}
        # The stream has read its first pieces, and therefore the versions, when the response begins.
        pieces = self.context.stream(tenant, _read, params.as_of)
        return await ByteStream.begin(self.context, pieces, media_type=CSV_TYPE, headers=headers)

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
            made_of = self.etag(version.digest, params.model_dump(), params.days(self.tenant.lookback_days), also)
            unchanged = self.unchanged(self.known_tag(made_of))
            if unchanged is not None:
                return unchanged
            key = f"{made_of}{self.takes_gzip}"
            known = self.executor.answers.get(key) if keep else None
            if known is not None:
                return Response(known[0], headers=known[1])
            with open_reader() as reader:
                response = make(reader, version)
            response.headers.update(category_versions(reader))
            tag = self.tag_of(response, made_of)
            unchanged = self.unchanged(tag)
            if unchanged is not None:
                return unchanged
            response = self.finished(response, tag)
            if keep:
                self.executor.answers.put(key, bytes(response.body), dict(response.headers))
            return response

        as_of = params.as_of if isinstance(params, FactsParameters) else None
        return await self.context.query_version(self.tenant, _answer, as_of)


def category_versions(reader: TenantReader) -> dict[str, str]:
    """Return the header that names the versions of the cost categories that an answer is made of; none without any."""
    versions = ", ".join(reader.categories.index.versions())
    return {CATEGORIES_VERSION: versions} if versions else {}


async def _facts(
    request: Request, tenant: TenantDep, context: ContextDep, access: AccessDep, services: ServicesDep
) -> FactsRequest:
    return FactsRequest(request, tenant, context, access, services.version)


FactsDep = Annotated[FactsRequest, Depends(_facts)]
