"""Error responses: `application/problem+json` (RFC 9457).

Errors of the API have a status; errors of the store and the pipeline are mapped to one here. The response to an
unexpected error contains an id; the log has the details under the same id.
"""

from __future__ import annotations

import http
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from chargeback.api.rewriting import prefix_of
from chargeback.errors import (
    ChargebackError,
    DamagedFacts,
    EngineBusy,
    ForeignStorage,
    HistoryGone,
    LeaseHeld,
    NoRunner,
    PdfUnavailable,
    PeriodBlocked,
    PeriodRefused,
    PlanRefused,
    PlanStale,
    PoliciesChanged,
    PreviewStale,
    QueryTimeout,
    ReachesIntoClosed,
    SchemaError,
    StorageError,
    SumTooLarge,
    TagConflict,
    TemplateFailed,
    TenantSuspended,
    UnknownCategory,
)

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

#: When to retry if no slot is free for a run.
BUSY_RETRY_SECONDS = 30
#: The number of days that an error about deleted history lists.
_MOST_FORGOTTEN = 100
#: The number of amounts that an error about closed months lists.
_MOST_MOVED = 100


@dataclass(frozen=True)
class InvalidParameter:
    """One invalid part of a request: its name and what to change."""

    parameter: str
    message: str


class ApiError(ChargebackError):
    """A request that cannot be served, with the ``status`` and ``kind`` of the response."""

    status = 500
    kind = "internal-error"


class InvalidRequest(ApiError):
    """The request is invalid; ``errors`` lists all mistakes."""

    status = 400
    kind = "invalid-request"

    def __init__(self, errors: Sequence[InvalidParameter]) -> None:
        super().__init__("; ".join(f"{error.parameter}: {error.message}" for error in errors))
        self.errors = tuple(errors)


class Unauthenticated(ApiError):
    """The request is not authenticated."""

    status = 401
    kind = "unauthenticated"


class Forbidden(ApiError):
    """The caller may not do this."""

    status = 403
    kind = "forbidden"


class NotFound(ApiError):
    """The object in the path does not exist."""

    status = 404
    kind = "not-found"


class Conflict(ApiError):
    """The request conflicts with the current state."""

    status = 409
    kind = "conflict"


class PreconditionFailed(ApiError):
    """The client has not seen the present version."""

    status = 412
    kind = "precondition-failed"


class PreconditionRequired(ApiError):
    """The request must name the version that it replaces."""

    status = 428
    kind = "precondition-required"


_TITLES = {
    "invalid-request": "Invalid request",
    "unauthenticated": "No identity",
    "forbidden": "Not allowed",
    "not-found": "Not found",
    "conflict": "Conflict",
    "precondition-failed": "Someone else was faster",
    "precondition-required": "If-Match is needed",
    "already-running": "Already running",
    "suspended": "Tenant suspended",
    "no-runner": "No runner",
    "policies-changed": "Policies were changed that have calculated days",
    "plan-refused": "The plan cannot be applied",
    "plan-stale": "What the plan was made of has changed",
    "busy": "Too many runs under way",
    "foreign-origin": "Foreign origin",
    "unknown-host": "Unknown host",
    "body-too-large": "Body too large",
    "headers-too-large": "Headers too large",
    "keys-unavailable": "Keys unavailable",
    "storage-unavailable": "Storage unavailable",
    "damaged-facts": "Damaged facts",
    "sum-too-large": "Sum too large",
    "timeout": "Request timed out",
    "history-gone": "No longer kept",
    "period-blocked": "The month cannot be closed",
    "preview-stale": "The month has changed",
    "reaches-into-closed": "Closed months would change",
    "topic-attribution-unavailable": "Topic attribution unavailable",
    "pdf-unavailable": "PDF files are not installed",
    "template-failed": "The template failed",
    "internal-error": "Internal error",
}


#: Errors whose own message is returned: the status and the kind of the response.
_REFUSALS = {
    LeaseHeld: (409, "already-running"),
    TenantSuspended: (409, "suspended"),
    NoRunner: (400, "no-runner"),
    PoliciesChanged: (409, "policies-changed"),
    SumTooLarge: (409, "sum-too-large"),
    TagConflict: (409, "conflict"),
    UnknownCategory: (404, "not-found"),
    PdfUnavailable: (501, "pdf-unavailable"),
    TemplateFailed: (400, "template-failed"),
}


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    errors: Sequence[InvalidParameter] = (),
    headers: dict[str, str] | None = None,
    **more: Any,
) -> Response:
    """Return the response to a failed request; ``more`` are further members of its body."""
    body: dict[str, Any] = {
        "type": f"urn:chargeback:{kind}",
        "title": _TITLES.get(kind) or http.HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
    }
    if errors:
        body["errors"] = [{"parameter": error.parameter, "message": error.message} for error in errors]
    return Response(to_json(body), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def timed_out(seconds: float) -> Response:
    """Return the response to a request that took too long."""
    return problem(504, "timeout", f"The request ran longer than {seconds:g} s; query fewer days, or add filters.")


def too_large(limit: int) -> Response:
    """Return the response to a body beyond the limit."""
    return problem(413, "body-too-large", f"The body is larger than {limit} bytes; send it in several requests.")


def headers_too_large(limit: int) -> Response:
    """Return the response to a first line and headers beyond the limit."""
    return problem(
        431,
        "headers-too-large",
        f"The first line and the headers of the request are larger than {limit} bytes; use fewer filters, or delete "
        "the cookies of this site.",
    )


def unknown_host(host: str) -> Response:
    """Return the response to a request for an unknown host name."""
    return problem(
        421,
        "unknown-host",
        f"This service does not accept requests for the host {host!r}. If this is its name, add it to "
        "api.allowed_hosts in the configuration.",
    )


def foreign_origin(origin: str | None) -> Response:
    """Return the response to a change sent by a web page of another origin."""
    page = "another site" if origin is None else f"the origin {origin[:200]!r}"
    return problem(
        403,
        "foreign-origin",
        f"A web page of {page} is not allowed to make changes. Allowed origins are listed in api.cors_origins, with "
        "api.enable_cors; a proxy in front should pass on the Host header that the browser sent.",
    )


def unexpected_error(error: Exception) -> Response:
    """Return the response to an unexpected error; the details are in the log under the id in the response."""
    number = _log_error("a request failed", error)
    return problem(500, "internal-error", f"Unexpected error; the log has the details under {number}.")


def add_handlers(app: FastAPI) -> None:
    """Register the handlers that turn errors into problem responses."""

    async def _on_chargeback_error(_request: Request, error: Exception) -> Response:
        return error_response(error)

    async def _on_http_error(request: Request, error: Exception) -> Response:
        return _http(request, error)

    async def _on_path_error(request: Request, _error: Exception) -> Response:
        # The framework validates only path parameters: we parse queries and bodies ourselves.
        return problem(
            404, "not-found", f"Nothing found at {_path_of(request)[:300]}: a part of the path is malformed."
        )

    app.add_exception_handler(ChargebackError, _on_chargeback_error)
    app.add_exception_handler(RequestValidationError, _on_path_error)
    app.add_exception_handler(HTTPException, _on_http_error)


def error_response(error: Exception) -> Response:
    """Return the response that an error maps to."""
    match error:
        case InvalidRequest():
            return problem(error.status, error.kind, error.message, errors=error.errors)
        case Unauthenticated():
            return problem(error.status, error.kind, error.message, headers={"WWW-Authenticate": "Bearer"})
        case ApiError():
            return problem(error.status, error.kind, error.message)
        case _ if type(error) in _REFUSALS and isinstance(error, ChargebackError):
            status, kind = _REFUSALS[type(error)]
            return problem(status, kind, error.message)
        case EngineBusy():
            return problem(503, "busy", error.message, headers={"Retry-After": str(BUSY_RETRY_SECONDS)})
        case QueryTimeout():
            return problem(504, "timeout", "The request was cancelled because it ran too long; query fewer days.")
        case PeriodRefused() | PlanRefused():
            return _stale_or_refused(error)
        case HistoryGone():
            return _history_gone(error)
        case DamagedFacts():
            number = _log_error("a fact file is lost", error)
            return problem(503, "damaged-facts", _damage_response(error, number))
        case SchemaError() if not isinstance(error, ForeignStorage):  # the owner of a storage is not disclosed
            return problem(503, "storage-unavailable", f"The storage of the tenant cannot be used: {error.message}.")
        case StorageError():
            number = _log_error("the storage of a tenant cannot be used", error)
            return problem(
                503,
                "storage-unavailable",
                f"The storage of the tenant is currently unavailable; the log has the reason under {number}.",
            )
        case _:
            return unexpected_error(error)


def _stale_or_refused(error: PeriodRefused | PlanRefused) -> Response:
    """Return the response to a change of a month or of data of a closed month that is refused, or whose preview is
    outdated."""
    more: dict[str, Any] = {}
    kind = "conflict"
    match error:
        case PeriodBlocked():
            kind, more = "period-blocked", {"blockers": error.blockers}
        case PreviewStale():
            kind, more = "preview-stale", {"digest": error.digest, **_moved(error.moved, error.currency)}
        case PlanStale():
            kind = "plan-stale"
            more = {"days": error.days[:_MOST_MOVED], "days_count": len(error.days)}
        case PlanRefused():
            kind = "plan-refused"
        case ReachesIntoClosed():
            kind = "reaches-into-closed"
            more = {**_moved(error.moved, error.currency), "begins": error.begins.isoformat()}
    return problem(409, kind, sentence(error.message), **more)


def _moved(moved: Sequence[object], currency: str) -> dict[str, Any]:
    return {"moved": moved[:_MOST_MOVED], "moved_count": len(moved), "currency": currency}


def sentence(text: str) -> str:
    """Return the message of an error as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def _history_gone(error: HistoryGone) -> Response:
    """Return the response to a query of past rows of which only totals are kept."""
    known = sorted(error.known, key=lambda each: each.day)
    named = str(known[0].day) if len(known) == 1 else f"{len(known)} days from {known[0].day} on"
    detail = (
        f"The rows that {named} had at that time are no longer kept (history_days); `revisions` has their totals. "
        "Other days, and the present rows, can be queried."
    )
    revisions = [
        {"date": each.day, "revision": each.revision, "rows": each.rows, "total": each.total}
        for each in known[:_MOST_FORGOTTEN]
    ]
    return problem(410, "history-gone", detail, revisions=revisions)


def _damage_response(error: DamagedFacts, number: str) -> str:
    where = "the table of dimensions" if error.day is None else f"the {error.table} of {error.day} (UTC)"
    rest = "" if error.day is None else "; other days can be queried"
    return (
        f"A file of {where} is missing or damaged{rest}. "
        f"The next run restores it if possible; the log has the details under {number}."
    )


def _http(request: Request, error: Exception) -> Response:
    """Return the response to an error of the framework: an unknown path or method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == 404:
        docs = f"{prefix_of(request.scope)}/docs"
        return problem(404, "not-found", f"Nothing found at {_path_of(request)}; {docs} lists the endpoints.")
    if status == 405:
        allowed = ", ".join(_methods_of(request)) or headers.get("Allow", "")
        detail = f"{request.method} is not allowed at {_path_of(request)}; allowed: {allowed}."
        return problem(405, "method-not-allowed", detail, headers={"Allow": allowed})
    return problem(status, "http-error", http.HTTPStatus(status).phrase, headers=headers)


def _path_of(request: Request) -> str:
    """Return the path as the client knows it."""
    return prefix_of(request.scope) + request.url.path


def _methods_of(request: Request) -> list[str]:
    """Return all methods of the requested path; the framework lists only those of the first matching route."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, APIRoute) and route.path_regex.fullmatch(request.url.path):
            methods |= route.methods or set()
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def _log_error(what: str, error: Exception) -> str:
    number = uuid.uuid4().hex[:12]
    log.error("%s (%s)", what, number, exc_info=error)
    return number


class InvalidPart(BaseModel):
    """One thing wrong with a request."""

    parameter: str = Field(description="The query parameter, or the path in the body.", examples=["page_size"])
    message: str = Field(description="What to change.", examples=["Input should be less than or equal to 1000"])


class Problem(BaseModel):
    """A problem (RFC 9457), as `application/problem+json`."""

    type: str = Field(
        description="A stable identifier of the problem type.", examples=["urn:chargeback:invalid-request"]
    )
    title: str = Field(description="The problem type as text.", examples=["Invalid request"])
    status: int = Field(description="The HTTP status.", examples=[400])
    detail: str = Field(
        description="One sentence that explains the problem and how to solve it.",
        examples=["page_size: should be at most 1000"],
    )
    errors: list[InvalidPart] | None = Field(
        default=None, description="All mistakes in an invalid request; absent for other problems."
    )
