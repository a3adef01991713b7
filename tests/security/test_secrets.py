"""No output contains a secret: not logs of any level, responses, files, the list of processes, or a repr."""

from __future__ import annotations

import base64
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import yaml

from chargeback.config import load_configuration
from chargeback.demo.faults import Fault
from tests.cli.conftest import COMMAND, Demo, chargeback, demo, environment
from tests.cli.test_serve import wait_for
from tests.support.processes import free_port

__all__ = ["chargeback", "demo"]

PASSWORD = "metrics-pa$$word/with+signs"
COMMANDS = (["check", "--online"], ["verify"], ["run", "--recalculate"])


@dataclass
class Said:
    """Everything that could reveal a secret."""

    texts: dict[str, bytes] = field(default_factory=dict)
    processes: set[bytes] = field(default_factory=set)


def secrets_of(demo: Demo) -> dict[str, bytes]:
    """Return every secret in every encoding, by name."""
    info = demo.server.info
    plain = {"cloud secret": info.secret, "metrics password": PASSWORD}
    plain |= {f"flink secret of {access.region_id}": access.secret for access in info.flink}
    pairs = [(info.key, info.secret), ("reader", PASSWORD), *((access.key, access.secret) for access in info.flink)]
    forms = {name: secret.encode() for name, secret in plain.items()}
    forms |= {f"{name}, quoted": quote(secret, safe="").encode() for name, secret in plain.items()}
    forms |= {f"header {key}": base64.b64encode(f"{key}:{secret}".encode()) for key, secret in pairs}
    return forms


@pytest.fixture
def file(demo: Demo) -> Path:
    """The demo's configuration with one more password, and all logging on."""
    written = yaml.safe_load(demo.file.read_text())
    metrics = written["tenants"]["acme"]["plugin_settings"]["metrics"]
    metrics |= {"auth_type": "basic", "username": "reader", "password": PASSWORD}
    loud = ("httpx", "httpcore", "sqlalchemy", "alembic", "uvicorn")
    written["logging"] = {"level": "DEBUG", "format": "json", "per_module_levels": dict.fromkeys(loud, "DEBUG")}
    written["api"]["port"] = free_port()
    demo.file.write_text(yaml.safe_dump(written))
    return demo.file


def list_processes(said: Said, ended: threading.Event) -> None:
    """Record the command lines of all processes until the end."""
    while not ended.wait(0.05):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                said.processes.add(path.read_bytes())
            except OSError:
                continue


@pytest.fixture
def said(file: Path, demo: Demo) -> Iterator[Said]:
    """The output of a service that runs, fails, gets requests and is stopped, and of every command."""
    said, ended = Said(), threading.Event()
    watching = threading.Thread(target=list_processes, args=(said, ended), daemon=True)
    watching.start()
    state = {"CHARGEBACK_STATE_DIR": str(file.parent / "state")}
    _serve(said, file, demo, state)
    demo.server.faults.add("/fcpm/v2/compute-pools", Fault(status=403, body="no {}", times=None))
    for words in COMMANDS:
        done = subprocess.run(
            [*COMMAND, *words, "--config", str(file)],
            env=environment(**state),
            capture_output=True,
            timeout=120,
            check=False,
        )
        said.texts[" ".join(words)] = done.stdout + done.stderr
    ended.set()
    watching.join()
    yield said


def _serve(said: Said, file: Path, demo: Demo, state: dict[str, str]) -> None:
    address = f"http://127.0.0.1:{yaml.safe_load(file.read_text())['api']['port']}"
    demo.server.faults.add("/prometheus/api/v1/query", Fault(status=401, times=2))
    log = file.parent / "service.log"
    with log.open("wb") as output:  # a pipe would fill up
        command = [*COMMAND, "serve", "--config", str(file)]
        process = subprocess.Popen(command, env=environment(**state), stdout=output, stderr=output)
    try:
        wait_for(process, f"{address}/health")
        status = f"{address}/api/v1/tenants/acme/pipeline/status"
        until = time.monotonic() + 60
        while httpx.get(status, timeout=30).json().get("last_run") is None:
            assert time.monotonic() < until
            time.sleep(0.1)
        for path in ("/metrics", "/openapi.json", "/api/v1/readiness", "/api/v1/tenants", "/api/v1/tenants/x/billing"):
            said.texts[path] = httpx.get(f"{address}{path}", timeout=30).content
        for path in ("status", "billing", "chargebacks", "resources", "identities", "tags", "pipeline/status"):
            said.texts[path] = httpx.get(f"{address}/api/v1/tenants/acme/{path}", timeout=30).content
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        said.texts["serve"] = log.read_bytes()
    finally:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("process")
def test_nothing_that_a_service_says_or_writes_has_a_secret(said: Said, file: Path, demo: Demo) -> None:
    """Logs at the highest level, responses, process lists and files have no secret, with failures of all kinds."""
    texts = dict(said.texts)
    texts["the list of processes"] = b"\n".join(said.processes)
    texts |= {str(path): path.read_bytes() for path in file.parent.rglob("*") if path.is_file() and path != file}
    assert len(texts["serve"]) > 10_000
    assert any(b"spawn" in line for line in said.processes)
    assert len(texts) > 30
    found = [
        (name, where) for name, secret in secrets_of(demo).items() for where, text in texts.items() if secret in text
    ]
    assert found == []


def test_the_test_would_notice(file: Path, demo: Demo) -> None:
    """The configuration has the secrets as they are searched for."""
    text = file.read_bytes()
    names = [name for name, secret in secrets_of(demo).items() if secret in text]
    assert {"cloud secret", "metrics password"} <= set(names)


def test_no_repr_has_a_secret(file: Path, demo: Demo) -> None:
    """The repr of the configuration, and of anything in it, shows no secret."""
    configuration = load_configuration(file)
    tenant = configuration.tenants["acme"]
    shown = [configuration, tenant, tenant.settings, tenant.plugin_settings, tenant.storage, vars(tenant)]
    text = "\n".join(f"{each!r}\n{each}" for each in shown).encode()
    assert [name for name, secret in secrets_of(demo).items() if secret in text] == []
