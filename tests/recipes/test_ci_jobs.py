"""A job of a CI service presents a token that its issuer signed; the claims determine what the job sees."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.recipes import BY_CENTER, Place, amounts, blocks, guarded

Answers = dict[str, Any]


class GitHub(BaseHTTPRequestHandler):
    """Serves the tokens of a GitHub job, and the public keys of all tokens."""

    key: rsa.RSAPrivateKey
    claims: Answers
    asked: list[str]

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/.well-known/jwks":
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
            answer: Answers = {"keys": [public | {"kid": "key-1", "use": "sig", "alg": "RS256"}]}
        else:
            assert self.headers["Authorization"] == "Bearer of-the-job"
            (audience,) = parse_qs(address.query)["audience"]
            answer = {"value": signed(type(self).key, self.claims | {"aud": audience})}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def signed(key: rsa.RSAPrivateKey, claims: Answers) -> str:
    """Return a token signed as by GitHub."""
    now = int(time.time())
    times = {"iat": now - 5, "nbf": now - 5, "exp": now + 300, "jti": "1f2c"}
    return jwt.encode(times | claims, key, algorithm="RS256", headers={"kid": "key-1"})


@dataclass
class Jobs:
    """A service that accepts tokens of CI jobs, and the server where jobs get them."""

    service: str
    issuer: str
    handler: type[GitHub]

    def claims(self, repository: str, ref: str = "refs/heads/main") -> Answers:
        """Return the claims of a job, as GitHub documents them."""
        return {
            "iss": "https://token.actions.githubusercontent.com",
            "sub": f"repo:{repository}:ref:{ref}",
            "repository": repository,
            "repository_owner": repository.partition("/")[0],
            "ref": ref,
            "ref_type": "branch",
            "workflow": "costs",
            "event_name": "push",
            "runner_environment": "github-hosted",
        }

    def get(self, path: str, repository: str, **changes: Any) -> httpx.Response:
        """Send a request with the token of a job."""
        ref = changes.pop("ref", "refs/heads/main")
        key = changes.pop("key", self.handler.key)
        claims = self.claims(repository, ref) | {"aud": "https://chargeback.example.com"} | changes
        return httpx.get(self.service + path, headers={"Authorization": f"Bearer {signed(key, claims)}"}, timeout=60)


@pytest.fixture(scope="module")
def jobs(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """The recipe for CI jobs, with keys and tokens from a server on this machine."""
    handler = type("Handler", (GitHub,), {"key": rsa.generate_private_key(65537, 2048), "claims": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    issuer = f"http://127.0.0.1:{server.server_address[1]}"
    changes = {
        "jwks_url: https://token.actions.githubusercontent.com": f"jwks_url: {issuer}",
    }
    try:
        folder = tmp_path_factory.mktemp("jobs")
        with guarded(place.config, folder, "A token from a CI job", changes) as service:
            yield Jobs(service, issuer, handler)
    finally:
        server.shutdown()
        server.server_close()


def test_the_job_of_the_page_gets_its_file(jobs: Jobs, place: Place, tmp_path: Path) -> None:
    """The commands of the workflow produce the file, run by a real shell with the real curl and jq."""
    _, workflow = blocks("A token from a CI job")
    (step,) = workflow["jobs"]["costs"]["steps"]
    assert workflow["jobs"]["costs"]["env"]["CHARGEBACK"] == "https://chargeback.example.com"
    jobs.handler.claims = jobs.claims("example/reports")
    script = step["run"].replace('"$CHARGEBACK/', f'"{jobs.service}/').replace("last-month", "10d")
    environment = os.environ | {
        "CHARGEBACK": "https://chargeback.example.com",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of-the-job",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{jobs.issuer}/token?api-version=2.0",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    head, *lines = (tmp_path / "costs.csv").read_text(encoding="utf-8").splitlines()
    assert "category:cost_center" in head
    assert len(lines) == len(place.whole(BY_CENTER)["buckets"]) > 5


def test_claims_decide_what_a_job_sees(jobs: Jobs) -> None:
    """Reports see everything from their main branch, a team's repository sees the team's part, and others see
    nothing."""
    everything = jobs.get("/api/v1/me", "example/reports").json()
    assert (everything["kind"], everything["groups"]) == ("jwt", ["example/reports"])
    assert [each["scope"] for each in everything["tenants"]] == [None]
    part = jobs.get("/api/v1/me", "example/payments-api").json()
    assert [each["scope"] for each in part["tenants"]] == [{"category:cost_center": ["payments"]}]
    seen = jobs.get(BY_CENTER, "example/payments-api").json()
    assert amounts(seen).keys() == {"payments"}
    for repository, ref in (
        ("example/reports", "refs/heads/topic"),
        ("stranger/reports", "refs/heads/main"),
        ("example-evil/payments-api", "refs/heads/main"),
        ("example/unknown", "refs/heads/main"),
    ):
        assert jobs.get("/api/v1/me", repository, ref=ref).json()["tenants"] == []
        assert jobs.get("/api/v1/tenants/acme", repository, ref=ref).status_code == 404


def test_a_token_that_does_not_hold_is_refused(jobs: Jobs) -> None:
    """A token that is expired, or has another audience, issuer or key, returns 401 with a reason."""
    changed: tuple[Answers, ...] = (
        {"aud": "https://elsewhere.example.com"},
        {"iss": "https://elsewhere.example.com"},
        {"exp": int(time.time()) - 120},
        {"nbf": int(time.time()) + 3600},
        {"key": rsa.generate_private_key(65537, 2048)},
    )
    for changes in changed:
        answer = jobs.get("/api/v1/me", "example/reports", **changes)
        assert answer.status_code == 401, changes
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert len(answer.json()["detail"]) > 20
    assert httpx.get(f"{jobs.service}/api/v1/me").status_code == 401
    unsigned = jwt.encode(jobs.claims("example/reports"), "", algorithm="none")
    bearer = {"Authorization": f"Bearer {unsigned}"}
    assert httpx.get(f"{jobs.service}/api/v1/me", headers=bearer).status_code == 401
