"""The OpenAPI document is true: what it allows is answered as it says, what it does not allow is refused.

The whole of it, over the demo: ``schemathesis --config-file tests/contract/schemathesis.toml run
http://127.0.0.1:8080/openapi.json``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.contract.deployment import Deployment
from tests.contract.records import Client

ROOT = Path(__file__).parents[2]
SEED = "20"


def test_schemathesis_finds_nothing(scratch: Client, deployment: Deployment, tmp_path: Path) -> None:
    """All its checks, in every phase but the long one; without runs of the pipeline, which other tests start."""
    config = (ROOT / "tests/contract/schemathesis.toml").read_text(encoding="utf-8")
    changed = tmp_path / "schemathesis.toml"
    changed.write_text(config.replace('tenant_name = "acme"', 'tenant_name = "scratch"'), encoding="utf-8")
    with deployment.served(mode="api") as address:
        program = str(Path(sys.executable).with_name("schemathesis"))
        command = [program, "--no-color", "--config-file", str(changed), "run", f"{address}/openapi.json"]
        limits = ["--seed", SEED, "--phases", "examples,coverage,fuzzing", "--max-examples", "5", "--no-shrink"]
        place = ["--generation-database", ":memory:"]
        done = subprocess.run(
            [*command, *limits, *place], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    generated = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert generated is not None, done.stdout[-3000:]
    assert int(generated[1]) == int(generated[2]) > 500
