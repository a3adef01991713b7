"""Responses and errors in the provider's shapes, and paging. Amounts in their JSON are exact decimals, never floats."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import urlencode

from chargeback.demo.faults import PagingFault
from chargeback.demo.randomness import token
from chargeback.errors import SourceRejected

#: Below this, Go's encoder (the provider's) writes doubles with an exponent.
_SMALL = Decimal("0.000001")

Family = Literal["control", "connect", "flink"]


def dumps(value: Any) -> str:
    """Return ``value`` as JSON text; :class:`~decimal.Decimal` as a JSON number with its own digits.

    >>> dumps({"price": Decimal("0.0500"), "tiny": Decimal("1.3E-8"), "amount": None})
    '{"price":0.05,"tiny":1.3e-8,"amount":null}'

    Raises:
        TypeError: for a float, which could not be written exactly.
    """
    if isinstance(value, str) or value is None or isinstance(value, (bool, int)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Decimal):
        return number(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dumps, value)) + "]"
    raise TypeError(f"{type(value).__name__} cannot be written exactly as JSON")


def loads(text: str | bytes) -> Any:
    """Parse JSON text; numbers with a fraction or an exponent become :class:`~decimal.Decimal`."""
    return json.loads(text, parse_float=Decimal)


def number(value: Decimal) -> str:
    """Return a finite decimal as a JSON number, without trailing zeros."""
    if value == 0:
        return "0"
    if abs(value) < _SMALL:
        digits, _, exponent = f"{value.normalize():e}".partition("e")
        return f"{digits}e{int(exponent)}"
    plain = f"{value:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


@dataclass
class Response:
    """An HTTP response of the demo server."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


class Refusal(SourceRejected):
    """A request that the provider refuses; ``parameter`` names the invalid query parameter, if there is one."""

    def __init__(self, status: int, code: str, title: str, detail: str, parameter: str | None = None) -> None:
        super().__init__(detail, status=status, source="demo")
        self.code = code
        self.title = title
        self.parameter = parameter


def invalid(parameter: str, detail: str) -> Refusal:
    """Return a 400 that names a query parameter."""
    return Refusal(400, "invalid_filter", "Invalid Filter", detail, parameter)


def refusal_response(refusal: Refusal, family: Family) -> Response:
    """Return ``refusal`` in the error shape of its family: connect/v1 has its own."""
    status = refusal.status or 500
    if family == "connect":
        return Response(status, dumps({"error": {"code": status, "message": refusal.message}}).encode())
    error: dict[str, object] = {
        "id": secrets.token_hex(16),
        "status": str(status),
        "code": refusal.code,
        "title": refusal.title,
        "detail": refusal.message,
    }
    if refusal.parameter is not None:
        error["source"] = {"parameter": refusal.parameter}
    return Response(status, dumps({"errors": [error]}).encode())


@dataclass(frozen=True)
class ListKind:
    """The format of a list endpoint. ``last_next`` is the value for "no next page": absent, "" or null."""

    api_version: str
    kind: str
    default_size: int = 10
    max_size: int = 100
    last_next: Literal["absent", "empty", "null"] = "absent"


@dataclass(frozen=True)
class Listing:
    """A list to be paged: its length, and the JSON texts of ``[first, end)``."""

    total: int
    texts: Callable[[int, int], list[str]]


def page(
    kind: ListKind,
    listing: Listing,
    url: str,
    query: Mapping[str, str],
    *,
    fault: PagingFault | None = None,
    null_when_empty: bool = False,
    largest: int | None = None,
) -> Response:
    """Return one page in the provider's envelope; ``url`` is the endpoint's own, used for the links. A page has at most
    ``largest`` entries, even if more are requested.

    A page token has the position and the size; it is only valid for the same list with the same filters.

    Raises:
        Refusal: for a bad ``page_size`` or ``page_token``.
    """
    filters = {name: value for name, value in query.items() if name not in ("page_size", "page_token")}
    digest = token(8, url, *sorted(filters.items()))
    offset, size = _place(kind, query, digest)
    size = size if largest is None else min(size, largest)
    shown = max(0, offset - size) if fault == "duplicate" else offset
    texts = listing.texts(shown, min(shown + size, listing.total))
    onward = offset if fault == "endless" else offset + size
    metadata: dict[str, object] = {
        "first": f"{url}?{urlencode({**filters, 'page_size': size})}",
        "total_size": listing.total,
    }
    if onward < listing.total or fault == "endless":
        metadata["next"] = f"{url}?{urlencode({**filters, 'page_token': _token(onward, size, digest)})}"
    elif kind.last_next != "absent":
        metadata["next"] = "" if kind.last_next == "empty" else None
    if kind.api_version == "sql/v1":
        # The gateway's envelope has no totals, and its own address is under self.
        metadata = {"self": url, "next": metadata.get("next", "")}
    data = "null" if null_when_empty and not listing.total else f"[{','.join(texts)}]"
    head = dumps({"api_version": kind.api_version, "kind": kind.kind, "metadata": metadata})
    return Response(200, f'{head[:-1]},"data":{data}}}'.encode())


def _place(kind: ListKind, query: Mapping[str, str], digest: str) -> tuple[int, int]:
    size_text = query.get("page_size")
    size = kind.default_size
    if size_text is not None:
        if not (size_text.isascii() and size_text.isdigit()) or not 1 <= int(size_text) <= kind.max_size:
            raise invalid("page_size", f"page_size must be a number from 1 to {kind.max_size}")
        size = int(size_text)
    text = query.get("page_token")
    if not text:
        return 0, size
    try:
        offset, kept_size, kept_digest, _ = json.loads(base64.urlsafe_b64decode(text))
    except (ValueError, TypeError, binascii.Error) as error:
        raise invalid("page_token", "page_token is not valid") from error
    if kept_digest != digest:
        raise invalid("page_token", "page_token belongs to another list")
    return offset, kept_size


def _token(offset: int, size: int, digest: str) -> str:
    """Return an opaque token, never the same twice: a client cannot use it to detect repeated pages."""
    return base64.urlsafe_b64encode(json.dumps([offset, size, digest, secrets.token_hex(4)]).encode()).decode()
