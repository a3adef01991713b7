"""The probe."""

from __future__ import annotations

import httpx


def test_health(client: httpx.Client) -> None:
    """The response has the status and the version."""
    assert client.get("/health").json() == {"status": "ok", "version": "1.2.3"}
