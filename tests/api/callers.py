"""Requests to the application, and the caller that it identifies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx

from chargeback.api.authentication import authenticate_by
from chargeback.config.access import AccessSettings
from chargeback.store.tenant import TenantStore
from tests.support.serving import client_of, services_for

#: A user for every role.
ROLES = [
    {"groups": ["platform"], "allow": ["admin"]},
    {"groups": ["team-(?P<team>.+)"], "allow": ["read"], "scope": {"identity_id": "sa-${team}"}},
]


def settings(mode: str, **more: Any) -> AccessSettings:
    """Return settings of a mode with the roles of the tests."""
    return AccessSettings.model_validate({"mode": mode, "roles": ROLES} | more)


@contextmanager
def client_with(access: AccessSettings, *stores: TenantStore, **more: Any) -> Iterator[httpx.Client]:
    """Open a client of the API, which identifies callers as configured."""
    with client_of(replace(services_for(*stores, **more), authenticate=authenticate_by(access))) as client:
        yield client


def me(client: httpx.Client, headers: Mapping[str, str] | list[tuple[str, str]] | None = None) -> dict[str, Any]:
    """Return the caller as the API describes it."""
    response = client.get("/api/v1/me", headers=headers)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def refused(client: httpx.Client, headers: Mapping[str, str] | list[tuple[str, str]] | None = None) -> str:
    """Return why the API refuses the caller."""
    response = client.get("/api/v1/me", headers=headers)
    assert response.status_code == 401, response.text
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["type"], body["status"]) == ("urn:chargeback:unauthenticated", 401)
    return str(body["detail"])
