"""A real Prometheus for tests: it loads OpenMetrics text into blocks, serves them on a free loopback port, and is
removed at the end."""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import pytest

from tests.support.processes import free_port

#: The credentials required with ``basic_auth=True``.
USER = "reader"
PASSWORD = "prometheus-reads"
_BCRYPT = "$2b$04$8wXu7Uj7DMGQM7gcVzsPt.60E.7L9jiPsM0Kj8CHJ3O5ZdX9Vf/Ii"
_START_SECONDS = 60
#: Blocks that this process has created, by the digest of their text.
_BLOCKS: dict[str, Path] = {}


class RealPrometheus:
    """A running Prometheus, as a context manager.

    Args:
        openmetrics: OpenMetrics texts (each a string, or its lines), each ending in ``# EOF``.
        basic_auth: require :data:`USER` and :data:`PASSWORD`.
        arguments: further arguments of the server, ``--query.max-samples=1000`` for instance.
        scrape: the address of metrics that it scrapes every second, such as ``http://127.0.0.1:8080/metrics``.
        rules: a file of alerting rules, which are evaluated every second; ``alertmanager`` gets firing alerts.
    """

    def __init__(
        self,
        *openmetrics: str | Iterable[str],
        basic_auth: bool = False,
        arguments: tuple[str, ...] = (),
        scrape: str | None = None,
        rules: Path | None = None,
        alertmanager: str = "",
    ) -> None:
        self._texts = openmetrics
        self._scrape = scrape
        self._rules = rules
        self._alertmanager = alertmanager
        self._basic_auth = basic_auth
        self._arguments = arguments
        self._folder = Path(tempfile.mkdtemp(prefix="prometheus-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> RealPrometheus:
        """Load the samples, start the server and wait until it is ready."""
        server, tool = installed("prometheus"), installed("promtool")
        try:
            for text in self._texts:
                shutil.copytree(_blocks_of(tool, text), self._folder / "data", dirs_exist_ok=True)
            self._start(server)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server and remove its data."""
        self._stop()

    @property
    def auth(self) -> tuple[str, str] | None:
        """Return user and password if the server requires them."""
        return (USER, PASSWORD) if self._basic_auth else None

    def _start(self, server: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        config, web = self._folder / "prometheus.yml", self._folder / "web.yml"
        config.write_text(json.dumps({"scrape_configs": self._scrapes()} | self._alerting()))  # JSON is valid YAML
        web.write_text(f"basic_auth_users:\n  {USER}: '{_BCRYPT}'\n" if self._basic_auth else "")
        command = [
            server,
            f"--config.file={config}",
            f"--web.config.file={web}",
            f"--web.listen-address=127.0.0.1:{port}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            "--storage.tsdb.retention.time=10y",
            "--log.level=warn",
            *self._arguments,
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + _START_SECONDS
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"Prometheus did not start: {(self._folder / 'log').read_text()}")
            time.sleep(0.05)

    def _scrapes(self) -> list[dict[str, Any]]:
        if self._scrape is None:
            return []
        address = httpx.URL(self._scrape)
        return [
            {
                "job_name": "scraped",
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "metrics_path": address.path,
                "static_configs": [{"targets": [f"{address.host}:{address.port}"]}],
            }
        ]

    def _alerting(self) -> dict[str, Any]:
        if self._rules is None:
            return {}
        managers = [{"static_configs": [{"targets": [self._alertmanager.removeprefix("http://")]}]}]
        return {
            "global": {"evaluation_interval": "1s"},
            "rule_files": [str(self._rules)],
            "alerting": {"alertmanagers": managers},
        }

    def query(self, promql: str, time: float | None = None) -> list[dict[str, Any]]:
        """Return the result of an instant query, now or at ``time`` (seconds since 1970)."""
        asked = {"query": promql} | ({} if time is None else {"time": str(time)})
        answer = httpx.get(f"{self.url}/api/v1/query", params=asked, auth=self.auth, timeout=30)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", auth=self.auth, timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def _stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _blocks_of(tool: str, text: str | Iterable[str]) -> Path:
    """Return a folder with the samples as blocks; equal texts share them, because creating them takes longer than
    everything else."""
    whole = text if isinstance(text, str) else "".join(text)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    if digest not in _BLOCKS:
        if not _BLOCKS:
            atexit.register(_forget_blocks)
        folder = Path(tempfile.mkdtemp(prefix="prometheus-blocks-"))
        source, blocks = folder / "samples.om", folder / "blocks"
        source.write_text(whole, encoding="utf-8")
        blocks.mkdir()
        command = [tool, "tsdb", "create-blocks-from", "openmetrics", str(source), str(blocks)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        source.unlink()
        if done.returncode:
            shutil.rmtree(folder)
        assert done.returncode == 0, f"promtool could not load the samples: {done.stderr}"
        _BLOCKS[digest] = blocks
    return _BLOCKS[digest]


def _forget_blocks() -> None:
    for blocks in _BLOCKS.values():
        shutil.rmtree(blocks.parent, ignore_errors=True)


def installed(program: str) -> str:
    """Return the path of a program; fail if it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"{program} is missing: `make servers` installs it")
    return found
