"""Gzip of finished answers. Streams are sent as they are made."""

from __future__ import annotations

import gzip
from typing import Final

from starlette.responses import Response

#: Smaller answers are sent as they are: they fit a packet or two.
SMALLEST: Final = 1000
#: Beyond the first levels, time grows faster than size shrinks.
_LEVEL: Final = 4


def compressed(response: Response) -> Response:
    """Return the answer with its body as gzip, if it is large enough to be worth it; to be called in a thread."""
    body = bytes(response.body)
    if len(body) < SMALLEST or "content-encoding" in response.headers:
        return response
    smaller = gzip.compress(body, _LEVEL, mtime=0)
    headers = {**response.headers, "content-encoding": "gzip", "content-length": str(len(smaller))}
    return Response(smaller, status_code=response.status_code, headers=headers)
