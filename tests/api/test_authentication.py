"""Authentication of requests: tokens, the headers of a proxy, and the name that is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from chargeback.access.caller import ALL_RIGHTS, Right
from chargeback.access.scope import RowScope
from chargeback.api.authentication import SenderIdentity, authenticate_by
from chargeback.api.problems import Unauthenticated
from chargeback.errors import ConfigurationError
from chargeback.store.control import access_tokens
from chargeback.store.control.access_tokens import TokenWrite
from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.tenant import TenantStore
from tests.api.callers import client_with, me, refused, settings
from tests.api.conftest import ACME, fill, known
from tests.support.clock import NOW
from tests.support.databases import KINDS
from tests.support.facts import tenant_store
from tests.support.serving import client_of, services_for, wait_until

PROXY = settings("proxy", proxy={"trusted": ["127.0.0.1"]})
ANN = {"X-Forwarded-Email": "ann@example.com", "X-Forwarded-Groups": "platform"}


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[TenantStore, TenantStore]]:
    """Tenants acme, on each kind of database, and globex."""
    for name in ("acme", "globex"):
        (tmp_path / name).mkdir()
    with (
        tenant_store(tmp_path / "acme", kind=request.param) as acme,
        tenant_store(tmp_path / "globex", name="globex") as globex,
    ):
        fill(acme)
        known(acme, identities=["sa-1"])
        yield acme, globex


@pytest.fixture
def client(stores: tuple[TenantStore, TenantStore]) -> Iterator[httpx.Client]:
    """A client at the address of the proxy."""
    with client_with(PROXY, *stores) as client:
        yield client


def create(store: TenantStore, name: str = "ci", **write: object) -> str:
    """Create a token of a tenant, by default with all rights."""
    token = access_tokens.new_token(store.tenant_name)
    content = TokenWrite(**{"name": name, "rights": ALL_RIGHTS} | write)  # type: ignore[arg-type]
    with store.control.write() as connection:
        assert access_tokens.create_token(connection, token, content, who="ann", now=NOW)
    return token


def bearer(token: str) -> dict[str, str]:
    """Return the headers of a request with a token."""
    return {"Authorization": f"Bearer {token}"}


def test_a_machine_has_a_token(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """A token gives its rights and its scope in its own tenant, and none in others."""
    scope = RowScope.of({"category:cost_center": ["payments"]})
    token = create(stores[0], rights=frozenset({Right.EXPORT}), scope=scope)
    assert me(client, bearer(token)) == {
        "user": "token:ci",
        "kind": "token",
        "groups": [],
        "tenants": [
            {"tenant_name": "acme", "rights": ["export", "read"], "scope": scope.as_json(), "role": "token ci"}
        ],
    }
    other = me(client, bearer(create(stores[1])))
    assert [each["tenant_name"] for each in other["tenants"]] == ["globex"]


def test_the_scheme_is_written_in_any_case(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """The scheme is case-insensitive, as in RFC 9110."""
    token = create(stores[0])
    for scheme in ("bearer", "BEARER"):
        assert me(client, {"Authorization": f"{scheme}  {token}"})["user"] == "token:ci"


def test_tokens_that_do_not_hold(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """Unknown, revoked, expired and foreign tokens are refused, also together with headers of the proxy."""
    store = stores[0]
    revoked, expired = create(store, "revoked"), create(store, "expired", expires_at=NOW)
    lasting = create(store, "lasting", expires_at=NOW + timedelta(seconds=1))
    with store.control.write() as connection:
        access_tokens.revoke_token(connection, "revoked", who="ann", now=NOW)
    secret = lasting.rpartition("_")[2]
    wrong = [
        *(revoked, expired, access_tokens.new_token("acme"), access_tokens.new_token("nobody")),
        *(f"cb_globex_{secret}", f"cb_{secret}", "cb_acme", "cb_", lasting[:-1], lasting.upper()),
    ]
    for token in wrong:
        assert refused(client, ANN | bearer(token)) if token.startswith("cb_") else refused(client, bearer(token))
    assert me(client, bearer(lasting))["user"] == "token:lasting"


def test_a_revoked_token_is_refused_at_once(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """A token is checked in the database for every request."""
    token = create(stores[0])
    assert me(client, bearer(token))
    with stores[0].control.write() as connection:
        access_tokens.revoke_token(connection, "ci", who="ann", now=NOW)
    assert "was revoked" in refused(client, bearer(token))


def test_a_token_wins_over_the_proxy(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """If a request has both, the token identifies the caller, not the headers of the proxy."""
    token = create(stores[0])
    assert me(client, ANN | bearer(token))["user"] == "token:ci"
    assert me(client, ANN)["user"] == "ann@example.com"


def test_a_machine_need_not_come_through_the_proxy(stores: tuple[TenantStore, TenantStore]) -> None:
    """A token is accepted from any address."""
    token = create(stores[0])
    with client_with(settings("proxy", proxy={"trusted": ["10.0.3.7"]}), *stores) as client:
        assert me(client, bearer(token))["user"] == "token:ci"
        assert refused(client, ANN)


def test_the_last_use_is_kept(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """The last use of a token is stored soon after a request, without delaying it."""
    token = create(stores[0])

    def _used() -> bool:
        with stores[0].control.read() as connection:
            found = access_tokens.find_token(connection, token)
        return found is not None and found.last_used_at == NOW

    assert not _used()
    for _ in range(3):
        me(client, bearer(token))
    wait_until(_used)


def test_changes_have_the_name_of_the_caller(client: httpx.Client, stores: tuple[TenantStore, TenantStore]) -> None:
    """The audit log has the user or token, not the name in the body."""
    token = create(stores[0])
    tags = f"{ACME}/entities/identity/sa-1/tags"
    for number, headers in enumerate((ANN, bearer(token))):
        tag = {"tag_key": f"key-{number}", "tag_value": "x", "created_by": "somebody"}
        assert client.post(tags, headers=headers, json=tag).status_code == 201
    with stores[0].control.read() as connection:
        entries, _ = audit_entries(connection, AuditFilter("tag.created"), offset=0, limit=10)
    assert [entry["who"] for entry in entries] == ["token:ci", "ann@example.com"]


def test_a_storage_that_is_away(client: httpx.Client, stores: tuple[TenantStore, TenantStore], tmp_path: Path) -> None:
    """If a token cannot be looked up, the response is 503, not 401."""
    token = create(stores[1])
    stores[1].close()
    (file,) = (tmp_path / "globex").rglob("control.db")
    file.rename(file.with_suffix(".away"))
    assert client.get("/api/v1/me", headers=bearer(token)).status_code == 503


def test_nobody_is_told_apart_without_a_mode(stores: tuple[TenantStore, TenantStore]) -> None:
    """Without a mode, headers and tokens are ignored, and every caller has all rights."""
    with client_of(services_for(*stores)) as client:
        for headers in ({}, ANN, bearer("cb_nonsense"), bearer("x")):
            found = me(client, headers)
            assert (found["user"], found["kind"]) == ("api", "anonymous")
            assert [(each["tenant_name"], each["scope"], each["role"]) for each in found["tenants"]] == [
                ("acme", None, ""),
                ("globex", None, ""),
            ]
            assert set(found["tenants"][0]["rights"]) == set(ALL_RIGHTS)


def test_keys_that_cannot_be_read_at_the_start(tmp_path: Path) -> None:
    """The service does not start if it cannot read the keys that verify tokens."""
    jwt = {"issuer": "x", "audience": "y", "jwks_file": str(tmp_path / "jwks.json")}
    with pytest.raises(ConfigurationError, match="jwks_file"):
        authenticate_by(settings("jwt", jwt=jwt))


def test_an_issuer_that_is_away(stores: tuple[TenantStore, TenantStore]) -> None:
    """Until the keys have been read once, a JWT gets 503; an API token is accepted."""
    jwt = {"issuer": "x", "audience": "y", "jwks_url": "http://127.0.0.1:9/keys"}
    with client_with(settings("jwt", jwt=jwt), *stores) as client:
        header = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImEifQ"
        response = client.get("/api/v1/me", headers=bearer(f"{header}.e30.eA"))
        assert (response.status_code, response.json()["type"]) == (503, "urn:chargeback:keys-unavailable")
        assert me(client, bearer(create(stores[0])))["user"] == "token:ci"


def test_names_are_stripped() -> None:
    """Spaces around names are removed; empty groups are ignored."""
    assert SenderIdentity.of(" ann ", [" a", "", "b "]) == SenderIdentity("ann", ("a", "b"))


@pytest.mark.parametrize("user", ["", "  ", "api", "command line", "token:ci", "x" * 256, "a\nb", "a\0", "a\u202eb"])
def test_names_that_nobody_can_have(user: str) -> None:
    """Empty names, names that the service itself uses in the audit log, and invisible characters are refused."""
    with pytest.raises(Unauthenticated):
        SenderIdentity.of(user)


def test_groups_have_limits() -> None:
    """Groups with invisible characters, and too many groups, are refused."""
    with pytest.raises(Unauthenticated, match="cannot be shown"):
        SenderIdentity.of("ann", ["a\tb"])
    assert len(SenderIdentity.of("ann", map(str, range(1000))).groups) == 1000
    with pytest.raises(Unauthenticated, match="1,001 groups"):
        SenderIdentity.of("ann", map(str, range(1001)))
