"""Complete responses are compressed with gzip if the client accepts it."""

from __future__ import annotations

import gzip

from starlette.responses import Response

from chargeback.api.tenant_requests import SMALLEST_COMPRESSED, compressed


def test_a_large_body_becomes_smaller() -> None:
    """The body is compressed, with its new length; other headers do not change."""
    body = b"costs " * 1000
    answer = compressed(Response(body, media_type="application/json", headers={"etag": "x"}))
    assert gzip.decompress(bytes(answer.body)) == body
    assert answer.headers["content-encoding"] == "gzip"
    assert (answer.headers["etag"], answer.headers["content-type"]) == ("x", "application/json")
    assert int(answer.headers["content-length"]) == len(answer.body) < len(body)


def test_a_small_body_stays_as_it_is() -> None:
    """A body below the limit is not compressed."""
    answer = Response(bytes(SMALLEST_COMPRESSED - 1))
    assert compressed(answer) is answer
