"""Apache redirects people to an OpenID provider and passes the user on; the service determines what that user sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from chargeback.page.serve import BUILT
from tests.page.test_web import CHROMIUM, node
from tests.security.test_tls import certificate
from tests.support.apache import SignOn, apache, provider
from tests.support.recipes import BY_CENTER, COSTS, SECRET, Place, check_part, guarded, rights, token

__all__ = ["certificate"]

USERS = (
    {"sub": "alice", "email": "alice@example.com", "email_verified": True, "groups": ["team-payments", "staff"]},
    {"sub": "frank", "email": "frank@finance.example.com", "email_verified": True},
    {"sub": "eve", "email": "carol@example.com", "email_verified": False, "groups": ["platform"]},
    {"sub": "mallory", "email": "mallory@example.com", "email_verified": True, "groups": ["staff"]},
)


@dataclass(frozen=True)
class Signing:
    """Apache, the service behind it, and the configuration of the latter."""

    on: SignOn
    issuer: str
    service: str
    config: Path


@pytest.fixture(scope="module")
def oidc(place: Place, certificate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signing]:
    """The recipe of single sign-on."""
    folder = tmp_path_factory.mktemp("apache")
    heading = "Single sign-on with OpenID Connect"
    with (
        provider(USERS) as issuer,
        guarded(place.config, folder, heading, {}, PROXY_SECRET=SECRET) as service,
        apache(folder, service, issuer, certificate, SECRET) as on,
    ):
        yield Signing(on, issuer, service, folder / "chargeback.yaml")


def test_who_has_signed_in_sees_their_part(oidc: Signing, place: Place) -> None:
    """Address and groups at the provider become the user's name and groups."""
    with oidc.on.signed_in("alice") as alice:
        me = rights(alice)
        assert (me["user"], me["kind"]) == ("alice@example.com", "proxy")
        assert sorted(me["groups"]) == ["staff", "team-payments"]
        check_part(place, alice, "payments")
        assert alice.get(f"{COSTS}.csv?period=5d").status_code == 200
    with oidc.on.signed_in("frank") as frank:
        assert rights(frank)["groups"] == []
        assert frank.get(BY_CENTER).json() == place.whole(BY_CENTER)
    with oidc.on.signed_in("mallory") as mallory:
        assert rights(mallory)["tenants"] == {}


def test_whoever_has_not_signed_in_is_sent_to_the_provider_or_told(oidc: Signing) -> None:
    """People are redirected to sign in; programs, and the page after the session has ended, get 401. Probes pass."""
    with oidc.on.client() as stranger:
        sent = stranger.get("/ui/acme/costs", headers={"Accept": "text/html"})
        assert sent.status_code == 302
        asked = parse_qs(urlsplit(sent.headers["location"]).query)
        assert asked["redirect_uri"] == [f"{oidc.on.address}/oidc/callback"]
        assert asked["code_challenge_method"] == ["S256"]
        for path in ("/api/v1/me", "/api/v1/tenants/acme/costs"):
            assert stranger.get(path).status_code == 401
        assert stranger.get("/health").status_code == 200


def test_headers_of_a_client_do_not_pass_apache(oidc: Signing) -> None:
    """Identity headers of a client are removed, before and after signing in, in any spelling."""
    forged = {
        "X-Forwarded-Email": "frank@finance.example.com",
        "X-Forwarded-Groups": "platform",
        "x_forwarded_email": "frank@finance.example.com",
        "OIDC_CLAIM_groups": "platform",
    }
    with oidc.on.client(**forged) as stranger:
        assert stranger.get("/api/v1/me").status_code == 401
        bearer = {"Authorization": "Bearer cb_guessed"}
        assert stranger.get("/api/v1/me", headers=bearer).status_code == 401
        # No user is authenticated here, and only the probe responds.
        for path in ("/health/../api/v1/me", "/health/%2e%2e/api/v1/me", "/health/x"):
            raw = stranger.base_url.copy_with(raw_path=path.encode())
            assert "user" not in stranger.get(raw).text
    with oidc.on.signed_in("alice") as alice:
        alice.headers.update(forged)
        me = rights(alice)
        assert (me["user"], sorted(me["groups"])) == ("alice@example.com", ["staff", "team-payments"])
    with httpx.Client(base_url=oidc.service, headers=forged) as direct:
        assert direct.get("/api/v1/me").status_code == 401


def test_an_address_that_is_not_verified_is_nobody_s(oidc: Signing) -> None:
    """Apache rejects an address that the provider has not verified."""
    with oidc.on.client() as eve:
        form = eve.get("/ui/", headers={"Accept": "text/html"}, follow_redirects=True)
        back = eve.post(form.url, data={"sub": "eve"}, follow_redirects=True)
        assert back.status_code in {401, 403}
        assert eve.get("/api/v1/me").status_code in {401, 403}


def test_ids_and_tokens_pass_apache(oidc: Signing) -> None:
    """An encoded slash in an id is preserved; a token of the service needs no session."""
    with oidc.on.signed_in("frank") as frank:
        raw = frank.base_url.copy_with(raw_path=b"/api/v1/tenants/acme/entities/resource/a%2Fb/tags")
        assert "a/b" in frank.get(raw).json()["detail"]
    with (
        token(oidc.config, "grafana", "--allow", "read", "--expires", "1h") as secret,
        oidc.on.client(Authorization=f"Bearer {secret}") as machine,
    ):
        assert rights(machine)["tenants"]["acme"]["scope"] is None
        assert machine.get(BY_CENTER).status_code == 200


def test_people_sign_in_with_their_browser(oidc: Signing, place: Place) -> None:
    """In a real browser, each user signs in at the provider and sees only their part and their own name."""
    assert CHROMIUM is not None, "`make test` installs Debian's chromium-headless-shell"
    assert (BUILT / "index.html").exists(), "`make page` builds the page"
    places = {
        "BASE": f"{place.deployment.address}/ui/",
        "SIGNIN": f"{oidc.on.address}/ui/",
        "ISSUER": oidc.issuer,
        "CHROMIUM": CHROMIUM,
    }
    node("--test", "tests/browser/signin.test.ts", **places)
