"""The caller and its rights, as the API describes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.callers import client_with, me, settings
from tests.support.facts import tenant_store

ROLES = [
    {"groups": ["platform"], "allow": ["admin"], "tenants": ["globex"]},
    {"groups": ["team-(?P<team>.+)"], "allow": ["tag"], "scope": {"category:cost_center": "${team}"}},
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of a service with the tenants globex and acme, at the address of the proxy."""
    for name in ("globex", "acme"):
        (tmp_path / name).mkdir()
    access = settings("proxy", proxy={"trusted": ["127.0.0.1"]}, roles=ROLES)
    with (
        tenant_store(tmp_path / "globex", name="globex") as globex,
        tenant_store(tmp_path / "acme") as acme,
        client_with(access, globex, acme) as client,
    ):
        yield client


def test_what_somebody_may_see(client: httpx.Client) -> None:
    """Each tenant is listed with the rights and the scope of the first matching role."""
    found = me(client, {"X-Forwarded-Email": "ann", "X-Forwarded-Groups": "team-b,platform,team-a"})
    assert found == {
        "user": "ann",
        "kind": "proxy",
        "groups": ["team-b", "platform", "team-a"],
        "tenants": [
            {
                "tenant_name": "acme",
                "rights": ["read", "tag"],
                "scope": {"category:cost_center": ["a", "b"]},
                "role": "roles[1]",
            },
            {
                "tenant_name": "globex",
                "rights": ["admin", "close", "export", "read", "run", "tag"],
                "scope": None,
                "role": "roles[0]",
            },
        ],
    }


def test_somebody_without_a_role(client: httpx.Client) -> None:
    """A caller without a role is identified, and sees no tenant."""
    found = me(client, {"X-Forwarded-Email": "bob"})
    assert found == {"user": "bob", "kind": "proxy", "groups": [], "tenants": []}


def test_the_answer_is_not_kept(client: httpx.Client) -> None:
    """The response is not cached, because the next one may be for another caller."""
    response = client.get("/api/v1/me", headers={"X-Forwarded-Email": "bob"})
    assert response.headers["cache-control"] == "no-store"
