"""Responses: complete JSON and CSV, and bytes that are streamed while they are created."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chargeback.api.executor import PieceStream, RequestContext
from chargeback.api.parameters import CSV_TYPE
from chargeback.errors import ChargebackError
from chargeback.reports.answers import ResponseModel, csv_text, table_text

# Small enough that a slow client regularly accepts data, large enough that a fast one is not delayed.
_PIECE_BYTES = 2**18


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return ``value`` as JSON. Its shape is not validated against the endpoint's response model, to save time; a test
    does this."""
    return Response(to_json(value), status_code=status, media_type="application/json", headers=headers)


def answered(answer: ResponseModel | Response, status: int | None) -> Response:
    """Return the result of a route as its response; ``status`` is that of its success, by default 200."""
    return answer if isinstance(answer, Response) else json_response(answer, status=status or 200)


def table_response(
    name: str,
    columns: Mapping[str, str],
    items: Iterable[ResponseModel],
    *,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return rows as a CSV file called ``name``, see :func:`~chargeback.reports.answers.table_text`."""
    return csv_file(name, table_text(columns, items), headers=headers)


def csv_file(name: str, text: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """Return the text of a CSV file called ``name``."""
    return Response(text, media_type=CSV_TYPE, headers=attachment(name) | dict(headers or {}))


def rendered_response(
    name: str, rendered: Sequence[str], rest: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an object with the members ``rest``, preceded by a list of items that are JSON texts."""
    body = f'{{"{name}":[{",".join(rendered)}],{to_json(rest).decode()[1:]}'
    return Response(body, media_type="application/json", headers=headers)


def digest_of(content: bytes | memoryview) -> str:
    """Return a short digest of the content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def attachment(name: str) -> dict[str, str]:
    """Return the header that makes browsers save a response as a file called ``name``."""
    return {"Content-Disposition": f"attachment; filename={name}"}


def page_response(items: list[Any], total: int, *, page: int, page_size: int) -> Response:
    """Return one page of a list in its envelope."""
    return json_response(
        {"items": items, "total": total, "page": page, "page_size": page_size, "pages": -(-total // page_size)}
    )


class ByteStream(Response):
    """A response whose pieces are created while others are sent.

    The first piece is created before the response starts, so that a failed request gets an error status.
    """

    def __init__(
        self, context: RequestContext, pieces: PieceStream[memoryview], first: list[memoryview], **how: Any
    ) -> None:
        super().__init__(**how)
        del self.headers["content-length"]
        self._context = context
        self._pieces = pieces
        self._first = first

    @classmethod
    async def begin(cls, context: RequestContext, pieces: PieceStream[memoryview], **how: Any) -> ByteStream:
        """Create the first pieces (a header, and the first rows) and return the response that sends them."""
        first = [
            piece for piece in [await context.next_piece(pieces), await context.next_piece(pieces)] if piece is not None
        ]
        return cls(context, pieces, first, **how)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all pieces; an error midway leaves the response incomplete."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        following = asyncio.create_task(self._context.next_piece(self._pieces))
        try:
            for piece in self._first:
                await _send_in_parts(piece, send)
            while (next_piece := await following) is not None:
                following = asyncio.create_task(self._context.next_piece(self._pieces))
                await _send_in_parts(next_piece, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError, ChargebackError):
                await following
            self._context.finish(self._pieces)


async def _send_in_parts(piece: memoryview, send: Send) -> None:
    for start in range(0, len(piece), _PIECE_BYTES):
        body = bytes(piece[start : start + _PIECE_BYTES])
        await send({"type": "http.response.body", "body": body, "more_body": True})


def csv_response(
    name: str,
    columns: Sequence[str],
    items: Iterable[Mapping[str, Any]],
    *,
    numbers: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return items of a JSON response as a CSV file called ``name``, in the format of exports.

    ``numbers`` are the columns whose texts are decimals: a leading minus sign does not make them formulas.
    """
    return csv_file(name, csv_text(columns, items, numbers=numbers), headers=headers)
