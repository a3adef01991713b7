"""Tenants that only separate processes work on, as in production: start them, read their logs, send requests."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from chargeback.demo.config import ServerInfo, demo_configuration
from tests.support.processes import eventually, free_port, started

#: The storage that an API reads: control database and facts.
READS = ("/tenants", "/tenants/acme/status", "/tenants/acme/chargebacks", "/tenants/acme/chargebacks/aggregate")
_TAGS = "/tenants/acme/entities/resource/{}/tags"


class Service:
    """A running ``chargeback serve`` and its API."""

    def __init__(self, process: subprocess.Popen[bytes], client: httpx.Client) -> None:
        self.process = process
        self.client = client

    def reads(self) -> set[int]:
        """Return the statuses of the responses to every kind of query, including the export."""
        answers = [self.client.get(path) for path in READS] + [self.client.post("/tenants/acme/export")]
        return {answer.status_code for answer in answers}

    def tag(self, resource_id: str, key: str) -> httpx.Response:
        """Tag a resource; return the response."""
        wish = {"tag_key": key, "tag_value": "yes", "created_by": "drill"}
        return self.client.post(_TAGS.format(resource_id), json=wish)

    def untag(self, resource_id: str, key: str) -> httpx.Response:
        """Remove a tag of a resource; return the response."""
        return self.client.delete(f"{_TAGS.format(resource_id)}/{key}")

    def a_resource(self) -> str:
        """Return the id of a resource in the inventory."""
        found: str = self.client.get("/tenants/acme/resources", params={"page_size": 1}).json()["items"][0][
            "resource_id"
        ]
        return found

    def is_alive(self) -> bool:
        """Return whether the process reports that it is healthy."""
        return _answers(str(self.client.base_url.copy_with(path="/")).rstrip("/"))

    def calculated(self) -> int:
        """Return the number of calculated days."""
        answer = self.client.get("/tenants")
        return int(answer.json()[0]["dates_calculated"] or 0) if answer.status_code == 200 else 0

    def is_idle(self) -> bool:
        """Return whether, according to the API, no run is in progress."""
        answer = self.client.get("/tenants/acme/pipeline/status")
        return answer.status_code == 200 and answer.json()["is_running"] is False

    def readiness(self) -> str:
        """Return the status of readiness after its cache has expired."""
        time.sleep(2)
        answer = self.client.get("/readiness")
        assert answer.status_code == 200
        status: str = answer.json()["status"]
        return status

    def run(self) -> None:
        """Start a run when none is in progress, and wait for its end."""
        eventually(lambda: self.client.post("/tenants/acme/pipeline/run").status_code == 202)
        eventually(self.is_idle)


class Installation:
    """The configuration of the tenant ``acme``, and the output of the processes that use it. ``within`` is the prefix
    of every command."""

    def __init__(
        self,
        folder: Path,
        info: ServerInfo,
        *,
        data: Path,
        connection_string: str | None = None,
        facts_path: Path | None = None,
        within: Sequence[str] = (),
    ) -> None:
        self.port = free_port()
        self.config_file = folder / "chargeback.yaml"
        self.config_file.write_text(
            demo_configuration(info, data, port=self.port, connection_string=connection_string, facts_path=facts_path)
        )
        self.log = folder / "log"
        self._within = within

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a ``chargeback`` process; its output is added to the log."""
        with self.log.open("ab") as log:
            arguments = [*words, "--config", str(self.config_file)]
            return started(arguments, output=log, within=self._within, COLUMNS="1000")

    def run(self) -> tuple[int, str]:
        """Run once; return the exit code and the output."""
        before = self.log.stat().st_size if self.log.exists() else 0
        code = self.start("run").wait(300)
        return code, self.log.read_bytes()[before:].decode()

    @contextmanager
    def serving(self, mode: str) -> Iterator[Service]:
        """Start a service, wait for its first response, and stop it at the end of the ``with``."""
        process = self.start("serve", "--mode", mode)
        address = f"http://127.0.0.1:{self.port}"
        try:
            with httpx.Client(base_url=f"{address}/api/v1", timeout=60) as client:
                eventually(lambda: _answers(address))
                yield Service(process, client)
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


@contextmanager
def serving(config: Path) -> Iterator[httpx.Client]:
    """Start a service with several tenants, and a client of it; stop the service at the end of the ``with``."""
    address = f"http://127.0.0.1:{yaml.safe_load(config.read_text())['api']['port']}"
    with config.with_name("log").open("wb") as log:
        process = started(["serve", "--config", str(config)], output=log)
    try:
        # Without keep-alive connections: the server may close one at the moment of its reuse.
        unkept = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=address, timeout=120, limits=unkept) as client:
            eventually(lambda: _answers(address))
            yield client
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def readiness(api: httpx.Client) -> dict[str, Any]:
    """Return the readiness of a service and of its tenants."""
    found: dict[str, Any] = api.get("/api/v1/readiness").raise_for_status().json()
    return found


def runs_ended(api: httpx.Client, tenant: str) -> int:
    """Return the number of a tenant's ended runs in the service's metrics."""
    lines = api.get("/metrics").raise_for_status().text.splitlines()
    ended = [line for line in lines if line.startswith("chargeback_runs_total{") and f'tenant="{tenant}"' in line]
    return round(sum(float(line.split()[1]) for line in ended))


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").status_code == 200
    except httpx.TransportError:
        return False
