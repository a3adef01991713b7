"""The configurations of docs/access.md, a service with one of them, and the promises that all recipes share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.contract.deployment import Deployment
from tests.support.processes import eventually, free_port

PAGE = Path(__file__).parents[2] / "docs" / "access.md"
#: The secret that the proxies of the recipes share with the service.
SECRET = "a-secret-of-proxy-and-service-0123456789"
COSTS = "/api/v1/tenants/acme/chargebacks"
BY_CENTER = f"{COSTS}/aggregate?period=10d&group_by=category:cost_center"
#: Requests about the whole bill, which are forbidden for callers with a scope.
OF_THE_WHOLE = ("reconciliation", "runs", "audit", "usage", "cost-categories/cost_center")


@dataclass(frozen=True)
class Place:
    """A service without access control over the same data, for comparison, and the path of its configuration."""

    deployment: Deployment
    config: Path

    def whole(self, path: str) -> Any:
        """Return the response of the service without access control."""
        return httpx.get(self.deployment.address + path, timeout=60).raise_for_status().json()


def blocks(heading: str) -> list[Any]:
    """Return the YAML examples below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)]


@contextmanager
def guarded(base: Path, folder: Path, heading: str, changes: Mapping[str, str], **environment: str) -> Iterator[str]:
    """Start ``chargeback serve`` with the tenants of the configuration ``base`` and the access settings below
    ``heading`` on the page; yield its address.

    ``changes`` replaces texts of the page that differ on this machine.
    """
    settings = blocks(heading)[0]
    text = yaml.safe_dump(yaml.safe_load(base.read_text(encoding="utf-8")) | settings, sort_keys=False)
    for written, here in changes.items():
        assert written in text, written
        text = text.replace(written, here)
    whole = yaml.safe_load(text)
    whole["api"] |= {"host": "127.0.0.1", "port": free_port()}
    file = folder / "chargeback.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    address = f"http://127.0.0.1:{whole['api']['port']}"
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "chargeback", "serve", "--mode", "api", "--config", str(file)],
            stdout=output,
            stderr=output,
            env=os.environ | environment,
        )
    try:
        eventually(lambda: process.poll() is not None or _answers(address))
        assert process.poll() is None, log.read_text(encoding="utf-8")
        yield address
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").status_code == 200
    except httpx.TransportError:
        return False


def amounts(answer: dict[str, Any]) -> dict[str, str]:
    """Return the sum of each cost centre in an aggregate over all its days."""
    return {each["dimensions"]["category:cost_center"]: each["total_amount"] for each in answer["buckets"]}


def check_part(place: Place, client: httpx.Client, team: str) -> None:
    """Check that every response to a user of a team has exactly the team's part."""
    query = f"period=10d&category:cost_center={team}"
    asked = client.get(f"{COSTS}/aggregate?period=10d&group_by=identity_id").raise_for_status().json()
    same = place.whole(f"{COSTS}/aggregate?group_by=identity_id&{query}")
    assert asked == same
    assert asked["total_rows"] > 0
    seen = amounts(client.get(BY_CENTER).raise_for_status().json())
    assert seen.keys() == {team}
    everything = amounts(place.whole(BY_CENTER))
    assert len(everything) > 5
    assert everything[team] == seen[team]
    other = next(each for each in everything if each != team)
    others = client.get(f"{COSTS}?period=10d&category:cost_center={other}").raise_for_status().json()
    assert (others["total"], others["items"]) == (0, [])
    for name in OF_THE_WHOLE:
        refused = client.get(f"/api/v1/tenants/acme/{name}")
        assert refused.status_code == 403, name
        assert refused.headers["content-type"] == "application/problem+json"
        assert len(refused.json()["detail"]) > 20
    assert client.get("/api/v1/tenants/plain").status_code == 404
    assert [each["tenant_name"] for each in client.get("/api/v1/tenants").json()] == ["acme"]


def rights(client: httpx.Client) -> dict[str, Any]:
    """Return a caller's rights, with the tenants by name."""
    found: dict[str, Any] = client.get("/api/v1/me").raise_for_status().json()
    return found | {"tenants": {each["tenant_name"]: each for each in found["tenants"]}}


@contextmanager
def token(config: Path, name: str, *words: str) -> Iterator[str]:
    """Create an access token as documented, and revoke it at the end of the ``with``."""
    command = [sys.executable, "-m", "chargeback", "token"]
    where = ["--config", str(config), "--tenant", "acme"]
    environment = os.environ | {"PROXY_SECRET": SECRET}
    made = subprocess.run(
        [*command, "create", *where, "--name", name, *words],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    yield made.stdout.strip()
    subprocess.run([*command, "revoke", *where, name], capture_output=True, env=environment, check=True)
