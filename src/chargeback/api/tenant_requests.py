"""Requests about one tenant: the data of the tenant that a route gets, and how its response is sent.

A route depends on one of the classes below. Its function is called in a thread of the tenant, with the readers that the
class opened. The class adds the ETag, returns 304 to a client that still has the response, caches and compresses.

The ETag of a response from facts covers everything that it depends on: the versions of the tables, the revisions of
tags, inventory and days, the configuration of the tenant, and the request. It is known before any query runs. Within a
scope this ETag would change with data that the caller may not see, so there it is a digest of the response.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from pydantic import Field
from pydantic_core import to_json
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.caller import TenantAccess
from chargeback.api.authorisation import ACCESS, accepts_only_csv
from chargeback.api.dependencies import TenantDep
from chargeback.api.documentation import csv_answer
from chargeback.api.executor import OpenReader, RequestContext, RequestExecutor, control_reader, entity_ids
from chargeback.api.limits import CANCELLATION
from chargeback.api.parameters import CSV_TYPE, CommonParameters, FactsParameters, Restating
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import ByteStream, attachment, digest_of
from chargeback.api.selecting import ComparingQuery, DatasetQuery, PostedQuery
from chargeback.api.services import Services
from chargeback.config.shadows import Shadow
from chargeback.model.accounting import periods_of
from chargeback.model.days import InstantRange
from chargeback.page import accepts_encoding
from chargeback.reports.closing.reach import check_reach, moved_in_closed
from chargeback.reports.periods import Comparison
from chargeback.reports.shadows import files_of
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.audit import PERIOD_RESTATED, AuditEntry, record
from chargeback.store.control.closings import read_books
from chargeback.store.control.given import EntityIds
from chargeback.store.control.policies import policies_revision
from chargeback.store.control.revisions import read_entity_revisions, read_revisions
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries.export import ExportFormat
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion
from chargeback.store.tenant import TenantStore

#: Responses may be cached by the client only, and must be revalidated.
CACHE_CONTROL: Final = "private, no-cache"
#: Smaller responses are not compressed: they fit into one or two packets.
SMALLEST_COMPRESSED: Final = 1000
#: Beyond the first levels, time grows faster than size shrinks.
_LEVEL: Final = 4

#: The header with the versions of the tenant's cost categories, as ``key=version``.
CATEGORIES_VERSION: Final = "X-Cost-Categories-Version"
CATEGORIES_HEADER: Final = {
    CATEGORIES_VERSION: {
        "description": "The versions of the tenant's cost categories from which the response was made, as "
        "`key=version`. Missing if the tenant has none.",
        "schema": {"type": "string", "examples": ["cost_center=3, stage=1"]},
    }
}

Call = Callable[[], Response]


@dataclass(frozen=True)
class Caching:
    """How a route's responses from facts are cached: whether for the same request of any client, and the values that
    they depend on in addition to data, settings and parameters."""

    keep: bool = False
    also: Callable[[Any, Any], object] | None = None


class TenantRequest:
    """A request about one tenant. ``access`` is what the caller may do with it, which was checked before."""

    def __init__(self, request: Request, tenant: TenantView) -> None:
        headers = request.headers
        services: Services = request.app.state.services
        access: TenantAccess = request.scope[ACCESS]
        self.executor: RequestExecutor = request.app.state.executor
        self.tenant = tenant
        self.access = access
        self.context: RequestContext = self.executor.context_for(request.scope[CANCELLATION], access.scope)
        #: The time of the request.
        self.now = services.clock()
        self.takes_gzip = accepts_encoding(headers.get("accept-encoding", ""), "gzip")
        self._known_tags = headers.get("if-none-match", "")
        #: Whether the client requested CSV, by the path or by accepting nothing else.
        self.wants_csv = request.url.path.endswith(".csv") or accepts_only_csv(request)
        self._made_of = [
            services.version,
            request.url.path,
            [tenant.tenant_name, tenant.tenant_id, tenant.ecosystem, tenant.currency],
            [tenant.topic_attribution_status, tenant.topic_attribution_error],
            tenant.currencies,
            [sorted(access.rights), None if access.scope is None else access.scope.as_json()],
        ]

    async def respond(self, call: Call, params: Any, caching: Caching) -> Response:
        """Return the response that ``call`` creates in a thread of the tenant; ``params`` are the query parameters."""
        raise NotImplementedError

    async def send_rows(self, params: DatasetQuery, name: str) -> Response:
        """Return all selected rows as a CSV file of that name, which is sent while it is created."""
        tenant = self.tenant

        def _read(reader: TenantReader) -> Iterator[memoryview]:
            with tenant.store.control.read() as connection:
                last = read_revisions(connection).last_calculated
            headers.update(category_versions(reader))
            selection = params.selection(tenant.lookback_days, last)
            reader = self._on_basis(reader, params)
            check_posted(reader, selection.window)
            yield from reader.export(params.dataset, selection)

        headers = attachment(name) | {"Cache-Control": CACHE_CONTROL, "Vary": "Accept"}
        # The stream has read its first pieces, and therefore the versions, when the response begins.
        pieces = self.context.stream(tenant, _read, params.as_of)
        return await ByteStream.begin(self.context, pieces, media_type=CSV_TYPE, headers=headers)

    def ruled(self) -> TenantView:
        """Return the tenant with the rules that are in force now; requests for facts have it already."""
        with self.reading() as connection:
            return self.tenant.ruled(policies_revision(connection))

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection that reads from the control database."""
        return control_reader(self.tenant, self.context.token)

    def facts_reader(self) -> AbstractContextManager[TenantReader]:
        """Open a reader of the facts; requests with a ``reader`` have one already."""
        return self.context.reader(self.tenant)

    def _on_basis(self, reader: TenantReader, params: CommonParameters) -> TenantReader:
        """Return the reader that the parameters request: of accrued or of posted costs."""
        if not isinstance(params, PostedQuery):
            return reader
        if params.scenario is not None:
            with self.reading() as connection:
                files = files_of(connection, self.tenant.whole_store.facts, self.shadow(params.scenario).name)
            return reader.with_files(CHARGEBACKS_TABLE, files)
        return self.context.posted(self.tenant, reader, params.as_of) if params.is_posted else reader

    def shadows(self) -> list[Shadow]:
        """Return the shadows that the caller may see: within a scope those that are visible to all callers."""
        return [each for each in self.tenant.shadows if each.visible or self.access.sees_everything]

    def shadow(self, name: str) -> Shadow:
        """Return a shadow that the caller may see.

        Raises:
            NotFound: there is none of this name.
        """
        found = next((each for each in self.shadows() if each.name == name), None)
        if found is None:
            raise NotFound(f"There is no shadow {name!r} that you may see.")
        return found

    def etag(self, *made_of: object) -> str:
        """Return the ETag of a response that depends on these values, this request and its tenant's settings."""
        digest = hashlib.blake2b(to_json([*self._made_of, self.wants_csv, *made_of]), digest_size=16)
        return f'W/"{digest.hexdigest()}"'

    def known_tag(self, made_of: str) -> str | None:
        """Return the ETag of a response before it is created, from the tag of everything it depends on (:meth:`etag`).

        Within a scope, the ETag is a digest of the content; it is known if the same response was created before.
        """
        if self.access.sees_everything:
            return made_of
        known = self.executor.content_tags.get(made_of)
        return None if known is None else known[0].decode()

    def tag_of(self, response: Response, made_of: str) -> str:
        """Return the ETag of a created response, see :meth:`known_tag`."""
        if self.access.sees_everything:
            return made_of
        tag = self.etag(digest_of(response.body), sorted(response.headers.items()))
        self.executor.content_tags.put(made_of, tag.encode(), {})
        return tag

    def unchanged(self, tag: str | None) -> Response | None:
        """Return the response 304 if the client still has the response with this ETag."""
        return Response(status_code=304, headers=_headers(tag)) if tag and tag in self._known_tags else None

    def finished(self, response: Response, tag: str) -> Response:
        """Return a response with its ETag, compressed if it is large enough; to be called in a thread."""
        response.headers.update(_headers(tag))
        return compressed(response) if self.takes_gzip else response


class FactsRequest(TenantRequest):
    """A request for a response from one tenant's facts. In its thread it has a ``reader`` of one ``version`` of the
    data; ``extra`` is the result of the ``also`` of the route, for its function."""

    reader: TenantReader
    version: DataVersion
    extra: Any = None

    @property
    def whole_store(self) -> TenantStore:
        """The tenant's storage with all facts, for calculations that need whole lines; the route itself restricts its
        response to the scope."""
        return self.tenant.whole_store

    def selection(self, params: DatasetQuery) -> Selection:
        """Return the rows that are requested."""
        found = params.selection(self.tenant.lookback_days, self.version.control.last_calculated)
        check_posted(self.reader, found.window)
        return found

    def comparison(self, params: ComparingQuery) -> Comparison:
        """Return the rows of the two periods that are requested."""
        found = params.comparison(self.tenant.lookback_days, self.version.control.last_calculated)
        check_posted(self.reader, found.selection.window)
        return found

    async def respond(self, call: Call, params: CommonParameters, caching: Caching) -> Response:
        """Return the response; ``call`` is not made if the client or the cache has it."""

        def _answer(version: DataVersion, open_reader: OpenReader) -> Response:
            self.version = version
            self.tenant = self.tenant.ruled(version.control.policies)
            also = None if caching.also is None else caching.also(self, params)
            days = params.days(self.tenant.lookback_days)
            made_of = self.etag(version.digest, params.model_dump(), days, also)
            unchanged = self.unchanged(self.known_tag(made_of))
            if unchanged is not None:
                return unchanged
            key = f"{made_of}{self.takes_gzip}"
            known = self.executor.answers.get(key) if caching.keep else None
            if known is not None:
                return Response(known[0], headers=known[1])
            with open_reader() as reader:
                self.reader = self._on_basis(reader, params)
                response = call()
            response.headers.update(category_versions(reader))
            tag = self.tag_of(response, made_of)
            unchanged = self.unchanged(tag)
            if unchanged is not None:
                return unchanged
            response = self.finished(response, tag)
            if caching.keep:
                self.executor.answers.put(key, bytes(response.body), dict(response.headers))
            return response

        as_of = params.as_of if isinstance(params, FactsParameters) else None
        return await self.context.query_version(self.tenant, _answer, as_of)


class ControlRequest(TenantRequest):
    """A request for any part of one tenant's control database: its ETag is a digest of the content. In its thread it
    has a ``connection``."""

    connection: Connection

    async def respond(self, call: Call, params: Any, caching: Caching) -> Response:
        """Return the response."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as self.connection:
                response = call()
            tag = self.etag(digest_of(response.body))
            return self.unchanged(tag) or self.finished(response, tag)

        return await self.context.run_blocking(self.tenant, _answer)


class EntitiesRequest(ControlRequest):
    """A request for tags and inventory only. In its thread it has a ``connection`` and the entities that are
    ``visible`` to the caller, or None if all are."""

    visible: EntityIds | None = None

    async def respond(self, call: Call, params: CommonParameters, caching: Caching) -> Response:
        """Return the response; ``call`` is not made if the client still has it."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as self.connection:
                tag = self.etag(read_entity_revisions(self.connection), params.model_dump())
                return self.unchanged(tag) or self.finished(call(), tag)

        def _narrowed(version: DataVersion, open_reader: OpenReader) -> Response:
            made_of = self.etag(version.digest, params.model_dump())
            unchanged = self.unchanged(self.known_tag(made_of))
            if unchanged is not None:
                return unchanged
            with open_reader() as reader:
                self.visible = entity_ids(reader.visible_entities())
            with control_reader(self.tenant, self.context.token) as self.connection:
                response = call()
            tag = self.tag_of(response, made_of)
            return self.unchanged(tag) or self.finished(response, tag)

        if not self.access.sees_everything:
            return await self.context.query_version(self.tenant, _narrowed)
        return await self.context.run_blocking(self.tenant, _answer)


class VersionRequest(ControlRequest):
    """A request for one version of an object: its response has the strong ETag of the version, and is never compressed,
    because a strong ETag identifies the exact bytes."""

    async def respond(self, call: Call, params: Any, caching: Caching) -> Response:
        """Return the response."""

        def _answer() -> Response:
            with control_reader(self.tenant, self.context.token) as self.connection:
                response = call()
            unchanged = self.unchanged(response.headers["etag"])
            response.headers.update(_headers(response.headers["etag"]))
            return unchanged or response

        return await self.context.run_blocking(self.tenant, _answer)


class ChangeRequest(TenantRequest):
    """A request that changes data, or calculates from its body. Its thread opens the readers that it needs."""

    async def respond(self, call: Call, params: Any, caching: Caching) -> Response:
        """Return the response; it has no ETag."""
        return await self.context.run_blocking(self.tenant, call)

    def visible_entities(self) -> EntityIds | None:
        """Return the entities of the tenant that the caller may see, by their type; None if these are all."""
        if self.access.sees_everything:
            return None
        with self.facts_reader() as reader:
            return entity_ids(reader.visible_entities())

    def writing(self) -> AbstractContextManager[Connection]:
        """Open a connection that writes to the control database, in one durable transaction. It is rolled back if the
        request was cancelled before the commit."""
        return self.context.writing(self.tenant)

    @contextmanager
    def posted_reader(self) -> Iterator[PostedReader]:
        """Open a reader of posted costs."""
        with self.facts_reader() as reader:
            yield self.context.posted(self.tenant, reader, None)

    @contextmanager
    def changing(self, who: str, restating: Restating) -> Iterator[Connection]:
        """Open a connection as :meth:`writing`, for a change of tags or cost categories. A change that moves amounts of
        closed months is refused unless ``restating`` allows it; the audit log then has an entry about it, by
        ``who``."""
        with self.writing() as connection:
            yield connection
            books = read_books(connection)
            if books.start is None:
                return
            with self.facts_reader() as reader:
                moved = moved_in_closed(self.tenant, reader, self.executor.lookups, books, connection)
            if not restating.restate_closed:
                check_reach(moved, books, self.tenant.currency)
            elif moved:
                after = {"reason": getattr(restating, "reason", None), "values": len(moved)}
                months = "/".join(sorted({each.period_id for each in moved}))
                record(connection, who, [AuditEntry(PERIOD_RESTATED, f"period/{months}", None, after)])


class CalculationRequest(ChangeRequest):
    """A request that calculates from the facts and from its body. In its thread it has a ``reader``."""

    reader: TenantReader

    async def respond(self, call: Call, params: Any, caching: Caching) -> Response:
        """Return the response; it has no ETag. ``as_of`` of the body selects the version of the rows."""

        def _answer(reader: TenantReader) -> Response:
            self.reader = reader
            return call()

        return await self.context.query_facts(self.tenant, _answer, getattr(params, "as_of", None))


@dataclass
class RowsFile:
    """A file of rows that is sent while ``read`` creates it; ``headers`` may be filled until its first piece exists."""

    name: str
    media_type: str
    read: Callable[[TenantReader], Iterator[memoryview]]
    headers: dict[str, str] = field(default_factory=dict)


class FileRequest(TenantRequest):
    """A request for a file of rows: its function returns a :class:`RowsFile`."""

    async def send(self, file: RowsFile, params: Any) -> Response:
        """Return the response; ``as_of`` of the body selects the version of the rows."""
        file.headers.update(attachment(file.name) | {"Cache-Control": CACHE_CONTROL})
        pieces = self.context.stream(self.tenant, file.read, getattr(params, "as_of", None))
        return await ByteStream.begin(self.context, pieces, media_type=file.media_type, headers=file.headers)


def compressed(response: Response) -> Response:
    """Return the response with its body compressed if it is large enough; to be called in a thread."""
    body = bytes(response.body)
    if len(body) < SMALLEST_COMPRESSED or "content-encoding" in response.headers:
        return response
    smaller = gzip.compress(body, _LEVEL, mtime=0)
    headers = {**response.headers, "content-encoding": "gzip", "content-length": str(len(smaller))}
    return Response(smaller, status_code=response.status_code, headers=headers)


def check_posted(reader: TenantReader, window: InstantRange) -> None:
    """Check that the books have the months of a window.

    Raises:
        InvalidRequest: the window does not consist of whole months, or begins before the books.
    """
    if isinstance(reader, PostedReader):
        with before_the_books("start_date"):
            reader.books.regular(periods_of(window)[0])


@contextmanager
def before_the_books(parameter: str) -> Iterator[None]:
    """Convert the error about a month before the books to an invalid request."""
    try:
        yield
    except ValueError as error:
        raise InvalidRequest([InvalidParameter(parameter, str(error))]) from None


def category_versions(reader: TenantReader) -> dict[str, str]:
    """Return the header with the versions of the cost categories of a response; empty if there are none."""
    versions = ", ".join(reader.categories.index.versions())
    return {CATEGORIES_VERSION: versions} if versions else {}


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": CACHE_CONTROL, "Vary": "Accept, Accept-Encoding"}


R = TypeVar("R", bound=TenantRequest)


def _made(kind: type[R]) -> Any:
    """Return the dependency that creates a request of one class."""

    async def _make(request: Request, tenant: TenantDep) -> R:
        return kind(request, tenant)

    return Depends(_make)


Facts = Annotated[FactsRequest, _made(FactsRequest)]
Control = Annotated[ControlRequest, _made(ControlRequest)]
Entities = Annotated[EntitiesRequest, _made(EntitiesRequest)]
Versioned = Annotated[VersionRequest, _made(VersionRequest)]
Change = Annotated[ChangeRequest, _made(ChangeRequest)]
Calculation = Annotated[CalculationRequest, _made(CalculationRequest)]
Export = Annotated[FileRequest, _made(FileRequest)]


MEDIA_TYPES: Final[Mapping[ExportFormat, str]] = {
    "csv": CSV_TYPE,
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
}


def format_field() -> Any:
    """Return the field ``format`` of a request for a file."""
    return Field(
        default="csv",
        description="The format of the file: `csv`; `parquet`, with typed columns; `jsonl`, one JSON object per line.",
    )


def file_answer(example: str) -> dict[str, Any]:
    """Return the description of a response that is a file of rows, for the ``extra`` of a route; ``example`` is one of
    CSV."""
    described = csv_answer(
        "The rows by time and ids, in the requested format: CSV (RFC 4180, UTF-8), Parquet, or JSON lines (UTF-8).",
        example=example,
    )
    binary, text = {"type": "string", "format": "binary"}, {"type": "string"}
    described["content"] |= {MEDIA_TYPES["parquet"]: {"schema": binary}, MEDIA_TYPES["jsonl"]: {"schema": text}}
    return described


def rows_file(name: str, form: ExportFormat, read: Callable[[TenantReader], Iterator[memoryview]]) -> RowsFile:
    """Return a file that is sent while it is created; ``name`` is its name without the suffix."""
    return RowsFile(f"{name}.{form}", MEDIA_TYPES[form], read)
