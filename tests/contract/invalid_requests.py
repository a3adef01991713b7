"""Random paths, parameters, bodies and headers that no normal client sends, written to a socket.

``python -m tests.contract.invalid_requests http://127.0.0.1:8080 10000`` sends some to a running service and counts the
responses.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import sys
from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote, quote_from_bytes, urlsplit

from tests.contract.endpoints import BY_NAME, COMMON, ENDPOINTS, Endpoint

_BUSY_SECONDS = 60

_TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "null",
    "undefined",
    "NaN",
    "-1",
    "0",
    "1",
    "1e309",
    "9" * 30,
    "-" + "9" * 5000,
    "0x10",
    "1.5",
    "true",
    "٣",
    "nobody",
    "UNALLOCATED",
    "UNTAGGED",
    "identity_id",
    "tag:team",
    "tag:" + "k" * 64,
    "amount",
    "month",
    "usage",
    "active",
    "asc",
    "bytes_ratio",
    "2026-01-01",
    "2026-02-30",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "-0001-01-01",
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
    "2026-W01-1",
    "Europe/Berlin",
    "Europe/Berlin\x00",
    "../../../etc/passwd",
    "/etc/passwd",
    "UTC/..",
    "' OR '1'='1",
    "'; DROP TABLE tags; --",
    '"',
    "\\",
    "%s%n%x",
    "{}",
    "${jndi:x}",
    "$files",
    "=1+1",
    "\ud83d\ude42".encode("utf-16", "surrogatepass").decode("utf-16"),
    "ﷺ" * 40,
    "\u202e\u0000\uffff\U0010ffff",
    "é" * 300,
    "x" * 255,
    "x" * 256,
    "x" * 9000,
)
_RAW = (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x80" * 20, bytes(range(1, 32)))
_TYPES = (
    *["application/json"] * 20,
    "text/plain",
    "application/json; charset=utf-16",
    "multipart/form-data",
    "x",
    "",
    "application/x-www-form-urlencoded",
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
_BODY_FIELDS = sorted(
    set().union(*(endpoint.body for endpoint in ENDPOINTS)) | {"entity_type", "entity_id", "identity_id"}
)


@dataclass(frozen=True)
class Request:
    """A request as it is sent."""

    method: str
    target: bytes
    content_type: str
    body: bytes

    @property
    def wire(self) -> bytes:
        """Return all of its bytes."""
        head = f"{self.method} ".encode() + self.target + b" HTTP/1.1\r\nHost: localhost\r\n"
        if self.content_type:
            head += f"Content-Type: {self.content_type}\r\n".encode()
        return head + f"Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body


class Rubbish:
    """A source of random requests; the same seed gives the same requests."""

    def __init__(self, seed: int, tenant: str) -> None:
        self._random = random.Random(seed)
        self._tenant = tenant

    def request(self) -> Request:
        """Return the next request. Most are nearly valid, because clearly invalid ones are refused early."""
        endpoint = self._random.choice(ENDPOINTS)
        while endpoint == BY_NAME["POST /api/v1/tenants/{tenant_name}/pipeline/run"]:
            endpoint = self._random.choice(ENDPOINTS)  # a real run would keep the machine busy
        method = endpoint.method if self._chance(0.93) else self._random.choice(_METHODS)
        target = self._path(endpoint)
        if self._chance(0.75 if endpoint.method == "GET" else 0.1):
            target += b"?" + b"&".join(self._parameter(endpoint) for _ in range(self._random.choice((1, 1, 2, 3, 8))))
        body = self._body(endpoint) if endpoint.body or self._chance(0.05) else b""
        return Request(method, target, self._random.choice(_TYPES), body)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _path(self, endpoint: Endpoint) -> bytes:
        tenant = self._tenant if self._chance(0.8) else self._text()
        kind = self._random.choice(("resource", "identity")) if self._chance(0.8) else self._text()
        parts = {"entity_type": kind, "entity_id": self._text(), "tag_key": self._word(), "dimension_id": self._word()}
        encoded = {name: quote(value, safe=self._random.choice(("", "/", "/:%"))) for name, value in parts.items()}
        path = endpoint.of(quote(tenant, safe=""), **encoded).encode()
        if self._chance(0.08):
            at = self._random.randrange(len(path))
            path = path[:at] + self._noise() + path[at:]
        return path[:8000]

    def _parameter(self, endpoint: Endpoint) -> bytes:
        names = sorted(endpoint.query | COMMON)
        name = self._random.choice(names) if self._chance(0.9) else self._text()
        if self._chance(0.1):
            return quote(name, safe="").encode() + b"=" + self._noise()
        return f"{quote(name, safe='')}={quote(self._text(), safe='')}"[:8000].encode()

    def _noise(self) -> bytes:
        """Return bytes that are not UTF-8, percent-encoded or raw."""
        raw = self._random.choice(_RAW)
        return (
            quote_from_bytes(raw, safe="").encode()
            if self._chance(0.7)
            else b"%" + raw.replace(b"\n", b"").replace(b"\r", b"")
        )

    def _word(self) -> str:
        return self._random.choice(("team", "1", "4503599627370496")) if self._chance(0.6) else self._text()

    def _text(self) -> str:
        if self._chance(0.85):
            return self._random.choice(_TEXTS)
        return "".join(
            chr(self._random.choice((self._random.randrange(128), self._random.randrange(0xD800)))) for _ in range(8)
        )

    def _body(self, endpoint: Endpoint) -> bytes:
        if self._chance(0.1):
            return self._random.choice(
                (b"", b"{", b"[" * 5000, b"\xff\xfe", b'{"a": "\\ud800"}', b"1" * 9000, b"NaN", *_RAW)
            )
        names = sorted(endpoint.body) or _BODY_FIELDS
        value = {self._random.choice(names if self._chance(0.9) else _BODY_FIELDS): self._value(2) for _ in range(4)}
        return json.dumps(value, ensure_ascii=self._chance(0.5)).encode("utf-8", "surrogatepass")

    def _value(self, depth: int) -> object:
        kind = self._random.randrange(8 if depth else 6)
        if kind < 3:
            return self._text()
        if kind == 3:
            return self._random.choice((0, 1, -1, 2**63, 10**400, 1.5, 1e308))
        if kind < 6:
            return self._random.choice((None, True, False))
        if kind == 6:
            return [self._value(depth - 1) for _ in range(self._random.randrange(3))]
        return {self._random.choice(_BODY_FIELDS): self._value(depth - 1) for _ in range(self._random.randrange(5))}


class Wire:
    """A connection that is reused until the server closes it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._place = (parts.hostname or "", parts.port or 80)
        self._socket: socket.socket | None = None

    def send(self, request: Request) -> tuple[int, bytes]:
        """Send a request and return status and body of the response."""
        if self._socket is None:
            self._socket = socket.create_connection(self._place, timeout=_BUSY_SECONDS)
        self._socket.sendall(request.wire)
        response = http.client.HTTPResponse(self._socket, method=request.method)
        try:
            response.begin()
            body = response.read()
        except (http.client.HTTPException, ConnectionError):
            self.close()
            raise
        if response.will_close:
            self.close()
        return response.status, body

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def throw(address: str, seed: int, count: int, tenant: str = "acme") -> tuple[Counter[int], list[str]]:
    """Send random requests; return the count of each status, and every request that failed because of the server."""
    statuses: Counter[int] = Counter()
    failures = []
    source, wire = Rubbish(seed, tenant), Wire(address)
    for _ in range(count):
        request = source.request()
        try:
            status, body = wire.send(request)
        except (http.client.HTTPException, ConnectionError) as error:
            status, body = 599, repr(error).encode()
        statuses[status] += 1
        if status >= 500 and status != 504:
            failures.append(f"{status} {request.wire[:600]!r} -> {body[:300]!r}")
    wire.close()
    return statuses, failures


def main() -> int:
    """Send random requests to a running service."""
    address, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    statuses, failures = throw(address, seed, count)
    lines = [f"seed {seed}: {dict(sorted(statuses.items()))}", *failures]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
