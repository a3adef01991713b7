"""The ASGI application of the demo organisation. It checks faults, then credentials, then rate limits, then the
request."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from chargeback.demo.changes import OrganisationChanges
from chargeback.demo.control_plane import ApiRequest, DemoControlPlane, DemoEndpoint
from chargeback.demo.faults import CredentialLimiter, Fault, Faults, PagingFault
from chargeback.demo.metrics import METRICS
from chargeback.demo.prometheus import Evaluator, check_resolution, parse_step, parse_time
from chargeback.demo.responses import Family, Refusal, Response, dumps, invalid, refusal_response
from chargeback.errors import SourceRejected

PROMETHEUS = "/prometheus"
TRANSPORT = "chargeback.demo.transport"
_PAGING_FAULTS: dict[str, PagingFault] = {"endless_paging": "endless", "duplicated_page": "duplicate"}
_PROXY_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
_DRIP_BYTES = 256
#: How long the metrics of the late day are incomplete, from the first query of them on.
_LATE_SECONDS = 120


@dataclass(frozen=True)
class ServerOptions:
    """How the provider behaves.

    Attributes:
        rate_burst: how many requests a credential may send at once before it is limited.
        rate_per_second: how many requests per second it may send after that.
        legacy_shapes: return costs in shapes that occur in practice although the published schema does not allow them.
        null_when_empty: return empty lists as ``"data": null``.
        largest_page: the maximum number of entries in a page of a list.
        latency: seconds before every response, for drills and benchmarks.
        metrics_retention_days: metrics of older days are deleted; None keeps all.
        late_day: for some minutes, queries of this UTC day's metrics return a part of them, and say so.
        prometheus_max_samples: the query endpoint's limit, as ``--query.max-samples``.
        prometheus_basic: user and password that the query endpoint requires.
        prometheus_bearer: token that the query endpoint requires.
    """

    rate_burst: int = 100_000
    rate_per_second: float = 50_000
    legacy_shapes: bool = False
    null_when_empty: bool = False
    largest_page: int | None = None
    latency: float = 0
    metrics_retention_days: int | None = None
    late_day: date | None = None
    prometheus_max_samples: int = 50_000_000
    prometheus_basic: tuple[str, str] | None = None
    prometheus_bearer: str | None = None


class DemoApp:
    """Serves one organisation. ``credentials`` maps a key to its secret for each audience: ``control``, or the id of
    a Flink region."""

    def __init__(
        self,
        changes: OrganisationChanges,
        base: str,
        credentials: dict[str, tuple[str, str]],
        options: ServerOptions,
    ) -> None:
        self.plane = DemoControlPlane(
            changes, base, null_when_empty=options.null_when_empty, largest_page=options.largest_page
        )
        self.changes = changes
        self.faults = Faults()
        self.requests: Counter[str] = Counter()
        self.log: deque[tuple[str, str]] = deque(maxlen=20_000)
        self.stopping = threading.Event()
        self._credentials = credentials
        self._options = options
        self._limiter = CredentialLimiter(options.rate_burst, options.rate_per_second)
        self._late_since: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        path = request.url.path
        self.requests[path] += 1
        self.log.append((path, request.url.query or (await request.body()).decode()))
        fault = self.faults.take(path)
        await self._sleep(self._options.latency + (fault.delay if fault and fault.kind != "slow_drip" else 0))
        if fault is not None and fault.kind == "reset":
            _reset(scope)
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        answer = await self._answer(request, path, fault)
        answer.headers.setdefault("X-Request-Id", secrets.token_hex(16))
        await self._send(answer, send, fault)

    async def _answer(self, request: Request, path: str, fault: Fault | None) -> Response:
        """Return the real response, or the one changed by the fault."""
        if fault is not None and (planned := _planned(fault, path)) is not None:
            return planned
        if path.startswith(PROMETHEUS):
            answer = await self._metrics(request, path.removeprefix(PROMETHEUS))
        else:
            answer = self._provider(request, path, fault)
        if fault is not None and fault.kind == "truncated":
            answer.body = answer.body[: len(answer.body) // 2]
        return answer

    def _provider(self, request: Request, path: str, fault: Fault | None) -> Response:
        found = self.plane.find(path)
        family: Family = found[0].family if found else "control"
        limits: dict[str, str] = {}
        try:
            answer = self._provided(request, found, fault, limits)
        except Refusal as refusal:
            answer = refusal_response(refusal, family)
            if refusal.status == 401:
                answer.headers["WWW-Authenticate"] = 'Basic error="invalid_key"'
        answer.headers.update(_limit_headers(limits, family))
        return answer

    def _provided(
        self,
        request: Request,
        found: tuple[DemoEndpoint, tuple[str, ...]] | None,
        fault: Fault | None,
        limits: dict[str, str],
    ) -> Response:
        """Return the provider's response; add the headers about rate limits to ``limits``.

        Raises:
            Refusal: the request is refused.
        """
        path = request.url.path
        if found is None:
            raise Refusal(404, "not_found", "Not Found", f"{path} not found")
        endpoint, parts = found
        credential = self._authenticated(request.headers, parts[0] if endpoint.family == "flink" else "control")
        passes, headers = self._limiter.take(credential)
        limits.update(headers)
        if not passes:
            raise Refusal(429, "rate_limit_exceeded", "Too Many Requests", "Rate limit exceeded, retry later")
        if request.method != "GET":
            raise Refusal(405, "method_not_allowed", "Method Not Allowed", f"{request.method} is not served")
        raw = tuple(request.query_params.multi_items())
        for name, _ in raw:
            if name not in endpoint.parameters:
                raise invalid(name, f"{path} can't be filtered by '{name}'")
        paging = _PAGING_FAULTS.get(fault.kind) if fault is not None else None
        return endpoint.answer(self.plane, ApiRequest(path, parts, dict(raw), raw, paging))

    def _authenticated(self, headers: Headers, audience: str) -> str:
        """Return the key of a request.

        Raises:
            Refusal: 401, for missing or wrong credentials. A Cloud key is not valid for a Flink gateway.
        """
        params = _basic(headers)
        if params is not None and self._credentials.get(audience) == params:
            return params[0]
        detail = "Valid authentication credentials must be provided"
        raise Refusal(401, "user_unauthenticated", "Authentication Required", detail)

    async def _metrics(self, request: Request, path: str) -> Response:
        """Respond like Prometheus: with its own error shape and its own credentials."""
        if not self._may_query(request.headers):
            return Response(401, b"Unauthorized\n", {"WWW-Authenticate": "Basic"}, "text/plain; charset=utf-8")
        if path in ("/-/ready", "/-/healthy"):
            word = "Ready" if path.endswith("ready") else "Healthy"
            return Response(200, f"Prometheus Server is {word}.\n".encode(), media_type="text/plain; charset=utf-8")
        try:
            params = await _parameters(request)
            data = self._metrics_data(path, params)
        except SourceRejected as refusal:
            status = refusal.status or 400
            kind = {422: "execution", 404: "not_found"}.get(status, "bad_data")
            body = {"status": "error", "errorType": kind, "error": refusal.message}
            return Response(status, dumps(body).encode())
        answer: dict[str, Any] = {"status": "success", "data": data}
        if self._is_late(params):
            answer["warnings"] = ["a store with the newest samples did not respond yet"]
        return Response(200, dumps(answer).encode())

    def _is_late(self, params: dict[str, str]) -> bool:
        """Return whether a query is about the day whose metrics come late, and they have not come yet."""
        day = self._options.late_day
        moment = params.get("time") or params.get("end")
        if day is None or moment is None:
            return False
        end = datetime.fromtimestamp(parse_time("time", moment) / 1000, UTC)
        if not timedelta(0) < end - datetime.combine(day, clock_time(), UTC) <= timedelta(days=1):
            return False
        self._late_since = self._late_since or time.monotonic()
        return time.monotonic() - self._late_since < _LATE_SECONDS

    def _may_query(self, headers: Headers) -> bool:
        options = self._options
        if options.prometheus_bearer is not None:
            return headers.get("authorization") == f"Bearer {options.prometheus_bearer}"
        return options.prometheus_basic is None or _basic(headers) == options.prometheus_basic

    def _metrics_data(self, path: str, params: dict[str, str]) -> Any:
        if path == "/api/v1/status/buildinfo":
            return {"version": "3.14.0", "revision": "demo", "branch": "demo", "goVersion": "", "buildUser": ""}
        if path == "/api/v1/labels":
            names = ("__name__", "compute_pool_id", "flink_statement_name", "kafka_id", "principal_id", "topic", "type")
            return list(names)
        if path == "/api/v1/label/__name__/values":
            return sorted(METRICS)
        if path not in ("/api/v1/query", "/api/v1/query_range"):
            raise SourceRejected(f"{path} not found", status=404)
        evaluator = Evaluator(self.plane.organisation, self._oldest(), self._options.prometheus_max_samples)
        query = params.get("query", "")
        if path == "/api/v1/query":
            moment = parse_time("time", params["time"]) if "time" in params else time.time_ns() // 1_000_000
            return evaluator.instant(query, moment)
        start, end = (parse_time(name, params.get(name, "")) for name in ("start", "end"))
        step = parse_step(params.get("step", ""))
        check_resolution(start, end, step)
        return evaluator.range(query, start, end, step)

    def _oldest(self) -> date | None:
        days = self._options.metrics_retention_days
        return None if days is None else self.plane.organisation.spec.today - timedelta(days=days)

    async def _send(self, answer: Response, send: Send, fault: Fault | None) -> None:
        headers: dict[str, str] = {
            "content-type": answer.media_type,
            "content-length": str(len(answer.body)),
            **answer.headers,
        }
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        if fault is not None and fault.kind == "slow_drip":
            for piece in _pieces(answer.body):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await self._sleep(fault.delay)
                if self.stopping.is_set():
                    break
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.body", "body": answer.body})

    async def _sleep(self, seconds: float) -> None:
        """Wait; return early when the server must stop."""
        until = time.monotonic() + seconds
        while seconds > 0 and not self.stopping.is_set() and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.05))


def _planned(fault: Fault, path: str) -> Response | None:
    """Return the response that a fault sends in place of the real one."""
    if fault.kind == "html":
        page = _PROXY_PAGE if fault.body is None else fault.body.encode()
        return Response(fault.status or 502, page, media_type="text/html")
    if fault.kind != "answer" or fault.status is None:
        return None
    if fault.body is not None:
        answer = Response(fault.status, fault.body.encode())
    elif path.startswith(PROMETHEUS):
        body = {"status": "error", "errorType": "internal", "error": "a fault was laid here"}
        answer = Response(fault.status, dumps(body).encode())
    else:
        family: Family = "connect" if path.startswith("/connect/") else "control"
        refusal = Refusal(fault.status, "laid_fault", "Laid Fault", "a fault was laid here")
        answer = refusal_response(refusal, family)
    if fault.retry_after is not None:
        answer.headers["Retry-After"] = f"{fault.retry_after:g}"
    return answer


def _limit_headers(limits: dict[str, str], family: Family) -> dict[str, str]:
    """Return the headers of a family: connect/v1 documents only ``Retry-After``, the Flink gateway none of them."""
    if family == "control":
        return limits
    return {name: value for name, value in limits.items() if family == "connect" and name == "Retry-After"}


def _basic(headers: Headers) -> tuple[str, str] | None:
    scheme, _, encoded = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (user, password) if colon else None


async def _parameters(request: Request) -> dict[str, str]:
    """Return the parameters of the query string, and of the form of a POST."""
    params = dict(request.query_params)
    if request.method == "POST":
        params |= dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
    return params


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[at : at + _DRIP_BYTES] for at in range(0, len(body), _DRIP_BYTES))


def _reset(scope: Scope) -> None:
    """End the connection with a TCP reset: SO_LINGER with a timeout of zero."""
    transport = scope[TRANSPORT]
    found = transport.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
