"""Every request about a tenant is sent twice: the second response is a 304."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.contract.endpoints import ENDPOINTS, TENANT, Endpoint
from tests.contract.records import Client, Everything, needed_of

ROWS = {f"{TENANT}/{name}.csv" for name in ("chargebacks", "billing", "topic-attributions")}
#: Files that are streamed, so that their responses are never 304.
STREAMED = {f"{TENANT}/statements.zip"}
GETS = [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET" and endpoint.path.startswith(TENANT)]


def _get(
    client: Client, everything: Everything, endpoint: Endpoint, headers: dict[str, str] | None = None
) -> httpx.Response:
    needed = needed_of(endpoint, everything)
    return client.get(endpoint.of("acme", **everything.ids), params=needed, headers=headers)


@pytest.mark.parametrize("endpoint", GETS, ids=lambda endpoint: endpoint.name)
def test_a_repeated_question_is_answered_304(client: Client, everything: Everything, endpoint: Endpoint) -> None:
    """A 304 has no body; streamed files have no ETag, as the document says."""
    operation: dict[str, Any] = client.answer("/openapi.json")["paths"][endpoint.documented]["get"]
    first = _get(client, everything, endpoint)
    assert first.status_code == 200
    assert ("304" in operation["responses"]) == (endpoint.path not in STREAMED)
    assert ("etag" in first.headers) == (endpoint.path not in ROWS | STREAMED)
    assert first.headers["cache-control"] == "private, no-cache"
    if "etag" not in first.headers:
        return
    again = _get(client, everything, endpoint, {"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for encoding in ("gzip", "identity"):
        assert _get(client, everything, endpoint, {"Accept-Encoding": encoding}).content == first.content
