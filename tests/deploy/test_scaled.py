"""The deployment on several machines: its files are valid, and its commands work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from chargeback.config import load_configuration
from chargeback.config.compute import ComputeSettings
from chargeback.pipeline.fleet import connect
from tests.deploy.test_alerts import promtool
from tests.support.objects import ObjectServer, free_ports, remove_sockets
from tests.support.processes import eventually, free_port

pytestmark = pytest.mark.usefixtures("process")

SCALED = Path(__file__).parents[2] / "deploy" / "scaled"
TLS = "/etc/chargeback-tls"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of the Compose file, anchors resolved."""
    found: dict[str, Any] = yaml.safe_load((SCALED / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return found


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the script for certificates creates."""
    folder = tmp_path_factory.mktemp("made") / "tls"
    subprocess.run([str(SCALED / "certificates"), str(folder)], check=True, capture_output=True, timeout=60)
    return folder


@contextmanager
def started(command: list[str], **environment: str) -> Iterator[None]:
    """Run a program of this environment for the length of the ``with``."""
    program = Path(sys.executable).with_name(command[0])
    with subprocess.Popen(
        [program, *command[1:]],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, 9)


def test_the_configuration_is_valid(monkeypatch: pytest.MonkeyPatch, services: dict[str, Any]) -> None:
    """The configuration loads when its variables are set, and matches the services of the Compose file."""
    for name in re.findall(r"\$\{(\w+)\}", (SCALED / "chargeback.yaml").read_text(encoding="utf-8")):
        monkeypatch.setenv(name, "http://localhost:9090" if name.endswith("URL") else "value")
    configuration = load_configuration(SCALED / "chargeback.yaml")
    storage = configuration.tenants["main"].storage
    assert str(storage.facts_path) == "s3://chargeback/main"
    assert configuration.features.compute.address == services["dask-1"]["command"][2]
    assert services.keys() >= {"s3", "scheduler", "dask-1", "dask-2", "worker", "worker-2", "api-1", "api-2"}


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    """promtool accepts the configuration with the rules of the other deployment, and both workers are scraped."""
    for file in (SCALED / "prometheus.yaml", SCALED.parent / "alerts.yaml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert "SUCCESS" in promtool("check", "config", str(tmp_path / "prometheus.yaml"))
    assert "worker-2:8090" in (SCALED / "prometheus.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["scheduler", "dask-1", "dask-2"])
def test_what_runs_the_programs_of_others_has_few_rights(services: dict[str, Any], name: str) -> None:
    """Dask containers have a read-only root, no capabilities, no published port, and no secrets but the
    certificates."""
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"ports", "env_file", "environment"}


def test_the_certificates_are_for_their_owner_alone(tls: Path) -> None:
    """Other users cannot read the key, and existing files are not replaced."""
    assert {file.name for file in tls.iterdir()} == {"ca.pem", "cert.pem", "key.pem"}
    assert (tls / "key.pem").stat().st_mode & 0o077 == 0
    again = subprocess.run([str(SCALED / "certificates"), str(tls)], capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "move it away first" in again.stderr


def test_the_scheduler_finds_its_workers(services: dict[str, Any], tls: Path) -> None:
    """With the commands of the Compose file and the certificates, a client sees a worker at the scheduler."""
    address = f"tls://127.0.0.1:{free_port()}"

    def here(name: str) -> list[str]:
        words: list[str] = services[name]["command"]
        at = {"tls://0.0.0.0:8786": address, "tls://scheduler:8786": address, "/tmp": str(tls.parent)}
        return [at.get(word, word.replace(TLS, str(tls))) for word in words]

    files = {name: str(tls / f"{name.removeprefix('tls_')}.pem") for name in ("tls_ca", "tls_cert", "tls_key")}
    settings = ComputeSettings.model_validate({"type": "dask", "address": address, **files})
    with ExitStack() as stack:
        for name in ("scheduler", "dask-1"):
            stack.enter_context(started(here(name)))
        with connect(settings) as client:
            assert len(client.nthreads()) == 1


def test_the_object_storage_knows_its_users(services: dict[str, Any], tmp_path: Path) -> None:
    """With the command and the variables of the Compose file, the storage rejects requests without the key."""
    master, volume, filer, s3 = free_ports(4)
    words = [
        word.replace("/data", str(tmp_path)).replace("-ip=s3", "-ip=127.0.0.1") for word in services["s3"]["command"]
    ]
    ports = [f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}"]
    key, secret = "a-key", "a-secret-of-this-test"
    names = dict(zip(services["s3"]["environment"], (key, secret), strict=True))
    server = ObjectServer(f"http://127.0.0.1:{s3}", key, secret, "chargeback")
    with started(["weed", *words, *ports, "-s3.port.iceberg=0", "-s3.port.lance=0"], **names):
        eventually(server.responds, 60)
        assert httpx.put(f"{server.endpoint}/chargeback/stranger", content=b"").status_code == 403
    remove_sockets((master, volume, filer, s3))
