"""How answers are sent: JSON made in one go, and bytes made while they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chargeback.errors import ChargebackError
from chargeback.service.executor import PieceStream, RequestContext

# Small enough that a slow client is seen to accept something, large enough that a fast one is not held up.
_PIECE_BYTES = 2**18


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``value`` as JSON. Its shape is the endpoint's response model; checking millions of rows again would only cost
    time, a test compares them."""
    return Response(to_json(value), status_code=status, media_type="application/json", headers=headers)


def rendered_response(
    name: str, rendered: Sequence[str], rest: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an object with the members ``rest``, preceded by a list whose items are JSON already."""
    body = f'{{"{name}":[{",".join(rendered)}],{to_json(rest).decode()[1:]}'
    return Response(body, media_type="application/json", headers=headers)


def page_response(items: list[Any], total: int, *, page: int, page_size: int) -> Response:
    """Return one page of a list in its envelope."""
    return json_response(
        {"items": items, "total": total, "page": page, "page_size": page_size, "pages": -(-total // page_size)}
    )


class ByteStream(Response):
    """An answer whose pieces are made while others are sent.

    The first piece is made before the answer begins, so that a request that fails is answered as such.
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
        """Make the first pieces (a header, and the first rows) and the answer that will send them."""
        first = [
            piece for piece in [await context.next_piece(pieces), await context.next_piece(pieces)] if piece is not None
        ]
        return cls(context, pieces, first, **how)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send everything; an error in the middle leaves the answer incomplete."""
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
