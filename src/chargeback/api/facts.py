"""Answers made of a tenant's facts: each has an ETag, and one that a client still has is not made again.

The ETag stands for everything that decides an answer: the versions of the tables, the revisions of tags, inventory and
days, what the configuration says of the tenant, and the request. It is known before any query runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Annotated, Final

from fastapi import Depends, Request
from pydantic_core import to_json
from starlette.responses import Response

from chargeback.api.compression import accepts_gzip, compressed
from chargeback.api.dependencies import ContextDep, ServicesDep, TenantDep
from chargeback.api.parameters import CommonParameters, FactsParameters
from chargeback.api.responses import ByteStream
from chargeback.api.schemas.datasets import DatasetQuery
from chargeback.service.answer_cache import AnswerCache
from chargeback.service.executor import RequestContext
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.revisions import read_revisions
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagCache
from chargeback.store.queries.version import DataVersion

#: Responses may be cached by the client only, and must be revalidated.
CACHE_CONTROL: Final = "private, no-cache"
CSV_TYPE: Final = "text/csv"


class FactsRequest:
    """A request for something made of one tenant's facts."""

    def __init__(self, request: Request, tenant: TenantView, context: RequestContext, service_version: str) -> None:
        self.tenant = tenant
        self.context = context
        self._request = request
        self._answers: AnswerCache = request.app.state.executor.answers
        self.tags: TagCache = request.app.state.executor.tags
        self._service_version = service_version

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

    @property
    def wants_csv(self) -> bool:
        """Whether the client asked for CSV, and for nothing else."""
        accepted = [part.partition(";")[0].strip() for part in self._request.headers.get("accept", "").split(",")]
        return accepted == [CSV_TYPE]

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
        gzip = accepts_gzip(self._request.headers.get("accept-encoding", ""))
        known_tags = self._request.headers.get("if-none-match", "")

        def _recall(version: DataVersion) -> Response | None:
            tag = self._tag(version, params, also)
            if tag in known_tags:
                return Response(status_code=304, headers=_headers(tag))
            known = self._answers.get(f"{tag}{gzip}") if keep else None
            return None if known is None else Response(known[0], headers=known[1])

        def _make(reader: TenantReader, version: DataVersion) -> Response:
            tag = self._tag(version, params, also)
            response = make(reader, version)
            response.headers.update(_headers(tag))
            if gzip:
                response = compressed(response)
            if keep:
                self._answers.put(f"{tag}{gzip}", bytes(response.body), dict(response.headers))
            return response

        as_of = params.as_of if isinstance(params, FactsParameters) else None
        return await self.context.query_version(self.tenant, _recall, _make, as_of)

    def _tag(self, version: DataVersion, params: CommonParameters, also: object) -> str:
        tenant = self.tenant
        made_of = [
            self._service_version,
            version.digest,
            [tenant.tenant_name, tenant.tenant_id, tenant.ecosystem, tenant.currency],
            [tenant.topic_attribution_status, tenant.topic_attribution_error],
            self._request.url.path,
            params.model_dump(),
            params.days(tenant.lookback_days),
            also,
        ]
        return f'W/"{hashlib.blake2b(to_json(made_of), digest_size=16).hexdigest()}"'


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": CACHE_CONTROL, "Vary": "Accept, Accept-Encoding"}


async def _facts(request: Request, tenant: TenantDep, context: ContextDep, services: ServicesDep) -> FactsRequest:
    return FactsRequest(request, tenant, context, services.version)


FactsDep = Annotated[FactsRequest, Depends(_facts)]
