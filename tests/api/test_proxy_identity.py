"""Identities from an authenticating proxy, on a real server, over real connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chargeback.api.authentication import SECRET_HEADER
from chargeback.store.tenant import TenantStore
from tests.api.callers import client_with, me, refused, settings
from tests.support.facts import tenant_store

USER, GROUPS = "X-Forwarded-Email", "X-Forwarded-Groups"
SECRET = "0123456789abcdef-proxy"
ANN = {USER: "ann@example.com", GROUPS: "platform,team-1"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """An empty tenant acme."""
    with tenant_store(tmp_path_factory.mktemp("storage")) as store:
        yield store


@pytest.fixture(scope="module")
def trusted(store: TenantStore) -> Iterator[httpx.Client]:
    """The proxy: a client at a trusted address."""
    with client_with(settings("proxy", proxy={"trusted": ["127.0.0.0/8"]}), store) as client:
        yield client


@pytest.fixture(scope="module")
def stranger(store: TenantStore) -> Iterator[httpx.Client]:
    """A client at another address than the proxy."""
    with client_with(settings("proxy", proxy={"trusted": ["10.0.3.0/24", "::1"]}), store) as client:
        yield client


def test_the_proxy_says_who_it_is(trusted: httpx.Client) -> None:
    """The headers give name and groups, the first matching role the access."""
    found = me(trusted, ANN)
    assert (found["user"], found["kind"], found["groups"]) == ("ann@example.com", "proxy", ["platform", "team-1"])
    (acme,) = found["tenants"]
    assert (acme["tenant_name"], acme["role"], acme["scope"]) == ("acme", "roles[0]", None)
    assert acme["rights"] == ["admin", "close", "export", "read", "run", "tag"]


def test_groups_are_separated_by_commas(trusted: httpx.Client) -> None:
    """Spaces and empty names do not matter; without the header there is no group."""
    found = me(trusted, {USER: "ann", GROUPS: "team-2,, team-1 ,"})
    assert found["groups"] == ["team-2", "team-1"]
    assert found["tenants"][0]["scope"] == {"identity_id": ["sa-1", "sa-2"]}
    assert me(trusted, {USER: "ann"})["tenants"] == []


def test_names_are_utf_8(trusted: httpx.Client) -> None:
    """Names are UTF-8; other encodings are refused."""
    assert me(trusted, httpx.Headers({USER: "zoë@example.com"}, encoding="utf-8"))["user"] == "zoë@example.com"
    assert "not UTF-8" in refused(trusted, httpx.Headers({USER: "zoë@example.com"}, encoding="latin-1"))


def test_a_forged_header_is_ignored(stranger: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    """Identity headers from an untrusted address are ignored, whatever other headers claim; the log says so once, with
    the reason."""
    assert "did not come through the proxy" in refused(stranger)
    for claimed in ("10.0.3.7", "::1", "127.0.0.1"):
        forged = ANN | {
            "X-Forwarded-For": claimed,
            "X-Real-IP": claimed,
            "Forwarded": f'for="{claimed}"',
            SECRET_HEADER: SECRET,
        }
        assert "did not come through the proxy" in refused(stranger, forged)
    warnings = [record.getMessage() for record in caplog.records if USER in record.getMessage()]
    assert len(warnings) == 1
    assert "127.0.0.1: the address is not in access.proxy.trusted" in warnings[0]


def test_forwarded_addresses_do_not_make_a_stranger_of_the_proxy(trusted: httpx.Client) -> None:
    """The trusted address is that of the connection, not one in a header."""
    assert me(trusted, ANN | {"X-Forwarded-For": "203.0.113.9"})["user"] == "ann@example.com"


def test_health_needs_no_identity(stranger: httpx.Client) -> None:
    """`/health` needs no identity."""
    assert stranger.get("/health").status_code == 200


@pytest.mark.parametrize("header", [USER, GROUPS])
def test_several_values(trusted: httpx.Client, header: str) -> None:
    """A request with two identity headers is refused, because the proxy may have added its own to the client's."""
    twice = [*ANN.items(), (header, "root@example.com")]
    assert f"2 headers {header}" in refused(trusted, twice)


def test_no_user(trusted: httpx.Client) -> None:
    """Without a name there is no identity, even with groups."""
    for headers in ({}, {GROUPS: "platform"}, {USER: "", GROUPS: "platform"}):
        assert refused(trusted, headers)


def test_the_secret(store: TenantStore, caplog: pytest.LogCaptureFixture) -> None:
    """If a shared secret is configured, the request must have it exactly once."""
    with client_with(settings("proxy", proxy={"shared_secret": SECRET}), store) as client:
        assert me(client, ANN | {SECRET_HEADER: SECRET})["user"] == "ann@example.com"
        wrong = [
            [*ANN.items()],
            [*ANN.items(), (SECRET_HEADER, "")],
            [*ANN.items(), (SECRET_HEADER, SECRET[:-1])],
            [*ANN.items(), (SECRET_HEADER, SECRET.upper())],
            [*ANN.items(), (SECRET_HEADER, SECRET), (SECRET_HEADER, "another")],
            [*ANN.items(), (SECRET_HEADER, f"{SECRET},{SECRET}")],
        ]
        for headers in wrong:
            assert "did not come through the proxy" in refused(client, headers)
    assert SECRET not in caplog.text
    assert "without the secret of access.proxy.shared_secret" in caplog.text


def test_the_secret_does_not_replace_the_address(store: TenantStore) -> None:
    """With both configured, both must match."""
    both = {"trusted": ["10.0.3.7"], "shared_secret": SECRET}
    with client_with(settings("proxy", proxy=both), store) as client:
        assert refused(client, ANN | {SECRET_HEADER: SECRET})


def test_other_headers(store: TenantStore) -> None:
    """Only the configured headers are used; without one for groups, users have none."""
    proxy = {"trusted": ["127.0.0.1"], "user_header": "X-Remote-User", "groups_header": None}
    with client_with(settings("proxy", proxy=proxy), store) as client:
        assert refused(client, ANN)
        found = me(client, ANN | {"x-remote-user": "bob"})
        assert (found["user"], found["groups"]) == ("bob", [])


def test_a_password_for_the_proxy_is_not_ours(trusted: httpx.Client) -> None:
    """An `Authorization` header does not affect the identity."""
    for credentials in ("Basic YW5uOnB3", "Bearer eyJhbGciOiJub25lIn0.e30."):
        assert me(trusted, ANN | {"Authorization": credentials})["user"] == "ann@example.com"


def test_a_worker_has_no_api(tmp_path: Path) -> None:
    """A worker has no endpoint for the caller's identity."""
    with (
        tenant_store(tmp_path) as store,
        client_with(settings("proxy", proxy={"trusted": ["127.0.0.1"]}), store, mode="worker") as client,
    ):
        assert client.get("/health").status_code == 200
        assert client.get("/api/v1/me", headers=ANN).status_code == 404
