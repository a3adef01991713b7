"""Requests that the OpenAPI document allows get the described responses, and others are refused.

To run all of it over the demo: ``schemathesis --config-file tests/contract/schemathesis.toml run
http://127.0.0.1:8080/openapi.json``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.requests import Request

from chargeback.access.caller import Caller, Right
from tests.contract.deployment import Deployment
from tests.contract.records import Client, Everything, typical
from tests.contract.schemathesis_rules import OUTSIDE
from tests.contract.seen import Scoped, Seen
from tests.support.callers import caller

pytestmark = pytest.mark.usefixtures("process")

ROOT = Path(__file__).parents[2]
SEED = "20"


@pytest.mark.parametrize(
    ("phases", "enough"),
    [
        ("examples,fuzzing", 100),
        # Every value of every parameter, including invalid ones.
        pytest.param("coverage", 500, marks=[pytest.mark.drill, pytest.mark.timeout(900)]),
    ],
)
def test_schemathesis_finds_nothing(
    scratch: Client, deployment: Deployment, tmp_path: Path, phases: str, enough: int
) -> None:
    """All its checks pass; runs are excluded, because other tests start them."""
    with deployment.served(mode="api") as address:
        assert _asked(address, tmp_path, phases, examples=2) > enough


# tests/security/test_scopes.py sends requests to every endpoint in every run; this test adds other requests.
@pytest.mark.drill
@pytest.mark.parametrize("kind", ["identity", "category"])
def test_schemathesis_finds_nothing_outside(scratch: Client, deployment: Deployment, tmp_path: Path, kind: str) -> None:
    """With a narrow scope, no response to any request, valid or not, contains an id from outside."""
    rows = Everything(scratch, "scratch").chargebacks
    identity = typical([row for row in rows if row["identity_id"] != "UNALLOCATED"], "identity_id")
    filters = {"identity_id": identity} if kind == "identity" else {"category:cost_center": "payments"}
    of_others = None if kind == "identity" else filters
    scoped = Scoped(kind, {key: [value] for key, value in filters.items()}, filters, of_others, of_others)
    seen = Seen(scratch, "scratch", scoped)
    assert seen.outside
    file = tmp_path / "outside"
    file.write_text(seen.pattern, encoding="utf-8")
    somebody = caller(kind, Right.ADMIN, tenants=["scratch"], scope=scoped.scope)

    async def _always(_request: Request) -> Caller:
        return somebody

    with deployment.served(mode="api", authenticate=_always) as address:
        assert _asked(address, tmp_path, "examples,fuzzing", examples=2, outside=file) > 100


def _asked(address: str, folder: Path, phases: str, *, examples: int, outside: Path | None = None) -> int:
    """Run schemathesis and return the number of requests; each must pass."""
    config = (ROOT / "tests/contract/schemathesis.toml").read_text(encoding="utf-8")
    changed = folder / "schemathesis.toml"
    changed.write_text(config.replace('tenant_name = "acme"', 'tenant_name = "scratch"'), encoding="utf-8")
    program = str(Path(sys.executable).with_name("schemathesis"))
    command = [program, "--no-color", "--config-file", str(changed), "run", f"{address}/openapi.json"]
    limits = ["--seed", SEED, "--phases", phases, "--max-examples", str(examples), "--no-shrink"]
    place = ["--generation-database", ":memory:"]
    done = subprocess.run(
        [*command, *limits, *place],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
        env=os.environ | ({} if outside is None else {OUTSIDE: str(outside)}),
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    generated = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert generated is not None, done.stdout[-3000:]
    assert int(generated[1]) == int(generated[2])
    return int(generated[1])
