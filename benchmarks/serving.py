"""The service as a separate process, and a client of it."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import yaml

from benchmarks.evidence import TENANT_ID
from benchmarks.tenants import Generated

HOST: Final = "127.0.0.1"
_START_SECONDS = 60


def configure(
    tenants: Sequence[Generated],
    folder: Path,
    *,
    port: int,
    limit_seconds: int = 60,
    storage: dict[str, Any] | None = None,
) -> Path:
    """Write a configuration that serves copies of the tenants' control databases with their facts, or what is in
    another ``storage``; copies of its files are in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    served = {}
    for tenant in tenants:
        database = folder / f"{tenant.shape.name}.db"
        shutil.copy(tenant.database, database)
        served[tenant.shape.name] = {
            "ecosystem": "confluent_cloud",
            "tenant_id": TENANT_ID,
            "storage": storage or {"connection_string": f"sqlite:///{database}", "facts_path": str(tenant.facts)},
            "plugin_settings": {
                "ccloud_api": {"key": "none", "secret": "none", "url": "http://127.0.0.1:9"},
                "metrics": {"type": "prometheus", "url": "http://127.0.0.1:9"},
                "topic_attribution": {"enabled": True},
            },
        }
    document = {
        "logging": {"level": "WARNING"},
        "api": {"host": HOST, "port": port, "request_timeout_seconds": limit_seconds},
        "features": {"cache": {"path": str(folder / "copies")}},
        "tenants": served,
    }
    file = folder / "chargeback.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


@dataclass
class Service:
    """A running service. ``start_ms`` is the time from its start to its first response."""

    process: subprocess.Popen[bytes]
    port: int
    start_ms: float = 0.0

    def client(self) -> Client:
        """Open a separate connection."""
        return Client(self.port)


@contextmanager
def serving(
    tenants: Sequence[Generated],
    folder: Path,
    *,
    limit_seconds: int = 60,
    storage: dict[str, Any] | None = None,
    first: str | None = None,
    python: str = sys.executable,
) -> Iterator[Service]:
    """Run the service in mode ``api`` for the length of the ``with``, by an interpreter ``python``. ``first`` is the
    path that it must answer before; without it, a page of rows, which is what users want to see after a start."""
    port = free_port()
    config = configure(tenants, folder, port=port, limit_seconds=limit_seconds, storage=storage)
    began = time.perf_counter()
    command = [python, "-m", "chargeback", "serve", "--config", str(config), "--mode", "api"]
    service = Service(subprocess.Popen(command, cwd=folder), port)
    try:
        rows = target(f"/api/v1/tenants/{tenants[0].shape.name}/chargebacks", page_size=10)
        _wait_for_an_answer(service, first or rows)
        service.start_ms = (time.perf_counter() - began) * 1000
        yield service
    finally:
        service.process.send_signal(signal.SIGTERM)
        try:
            service.process.wait(15)
        except subprocess.TimeoutExpired:
            service.process.kill()
            service.process.wait()


def _wait_for_an_answer(service: Service, path: str) -> None:
    """Wait for the first response."""
    ending = time.perf_counter() + _START_SECONDS
    while True:
        try:
            service.client().answer("GET", path)
        except OSError:
            if service.process.poll() is not None or time.perf_counter() > ending:
                raise
            time.sleep(0.01)
        else:
            return


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server((HOST, 0)) as found:
        port: int = found.getsockname()[1]
    return port


@dataclass
class Client:
    """One keep-alive connection."""

    port: int
    _connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self._connect()

    def _connect(self) -> None:
        self._connection = http.client.HTTPConnection(HOST, self.port, timeout=300)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _begin(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """Send a request and return the response after its headers; reconnect if the service has closed an idle
        connection."""
        try:
            self._connection.request(method, path, body, headers)
            return self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connect()
            self._connection.request(method, path, body, headers)
            return self._connection.getresponse()

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of a response.

        Raises:
            RuntimeError: the status is not 200.
        """
        return json.loads(self.answer("GET", target(path, **parameters)))

    def send(self, method: str, path: str, body: Any) -> bytes:
        """Send a JSON body and return the response."""
        return self.answer(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def answer(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        """Return the bytes of a response, whose status must be 200."""
        status, content = self.exchange(method, path, body, headers)
        if status != 200:
            raise RuntimeError(f"{method} {path} was answered {status}: {content[:300]!r}")
        return content

    def exchange(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return status and content of any response."""
        response = self._begin(method, path, body, headers or {})
        return response.status, response.read()

    def etag(self, path: str) -> str:
        """Return the ETag of a response."""
        response = self._begin("GET", path, None, {})
        response.read()
        return response.headers["ETag"]

    def unchanged(self, path: str, etag: str) -> None:
        """Request a response that the client already has.

        Raises:
            RuntimeError: the response is sent again.
        """
        status, _ = self.exchange("GET", path, headers={"If-None-Match": etag})
        if status != 304:
            raise RuntimeError(f"GET {path} was answered {status}, not 304")

    def drain(self, method: str, path: str, body: Any) -> tuple[int, int]:
        """Read a response without storing it; return the number of bytes and of line ends."""
        response = self._begin(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        if response.status != 200:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {response.read(300)!r}")
        buffer, size, lines = bytearray(2**20), 0, 0
        while count := response.readinto(buffer):
            size += count
            lines += buffer.count(b"\n", 0, count)
        return size, lines


def target(path: str, **parameters: Any) -> str:
    """Return path and query string; a list is a repeated parameter, ``tag__team`` is the parameter ``tag:team``."""
    pairs = [
        (name, value) for name, given in parameters.items() for value in (given if isinstance(given, list) else [given])
    ]
    return f"{quote(path)}?{urlencode(pairs)}" if pairs else quote(path)
