"""``chargeback serve``."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.cli.conftest import COMMAND, Demo, Run, environment
from tests.config.conftest import tenant
from tests.support.databases import raw_connection
from tests.support.processes import free_port

pytestmark = pytest.mark.usefixtures("process")


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Return a function that starts ``chargeback serve`` with a configuration and arguments."""

    def start(text: str, *words: str) -> subprocess.Popen[str]:
        (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
        return subprocess.Popen(
            [*COMMAND, "serve", "--config", str(tmp_path / "c.yaml"), *words],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def wait_for(process: subprocess.Popen[Any], url: str) -> httpx.Response:
    """Return the first response of a service that is starting."""
    until = time.monotonic() + 60
    while True:
        try:
            return httpx.get(url, timeout=30)
        except httpx.TransportError:
            if time.monotonic() > until or process.poll() is not None:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize("mode", [pytest.param("api", marks=pytest.mark.drill), "both"])
def test_serving_until_sigterm(serve: Callable[..., subprocess.Popen[str]], demo: Demo, mode: str) -> None:
    """The API responds in modes api and both; SIGTERM ends the process in time with exit code 0."""
    port = free_port()
    text = demo.file.read_text().replace("port: 8080", f"port: {port}")
    process = serve(text, "--mode", mode)
    try:
        assert wait_for(process, f"http://127.0.0.1:{port}/health").json()["status"] == "ok"
        assert httpx.get(f"http://127.0.0.1:{port}/api/v1/readiness", timeout=30).json()["mode"] == mode
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert f"listening on http://127.0.0.1:{port}" in said
    assert "Traceback" not in said


def test_a_worker_without_a_port(serve: Callable[..., subprocess.Popen[str]], demo: Demo) -> None:
    """In mode worker, the pipeline runs without HTTP, and SIGTERM ends it."""
    process = serve(demo.file.read_text(), "--mode", "worker")
    said: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if "Tenant acme: gathered=3" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert not any("listening" in line for line in said)


def test_a_worker_with_a_port(serve: Callable[..., subprocess.Popen[str]], demo: Demo) -> None:
    """With features.worker_port, a worker serves `/health`."""
    port = free_port()
    process = serve(f"features: {{worker_port: {port}}}\n" + demo.file.read_text(), "--mode", "worker")
    try:
        assert wait_for(process, f"http://127.0.0.1:{port}/health").json()["status"] == "ok"
        assert httpx.get(f"http://127.0.0.1:{port}/api/v1/tenants", timeout=30).status_code == 404
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0


def test_a_port_that_is_taken(chargeback: Run, tmp_path: Path) -> None:
    """A port in use is a one-line error with exit code 1; no storage is created."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "c.yaml").write_text(f"api: {{port: {taken.getsockname()[1]}}}\n{tenant()}")
        said = chargeback("serve", "--config", "c.yaml", "--mode", "api")
    assert said.returncode == 1
    assert "cannot listen on 127.0.0.1:" in said.stderr
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "acme.db").exists()


@pytest.mark.parametrize(
    ("change", "words", "mode"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "written by a newer version", "api"),
        ("DELETE FROM alembic_version", "the migration history is broken", "worker"),
        ("UPDATE tenant SET tenant_id = 'org-2'", "belongs to tenant_id org-2 .* uses it for tenant_id acme", "both"),
        ("UPDATE tenant SET tenant_id = 'org-2'", "belongs to tenant_id org-2 .* uses it for tenant_id acme", "worker"),
        ("UPDATE tenant SET tenant_id = 'org-2'", "belongs to tenant_id org-2 .* uses it for tenant_id acme", "api"),
    ],
)
def test_storage_that_must_not_be_used(chargeback: Run, tmp_path: Path, mode: str, change: str, words: str) -> None:
    """In every mode, a newer schema, a broken history and storage of another tenant are an error at start."""
    (tmp_path / "c.yaml").write_text(f"api: {{port: {free_port()}}}\n{tenant()}")
    assert chargeback("db", "upgrade", "--config", "c.yaml").returncode == 0
    with raw_connection(f"sqlite:///{tmp_path / 'acme.db'}") as connection:
        connection.execute(text(change))
    said = chargeback("serve", "--config", "c.yaml", "--mode", mode)
    assert said.returncode == 1
    assert re.search(words, said.stderr)
    assert "Traceback" not in said.stderr


def test_an_unknown_mode(chargeback: Run) -> None:
    """An unknown mode is a usage error."""
    assert chargeback("serve", "--config", "c.yaml", "--mode", "all").returncode == 2
