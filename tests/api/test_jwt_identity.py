"""Identities from the tokens of an issuer, with a real server and real keys."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from chargeback.api.jwt_identity import ALGORITHMS
from chargeback.store.tenant import TenantStore
from tests.api.callers import client_with, me, refused, settings
from tests.support.facts import tenant_store
from tests.support.issuer import AUDIENCE, ISSUER, Issuer, private_key

OURS = Issuer()
JWT = {"issuer": ISSUER, "audience": AUDIENCE}


def bearer(token: str) -> dict[str, str]:
    """Return the headers of a request with a token."""
    return {"Authorization": f"Bearer {token}"}


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return the encoded header and claims, each with a dot after it."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims))
    return b".".join(parts).decode() + "."


def claims(**more: Any) -> dict[str, Any]:
    """Return the claims of a valid token."""
    return jwt.decode(OURS.token("mallory", "platform"), options={"verify_signature": False}) | more


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """An empty tenant acme."""
    with tenant_store(tmp_path_factory.mktemp("storage")) as store:
        yield store


@pytest.fixture(scope="module")
def client(store: TenantStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service that knows one key."""
    file = OURS.publish(tmp_path_factory.mktemp("keys") / "jwks.json")
    with client_with(settings("jwt", jwt=JWT | {"jwks_file": str(file)}), store) as client:
        yield client


def test_the_issuer_says_who_it_is(client: httpx.Client) -> None:
    """The token gives name and groups, the first matching role the access."""
    found = me(client, bearer(OURS.token("ann@example.com", "team-1")))
    assert (found["user"], found["kind"], found["groups"]) == ("ann@example.com", "jwt", ["team-1"])
    assert found["tenants"] == [
        {"tenant_name": "acme", "rights": ["read"], "scope": {"identity_id": ["sa-1"]}, "role": "roles[1]"}
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(store: TenantStore, tmp_path: Path, algorithm: str) -> None:
    """Each algorithm works, whether the key names it or not."""
    issuer = Issuer(algorithm)
    unnamed = {name: value for name, value in issuer.jwk.items() if name != "alg"} | {"kid": "unnamed"}
    file = issuer.publish(tmp_path / "jwks.json", unnamed)
    with client_with(settings("jwt", jwt=JWT | {"jwks_file": str(file)}), store) as client:
        assert me(client, bearer(issuer.token()))["user"] == "ann@example.com"
        key = private_key(algorithm, issuer.key_id)
        token = jwt.encode(claims(email="bob"), key, algorithm=algorithm, headers={"kid": "unnamed"})
        assert me(client, bearer(token))["user"] == "bob"


@pytest.mark.parametrize("algorithm", ["none", "None", "nOnE", "", None])
def test_unsigned_tokens(client: httpx.Client, algorithm: str | None) -> None:
    """A token that declares no signature is refused, with or without one."""
    token = unsigned({"typ": "JWT", "kid": OURS.key_id, "alg": algorithm}, claims())
    for signature in ("", "c2lnbmF0dXJl", OURS.token().rpartition(".")[2]):
        assert refused(client, bearer(token + signature))


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_secret(client: httpx.Client, algorithm: str) -> None:
    """A token that is signed with the public key as a shared secret is refused."""
    public = private_key(OURS.algorithm, OURS.key_id).public_key()
    secrets = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(OURS.jwk).encode(),
        b"",
    ]
    for secret in secrets:
        signed = unsigned({"typ": "JWT", "kid": OURS.key_id, "alg": algorithm}, claims())[:-1]
        digest = hmac.digest(secret, signed.encode(), hashlib.new(f"sha{algorithm[2:]}").name)
        token = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        assert "not signed with its key's algorithm" in refused(client, bearer(token))


def test_a_shared_secret_in_the_set_of_keys_is_not_used(store: TenantStore, tmp_path: Path) -> None:
    """A shared secret in the key set is not used, because the set is public."""
    secret = b"0123456789abcdef0123456789abcdef"
    octets = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(secret).rstrip(b"=").decode()}
    file = OURS.publish(tmp_path / "jwks.json", octets)
    with client_with(settings("jwt", jwt=JWT | {"jwks_file": str(file)}), store) as client:
        token = jwt.encode(claims(), secret, algorithm="HS256", headers={"kid": "shared"})
        assert refused(client, bearer(token))


def test_keys_of_somebody_else(client: httpx.Client) -> None:
    """A token signed with another key is refused, even if it names a known one."""
    forged = Issuer(key_id="forged")
    key = private_key(forged.algorithm, forged.key_id)
    assert "does not have" in refused(client, bearer(forged.token()))
    for header in ({"kid": OURS.key_id}, {"kid": OURS.key_id, "jwk": forged.jwk}, {}):
        token = jwt.encode(claims(), key, algorithm="ES256", headers=header)
        assert "signature of the token is wrong" in refused(client, bearer(token))


def test_a_token_that_was_changed(client: httpx.Client) -> None:
    """A token whose claims were changed is refused."""
    header, _, signature = OURS.token("ann@example.com").split(".")
    changed = unsigned({}, claims(email="root@example.com")).split(".")[1]
    assert "signature of the token is wrong" in refused(client, bearer(f"{header}.{changed}.{signature}"))


def test_a_key_that_is_too_short(store: TenantStore, tmp_path: Path) -> None:
    """A key that is too short is not accepted."""
    short = rsa.generate_private_key(65537, 1024)
    jwk = jwt.algorithms.RSAAlgorithm.to_jwk(short.public_key(), as_dict=True) | {"kid": "short"}
    file = OURS.publish(tmp_path / "jwks.json", jwk)
    with (
        pytest.warns(jwt.InsecureKeyLengthWarning),
        client_with(settings("jwt", jwt=JWT | {"jwks_file": str(file)}), store) as client,
    ):
        token = jwt.encode(claims(), short, algorithm="RS256", headers={"kid": "short"})
        assert refused(client, bearer(token))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": timedelta(seconds=-120)}, "has expired"),
        ({"exp": None}, "has no `exp`"),
        ({"nbf": timedelta(seconds=900)}, "not valid yet"),
        ({"iat": timedelta(seconds=900)}, "not valid yet"),
        ({"aud": "https://other.example.com"}, "for another service"),
        ({"aud": []}, "has no `aud`"),
        ({"aud": None}, "has no `aud`"),
        ({"iss": "https://idp.example.com.evil.example"}, "of another issuer"),
        ({"iss": f"{ISSUER}/"}, "of another issuer"),
        ({"iss": None}, "has no `iss`"),
        ({"email": None}, "does not name its user"),
        ({"email": ["ann"]}, "does not name its user"),
        ({"email": "command line"}, "cannot be the name of a user"),
        ({"email_verified": False}, "not verified the address"),
        ({"email_verified": "false"}, "not verified the address"),
        ({"groups": {"platform": True}}, "not a list of names"),
        ({"groups": ["platform", 7]}, "not a list of names"),
    ],
)
def test_what_a_token_has_to_say(client: httpx.Client, changed: dict[str, Any], reason: str) -> None:
    """A token must have an issuer, an audience, times and a user; the error names what is wrong."""
    assert reason in refused(client, bearer(OURS.token(**changed)))


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": timedelta(seconds=-10)},
        {"nbf": timedelta(seconds=30), "iat": timedelta(seconds=30)},
        {"aud": ["https://other.example.com", AUDIENCE]},
        {"nbf": None, "iat": None},
        {"email_verified": True},
        {"groups": None},
        {"groups": "platform"},
    ],
)
def test_what_is_accepted(client: httpx.Client, changed: dict[str, Any]) -> None:
    """Clock differences below a minute, one of several audiences, and users with no group or one group are accepted."""
    assert me(client, bearer(OURS.token(**changed)))["user"] == "ann@example.com"


@pytest.mark.parametrize("token", ["x", "a.b.c", "e30.e30.", "..", "é", "[]", "eyJhbGciOiJFUzI1NiIsImtpZCI6N30.e30.x"])
def test_what_is_no_token(client: httpx.Client, token: str) -> None:
    """A malformed token is refused."""
    assert refused(client, httpx.Headers(bearer(token), encoding="utf-8"))


def test_no_token(client: httpx.Client) -> None:
    """Proxy headers, passwords and query parameters are no tokens."""
    token = OURS.token()
    for headers in ({}, {"X-Forwarded-Email": "ann"}, {"Authorization": "Basic YW5uOnB3"}, {"Authorization": token}):
        assert "has no token" in refused(client, headers)
    assert client.get("/api/v1/me", params={"access_token": token}).status_code in {400, 401}
    assert "2 headers Authorization" in refused(client, [*bearer(token).items(), ("Authorization", "Bearer x")])


def test_other_claims(store: TenantStore, tmp_path: Path) -> None:
    """The user and the groups come from the configured claims."""
    file = OURS.publish(tmp_path / "jwks.json")
    chosen = JWT | {"jwks_file": str(file), "user_claim": "sub", "groups_claim": "https://example.com/roles"}
    with client_with(settings("jwt", jwt=chosen), store) as client:
        roles: dict[str, Any] = {"https://example.com/roles": ["platform"]}
        found = me(client, bearer(OURS.token(**roles)))
        assert (found["user"], found["groups"]) == ("1234", ["platform"])


@pytest.mark.extensive
def test_keys_rotate_without_a_restart(store: TenantStore, tmp_path: Path) -> None:
    """A new key is accepted as soon as it is in the file, and a removed one is refused."""
    file, old, new = tmp_path / "jwks.json", Issuer(key_id="old"), Issuer(key_id="new")
    old.publish(file)
    with client_with(settings("jwt", jwt=JWT | {"jwks_file": str(file)}), store) as client:
        assert me(client, bearer(old.token()))
        assert refused(client, bearer(new.token()))
        new.publish(file, old.jwk)
        time.sleep(1.1)
        assert me(client, bearer(new.token()))
        assert me(client, bearer(old.token()))
        new.publish(file)
        time.sleep(1.1)
        assert refused(client, bearer(old.token()))
        file.write_text("half a fi")
        time.sleep(1.1)
        assert me(client, bearer(new.token()))
