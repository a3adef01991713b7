"""Gzip of finished answers. Streams are sent as they are made."""

from __future__ import annotations

import gzip
import re
from typing import Final

from starlette.responses import Response

#: Smaller answers are sent as they are: they fit a packet or two.
SMALLEST: Final = 1000
#: Beyond the first levels, time grows faster than size shrinks.
_LEVEL: Final = 4
_REFUSED: Final = re.compile(r"q=0(\.0*)?$")


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an ``Accept-Encoding`` lets an answer be gzip.

    >>> accepts_gzip("br, gzip;q=0.8"), accepts_gzip("gzip;q=0"), accepts_gzip("identity")
    (True, False, False)
    """
    weights = {}
    for part in accept_encoding.lower().split(","):
        name, _, weight = part.partition(";")
        weights[name.strip()] = _REFUSED.fullmatch(weight.strip()) is None
    return weights.get("gzip", weights.get("*", False))


def compressed(response: Response) -> Response:
    """Return the answer with its body as gzip, if it is large enough to be worth it; to be called in a thread."""
    body = bytes(response.body)
    if len(body) < SMALLEST or "content-encoding" in response.headers:
        return response
    smaller = gzip.compress(body, _LEVEL, mtime=0)
    headers = {**response.headers, "content-encoding": "gzip", "content-length": str(len(smaller))}
    return Response(smaller, status_code=response.status_code, headers=headers)
