"""A real Alertmanager for tests, on a free loopback port."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import eventually, free_port
from tests.support.prometheus import installed

_CONFIGURATION = """
route: {receiver: nobody}
receivers: [{name: nobody}]
"""


@contextmanager
def running_alertmanager() -> Iterator[str]:
    """Run an Alertmanager for the length of the ``with``; yield its address."""
    program, port = installed("prometheus-alertmanager"), free_port()
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "alertmanager.yml"
        configuration.write_text(_CONFIGURATION, encoding="utf-8")
        words = [
            *(program, f"--config.file={configuration}", f"--storage.path={folder}/data"),
            *(f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="),
        ]
        with (Path(folder) / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
            try:
                address = f"http://127.0.0.1:{port}"
                eventually(lambda: _is_ready(address))
                yield address
            finally:
                process.terminate()


def alerts_at(address: str) -> list[dict[str, Any]]:
    """Return the current alerts of an Alertmanager."""
    found: list[dict[str, Any]] = httpx.get(f"{address}/api/v2/alerts").raise_for_status().json()
    return sorted(found, key=lambda each: sorted(each["labels"].items()))


def _is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/-/ready").is_success
    except httpx.TransportError:
        return False
