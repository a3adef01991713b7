"""The rules for every error response."""

from __future__ import annotations

import httpx

from tests.contract.described import check_problem


def kind_of(response: httpx.Response, status: int) -> str:
    """Check the status and the fields of an error response, and return its type."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    check_problem(body)
    assert body["status"] == status
    kind: str = body["type"]
    return kind.removeprefix("urn:chargeback:")


def detail_of(response: httpx.Response, status: int) -> str:
    """Return the detail of an error response."""
    kind_of(response, status)
    detail: str = response.json()["detail"]
    return detail


def complaints(response: httpx.Response) -> list[str]:
    """Return the names of parameters or fields that a 400 lists, sorted."""
    assert kind_of(response, 400) == "invalid-request"
    return sorted(error["parameter"] for error in response.json()["errors"])
