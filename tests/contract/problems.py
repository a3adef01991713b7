"""The rules for every unsuccessful response."""

from __future__ import annotations

import httpx

from tests.contract.described import check_problem


def kind_of(response: httpx.Response, status: int) -> str:
    """The kind of a problem, which has that status and the shape that all problems have."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    check_problem(body)
    assert body["status"] == status
    kind: str = body["type"]
    return kind.removeprefix("urn:chargeback:")


def detail_of(response: httpx.Response, status: int) -> str:
    """The sentence of a problem."""
    kind_of(response, status)
    detail: str = response.json()["detail"]
    return detail


def complaints(response: httpx.Response) -> list[str]:
    """Return the names of parameters or fields that a 400 complains about, sorted."""
    assert kind_of(response, 400) == "invalid-request"
    return sorted(error["parameter"] for error in response.json()["errors"])
