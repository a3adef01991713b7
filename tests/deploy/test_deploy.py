"""The example deployments are valid, and the service has no rights that it does not need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from chargeback.config import load_configuration
from tests.deploy.test_alerts import promtool

pytestmark = pytest.mark.usefixtures("process")

DEPLOY = Path(__file__).parents[2] / "deploy"
CONFIG = DEPLOY / "chargeback.yaml"


def compose() -> dict[str, Any]:
    """Return the services of the Compose file, anchors resolved."""
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return services


def kubernetes() -> dict[str, Any]:
    """Return the parts of deploy/kubernetes by file name."""
    files = (DEPLOY / "kubernetes").glob("*.yaml")
    return {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}


def test_the_configuration_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration loads when its variables are set, and its ports match the other files."""
    for name in re.findall(r"\$\{(\w+)\}", CONFIG.read_text(encoding="utf-8")):
        monkeypatch.setenv(name, "http://localhost:9090" if name.endswith("URL") else "value")
    configuration = load_configuration(CONFIG)
    targets = f"api-1:{configuration.api.port}", f"worker:{configuration.features.worker_port}"
    scraped = (DEPLOY / "prometheus.yaml").read_text(encoding="utf-8")
    assert all(target in scraped for target in targets)
    assert Path(str(configuration.tenants["main"].storage.facts_path)).is_relative_to("/var/lib/chargeback")
    assert configuration.tenants["main"].storage.database == "postgresql postgres:5432/chargeback"


def test_prometheus_takes_its_configuration() -> None:
    """promtool accepts the configuration and the rules that it refers to."""
    assert "SUCCESS" in promtool("check", "config", str(DEPLOY / "prometheus.yaml"))


def test_prometheus_scrapes_confluent_cloud_as_documented() -> None:
    """Prometheus accepts the scrape configuration for Confluent Cloud, and the documentation shows the whole file."""
    file = DEPLOY / "prometheus-confluent.yaml"
    assert "SUCCESS" in promtool("check", "config", str(file))
    page = (DEPLOY.parent / "docs" / "confluent-cloud.md").read_text(encoding="utf-8")
    assert f"```yaml\n{file.read_text(encoding='utf-8')}```" in page


def test_the_services_are_there() -> None:
    """There are two API processes, a worker, a database and a monitoring system; ports are on the loopback only."""
    services = compose()
    assert services.keys() == {"api-1", "api-2", "worker", "postgres", "prometheus"}
    modes = {name: services[name]["command"][-1] for name in ("api-1", "api-2", "worker")}
    assert modes == {"api-1": "api", "api-2": "api", "worker": "worker"}
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


@pytest.mark.parametrize("name", ["api-1", "api-2", "worker"])
def test_the_containers_have_few_rights(name: str) -> None:
    """Containers have a read-only root, no capabilities, no new privileges, and enough time to stop."""
    service = compose()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["stop_grace_period"].removesuffix("s")) > 10
    assert "/tmp:size=1g,mode=1777" in service["tmpfs"]
    assert "facts:/var/lib/chargeback" in service["volumes"]


@pytest.mark.parametrize("part", kubernetes()["kustomization"]["resources"])
def test_kubernetes_takes_its_files(part: str) -> None:
    """Each part conforms to the schemas of the oldest and the newest supported version, without unknown fields."""
    for version in ("1.33", "1.37"):
        kubernetes_validate.validate(kubernetes()[Path(part).stem], version, strict=True)


def test_the_parts_of_the_pod_fit_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Volumes and labels of the parts match each other, and the configuration is valid."""
    parts = kubernetes()
    template = parts["deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    assert volumes.keys() == {mount["name"] for mount in container["volumeMounts"]}
    assert volumes["configuration"]["configMap"]["name"] == parts["configuration"]["metadata"]["name"]
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == parts["data"]["metadata"]["name"]
    labels = template["metadata"]["labels"]
    assert parts["deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert parts["service"]["spec"]["selector"] == labels
    assert parts["network-policy"]["spec"]["podSelector"]["matchLabels"] == labels
    for name in re.findall(r"\$\{(\w+)\}", parts["configuration"]["data"]["chargeback.yaml"]):
        monkeypatch.setenv(name, "http://localhost:9090" if name.endswith("URL") else "value")
    config = tmp_path / "chargeback.yaml"
    config.write_text(parts["configuration"]["data"]["chargeback.yaml"], encoding="utf-8")
    configuration = load_configuration(config)
    assert configuration.api.port == container["ports"][0]["containerPort"]
    assert Path(str(configuration.tenants["main"].storage.facts_path)).is_relative_to("/var/lib/chargeback")


def test_the_pod_has_few_rights() -> None:
    """The pod has no root user, no capabilities, a read-only root file system, and no service account token."""
    pod = kubernetes()["deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_unit_is_valid() -> None:
    """systemd accepts every line of the unit, and rates its exposure below 3."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("there is no systemd-analyze on this machine")
    unit = DEPLOY / "chargeback.service"
    checked = subprocess.run([tool, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    complaints = [line for line in checked.stderr.splitlines() if "chargeback.service" in line and "/opt/" not in line]
    assert complaints == []
    rated = subprocess.run(
        [tool, "security", "--offline=true", "--no-pager", str(unit)], capture_output=True, text=True, check=False
    )
    (exposure,) = re.findall(r"exposure level for chargeback.service: ([\d.]+)", rated.stdout)
    assert float(exposure) < 3
