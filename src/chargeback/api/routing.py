"""Routes of the API: FastAPI's, with the features that all our endpoints share.

A route is declared as in any FastAPI application: ``Annotated[Model, Query()]``, ``Annotated[Model, Body()]``,
``Depends`` and ``responses``. :class:`Endpoint` adds what FastAPI does not have:

- ``needs``, the right that a caller must have, and ``whole``, for responses about the whole bill;
- models are read by :mod:`~chargeback.api.parameters`, which reports all mistakes of a request together and reads the
  keyed filters (``tag:<key>``, ``category:<key>``, ``not.<filter>``);
- the model that a function returns is the response, and documents it; a function may return a response instead;
- a function that is not ``async`` is called in a thread of the tenant, see :mod:`~chargeback.api.tenant_requests`;
- ``files``: the response is also available as a CSV file, at the path with ``.csv`` appended or with
  ``Accept: text/csv``.

See decision 24 for the reasons.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from fastapi import APIRouter, Depends, params
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import compile_path

from chargeback.access.caller import Right
from chargeback.api.authorisation import Needs, RequiredAccess, authorise
from chargeback.api.documentation import COMMON_STATUSES, csv_content, described
from chargeback.api.parameters import StrictModel, body_reader, no_parameters, query_reader
from chargeback.api.responses import answered
from chargeback.api.tenant_requests import Caching, EntitiesRequest, FactsRequest, FileRequest, TenantRequest
from chargeback.reports.answers import ResponseModel

F = TypeVar("F", bound=Callable[..., Any])

#: What the paths of nearly all routes begin with.
PREFIX: Final = "/api/v1"

_TENANT: Final = "{tenant_name}"


@dataclass(frozen=True)
class CsvFile:
    """How a response is available as a CSV file. A file called ``rows`` is sent while it is created, without a call of
    the route's function; other files are created by the function, and have an ETag. ``headers`` describe further
    headers of the file."""

    rows: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)


#: A response whose function also creates the file.
CSV: Final = CsvFile()


class Endpoint(APIRoute):
    """A route that declares the right that it needs, and checks it before anything else of a request is read."""

    def __init__(  # noqa: PLR0913 - everything that an endpoint is
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        needs: Needs,
        whole: bool = False,
        files: CsvFile | None = None,
        caching: Caching,
        only: tuple[int, ...] = COMMON_STATUSES,
        problems: Mapping[int, str] | None = None,
        answer: str = "The answer.",
        responses: Mapping[int, Any] | None = None,
        **options: Any,
    ) -> None:
        self.required = RequiredAccess(needs, whole)
        self._caching = caching
        self._rows = None if files is None else files.rows
        read = {
            name: found
            for name, each in _signature(endpoint).parameters.items()
            if (found := _model_of(each)) is not None
        }
        self._query = next((name for name, (_, kind) in read.items() if isinstance(kind, params.Query)), None)
        self._body = next((name for name, (_, kind) in read.items() if isinstance(kind, params.Body)), None)
        documented = described(
            self.required,
            query=None if self._query is None else read[self._query][0],
            body=None if self._body is None else read[self._body][0],
            optional_body=self._body is not None and not read[self._body][1].is_required(),
            only=only,
            problems=problems,
            extra={**(responses or {}), **({} if files is None else _file_responses(responses or {}, files))},
            etag=options["methods"] == ["GET"] and _TENANT in path and not _is_streamed(endpoint),
        )
        text = inspect.cleandoc(endpoint.__doc__ or "")
        sentences = [self.required.sentence(), *([] if files is None else [_FILE_SENTENCE])]
        documented |= {"description": "\n\n".join([text, " ".join(sentences)]), "response_description": answer}
        documented["dependencies"] = [Depends(authorise), *(options["dependencies"] or ())]
        self.path, self.methods, self.responses = path, set(options["methods"]), documented["responses"]
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._complete = partial(super().__init__, path, self._called(endpoint), **(options | documented))

    def __getattr__(self, name: str) -> Any:
        """Complete the route when it is first used, which sets the attributes of FastAPI: to read the parameters and
        responses of all functions would take a tenth of the service's start."""
        with _COMPLETING:
            complete = self.__dict__.pop("_complete", None)
            if complete is not None:
                complete()
        return object.__getattribute__(self, name)

    def _called(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``endpoint`` as FastAPI calls it: its models are dependencies, and it runs in a thread."""
        signature = _signature(endpoint)
        parameters = [each.replace(annotation=self._dependency(each)) for each in signature.parameters.values()]
        parameters = [
            each.replace(default=inspect.Parameter.empty, kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters
        ]
        none = inspect.Parameter("_none", inspect.Parameter.KEYWORD_ONLY, default=no_parameters())
        if self._query is None and self._body is None:
            parameters.insert(0, none)
        kinds = {name: kind for name, each in signature.parameters.items() if (kind := _request_kind(each)) is not None}
        tenant = next(iter(kinds), None)
        if self._query is None and any(issubclass(kind, FactsRequest | EntitiesRequest) for kind in kinds.values()):
            raise TypeError(f"{endpoint.__name__} reads rows: it needs a query model, such as CommonParameters")

        async def answer(**given: Any) -> Any:
            given.pop(none.name, None)
            if tenant is None:
                return answered(await endpoint(**given), self.status_code)
            request: TenantRequest = given[tenant]
            sent: Any = given.get(self._query or self._body or "")
            if self._rows is not None and request.wants_csv:
                return await request.send_rows(sent, self._rows)
            if isinstance(request, FileRequest):
                return await request.send(endpoint(**given), sent)
            return await request.respond(lambda: answered(endpoint(**given), self.status_code), sent, self._caching)

        answer.__name__, answer.__doc__ = endpoint.__name__, endpoint.__doc__
        answer.__module__ = endpoint.__module__
        answer.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=Response
        )
        return answer

    def _dependency(self, parameter: inspect.Parameter) -> Any:
        """Return the annotation of a parameter with the dependency that reads it."""
        found = _model_of(parameter)
        if found is None:
            return parameter.annotation
        model, kind = found
        if isinstance(kind, params.Query):
            return query_reader(model)
        return body_reader(model, optional=not kind.is_required(), with_query=self._query is not None)


class Routes(APIRouter):
    """The routes of one part of the API, below ``root``; every route declares what it ``needs``.

    ``whole`` means that a response is about the whole bill; ``files`` that it is also available as a CSV file; ``keep``
    that responses are cached for the same request of any client. ``also`` returns further values that the response
    depends on, for its ETag; it is called in the thread of the request, with the request and its parameters. ``only``
    are the usual problems, ``problems`` adds or overrides their descriptions. All other arguments are FastAPI's.
    """

    def __init__(self, prefix: str = "", *, tags: list[str | Enum], root: str = PREFIX) -> None:
        super().__init__(prefix=f"{root}{prefix}", tags=tags)

    def _declare(
        self,
        method: str,
        path: str,
        *,
        needs: Needs,
        files: CsvFile | None = None,
        keep: bool = False,
        also: Callable[[Any, Any], object] | None = None,
        **options: Any,
    ) -> Callable[[F], F]:
        caching = Caching(keep, also)
        own = {name: options.pop(name) for name in _OWN & options.keys()} | {"caching": caching}

        def _declared(endpoint: F) -> F:
            self._add(path, endpoint, method, partial(Endpoint, needs=needs, files=files, **own), options)
            if files is not None:
                file = partial(Endpoint, needs=Right.EXPORT, files=files, **own)
                self._add(f"{path}.csv", endpoint, method, file, options | {"include_in_schema": False})
            return endpoint

        return _declared

    def _add(self, path: str, endpoint: Any, method: str, route: Any, options: dict[str, Any]) -> None:
        described = {"response_model": _answer_of(endpoint)} | options
        self.add_api_route(path, endpoint, methods=[method], route_class_override=route, **described)

    def get(self, path: str, *, needs: Needs, **declaration: Any) -> Callable[[F], F]:  # type: ignore[override]
        """Declare the route of a GET."""
        return self._declare("GET", path, needs=needs, **declaration)

    def post(self, path: str, *, needs: Needs, **declaration: Any) -> Callable[[F], F]:  # type: ignore[override]
        """Declare the route of a POST."""
        return self._declare("POST", path, needs=needs, **declaration)

    def put(self, path: str, *, needs: Needs, **declaration: Any) -> Callable[[F], F]:  # type: ignore[override]
        """Declare the route of a PUT."""
        return self._declare("PUT", path, needs=needs, **declaration)

    def patch(self, path: str, *, needs: Needs, **declaration: Any) -> Callable[[F], F]:  # type: ignore[override]
        """Declare the route of a PATCH."""
        return self._declare("PATCH", path, needs=needs, **declaration)

    def delete(self, path: str, *, needs: Needs, **declaration: Any) -> Callable[[F], F]:  # type: ignore[override]
        """Declare the route of a DELETE, whose response is 204 without a body."""
        return self._declare("DELETE", path, needs=needs, status_code=204, response_class=Response, **declaration)


#: Held by the thread that completes a route.
_COMPLETING: Final = threading.RLock()
_OWN: Final = frozenset({"whole", "only", "problems", "answer"})
_NAMED: Final = {
    "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name, of files."}
}
_FILE_SENTENCE: Final = (
    "With `.csv` appended to the path, or with `Accept: text/csv`, the response is a CSV file of everything that "
    "matches, without paging; this needs the right `export`."
)


def _file_responses(responses: Mapping[int, Any], files: CsvFile) -> dict[int, Any]:
    """Return the description of the response 200 that is JSON or a file."""
    success = responses.get(200, {})
    content = {**success.get("content", {}), **csv_content()}
    return {200: {**success, "content": content, "headers": {**success.get("headers", {}), **_NAMED, **files.headers}}}


@cache
def _signature(endpoint: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(endpoint, eval_str=True)


def _is_streamed(endpoint: Callable[..., Any]) -> bool:
    """Return whether the response is a file that is sent while it is created, so that its content is not known in
    advance."""
    kinds = [_request_kind(each) for each in _signature(endpoint).parameters.values()]
    return any(kind is not None and issubclass(kind, FileRequest) for kind in kinds)


def _answer_of(endpoint: Callable[..., Any]) -> type[ResponseModel] | None:
    """Return the model that a function returns; it may return a response instead, such as a file."""
    returned = _signature(endpoint).return_annotation
    kinds = get_args(returned) if get_origin(returned) in {UnionType, Union} else (returned,)
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, ResponseModel)), None)


def _model_of(parameter: inspect.Parameter) -> tuple[type[StrictModel], params.Query | params.Body] | None:
    """Return the model of a parameter ``Annotated[Model, Query()]`` or ``Annotated[Model, Body()]``, and which of these
    it is. A body with a ``default_factory`` may be absent."""
    model, *metadata = get_args(parameter.annotation) or (None,)
    for each in metadata:
        if isinstance(each, params.Query | params.Body) and isinstance(model, type) and issubclass(model, StrictModel):
            return model, each
    return None


def _request_kind(parameter: inspect.Parameter) -> type[TenantRequest] | None:
    """Return the class of the request about a tenant, if a parameter is one."""
    kind = get_args(parameter.annotation)[0] if get_origin(parameter.annotation) else parameter.annotation
    return kind if isinstance(kind, type) and issubclass(kind, TenantRequest) else None
