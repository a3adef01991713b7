"""nginx checks a password and passes the user on; the service determines what that user sees."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.security.test_tls import certificate
from tests.support.nginx import ACCESS_CONFIG, PASSWORD, Proxy, proxied
from tests.support.recipes import BY_CENTER, COSTS, SECRET, Place, amounts, check_part, guarded, rights, token

__all__ = ["certificate"]


@dataclass(frozen=True)
class Guarded:
    """nginx, the service behind it, and the configuration of the latter."""

    proxy: Proxy
    service: str
    config: Path

    @contextmanager
    def client(self, user: str | None = None, **headers: str) -> Iterator[httpx.Client]:
        """Open a client of nginx with the password of a user, or with only headers."""
        auth = None if user is None else (user, PASSWORD)
        base = f"https://127.0.0.1:{self.proxy.port}"
        with httpx.Client(base_url=base, verify=self.proxy.trust, auth=auth, headers=headers, timeout=60) as client:
            yield client


@pytest.fixture(scope="module")
def nginx(place: Place, certificate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The recipe with nginx."""
    folder = tmp_path_factory.mktemp("nginx")
    text = ACCESS_CONFIG.read_text(encoding="utf-8")
    with (
        guarded(place.config, folder, "nginx with passwords", {}, PROXY_SECRET=SECRET) as service,
        proxied(folder, service, certificate, text, secret=SECRET) as proxy,
    ):
        yield Guarded(proxy, service, folder / "chargeback.yaml")


def test_nginx_says_who_it_is_and_the_service_what_they_see(nginx: Guarded, place: Place) -> None:
    """Alice sees only the cost centre of her team; she may read, and other requests return 403."""
    with nginx.client("alice") as alice:
        me = rights(alice)
        assert (me["user"], me["kind"], me["groups"]) == ("alice", "proxy", ["team-payments"])
        assert me["tenants"]["acme"]["scope"] == {"category:cost_center": ["payments"]}
        assert me["tenants"]["acme"]["rights"] == ["read"]
        check_part(place, alice, "payments")
        for path in ("export", "pipeline/run"):
            refused = alice.post(f"/api/v1/tenants/acme/{path}", json={})
            assert (refused.status_code, refused.json()["status"]) == (403, 403)
        assert alice.get(f"{COSTS}.csv?period=10d").status_code == 403


def test_the_first_role_of_the_file_decides(nginx: Guarded, place: Place) -> None:
    """Bob is in finance and in a team, and finance is listed first, so that he sees everything; Carol may do
    everything."""
    with nginx.client("bob") as bob, nginx.client("carol") as carol:
        me = rights(bob)
        assert me["groups"] == ["team-search", "finance"]
        assert me["tenants"]["acme"]["scope"] is None
        assert bob.get(BY_CENTER).json() == place.whole(BY_CENTER)
        assert bob.get(f"{COSTS}.csv?period=5d").status_code == 200
        assert bob.post("/api/v1/tenants/acme/pipeline/run", json={}).status_code == 403
        assert "admin" in rights(carol)["tenants"]["plain"]["rights"]
        # With the right, the response says why it is impossible here: no process runs pipelines.
        assert carol.post("/api/v1/tenants/acme/pipeline/run", json={}).status_code not in {401, 403}


def test_somebody_without_a_role_sees_no_tenant(nginx: Guarded) -> None:
    """A user without a group sees no tenant."""
    with nginx.client("nobody") as nobody:
        assert rights(nobody)["tenants"] == {}
        assert nobody.get("/api/v1/tenants").json() == []
        assert nobody.get("/api/v1/tenants/acme").status_code == 404


def test_a_client_cannot_say_who_it_is(nginx: Guarded) -> None:
    """nginx replaces headers of the client, and the service ignores them if they do not come from nginx."""
    forged = {"X-Forwarded-User": "carol", "X-Forwarded-Groups": "platform", "X-Chargeback-Proxy-Secret": "guessed"}
    with nginx.client("alice", **forged) as alice:
        me = rights(alice)
        assert (me["user"], me["groups"]) == ("alice", ["team-payments"])
    with nginx.client("alice", **{"X_Forwarded_User": "carol", "x-forwarded-user": "carol"}) as alice:
        assert rights(alice)["user"] == "alice"
    with httpx.Client(base_url=nginx.service) as direct:
        for headers in (forged, {name: forged[name] for name in ("X-Forwarded-User", "X-Forwarded-Groups")}, {}):
            answer = direct.get("/api/v1/me", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert direct.get("/api/v1/tenants/acme", headers=headers).status_code == 401


def test_nginx_asks_for_a_password(nginx: Guarded) -> None:
    """Without a password, or with a wrong one, no request except the health probe reaches the service."""
    with nginx.client() as stranger:
        assert stranger.get("/health").status_code == 200
        for path in ("/ui/", "/api/v1/me", "/metrics", "/docs"):
            assert stranger.get(path).status_code == 401
        wrong = {"Authorization": "Basic " + base64.b64encode(b"carol:guessed").decode()}
        assert stranger.get("/api/v1/me", headers=wrong).status_code == 401
        assert stranger.get("/health", headers=wrong).json().keys() <= {"status", "version"}
    # For paths without authentication, nginx always passes on the same path.
    for path in ("/api/v1/me/../../../health", "/api/v1/tenants/acme/x/../../../../../health", "/%68ealth"):
        status, text = nginx.proxy.get(path, None, headers=wrong)
        assert status in {200, 400}
        assert "tenant" not in text
    two = [("Authorization", "Bearer cb_x"), ("Authorization", wrong["Authorization"])]
    with nginx.client() as stranger:
        assert stranger.get("/api/v1/me", headers=two).status_code in {400, 401}


def test_a_token_needs_no_password(nginx: Guarded, place: Place) -> None:
    """A machine with a token of the service passes nginx and sees what the token allows, until it is revoked."""
    team = next(each for each in amounts(place.whole(BY_CENTER)) if each not in {"payments", "UNASSIGNED"})
    words = ("--allow", "read,export", "--scope", f"category:cost_center={team}", "--expires", "1h")
    with token(nginx.config, "report", *words) as secret:
        machine = {"Authorization": f"Bearer {secret}", "X-Forwarded-User": "carol", "X-Forwarded-Groups": "platform"}
        with nginx.client(**machine) as client:
            assert (rights(client)["kind"], rights(client)["tenants"].keys()) == ("token", {"acme"})
            check_part(place, client, team)
            assert client.get(f"{COSTS}.csv?period=5d").status_code == 200
    with nginx.client(**machine) as client:
        assert client.get("/api/v1/me").status_code == 401


def test_the_page_passes(nginx: Guarded) -> None:
    """The page and the API's documentation are available through nginx; `/metrics` only for callers who see all
    rows."""
    with nginx.client("alice") as alice, nginx.client("carol") as carol:
        assert alice.get("/docs").status_code == 200
        assert alice.get("/metrics").status_code == 403
        assert carol.get("/metrics").status_code == 200
