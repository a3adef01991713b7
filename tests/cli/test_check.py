"""``chargeback check``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from chargeback.demo.faults import Fault
from tests.cli.conftest import COMMAND, Demo, Run, environment
from tests.config.conftest import CLOUD, tenant
from tests.support.careless import careless_store
from tests.support.databases import scratch_database
from tests.support.issuer import Issuer
from tests.support.objects import object_server

SIX_MISTAKES = """
api: {port: 99999}
loging: {}
tenants:
  acme:
    ecosystem: confluent_cloud
    tenant_id: acme
    lookback_days: 3
    cutoff_days: 7
    storage: {connection_string: "mysql://me:my-password@host/x"}
    plugin_settings:
      ccloud_api: {key: KEY, secret: "${CHARGEBACK_TEST_UNSET}"}
      metrics: {url: "http://localhost:9090", auth_type: basic, username: me}
"""


def test_six_mistakes_are_six_lines(chargeback: Run, tmp_path: Path) -> None:
    """Six different mistakes in a file are printed as six lines without secrets, and the exit code is 2."""
    (tmp_path / "c.yaml").write_text(SIX_MISTAKES)
    said = chargeback("check", "--config", "c.yaml")
    assert said.returncode == 2
    errors = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
    assert [line.split(": ")[1] for line in sorted(errors)] == [
        "api.port",
        "loging",
        "tenants.acme.lookback_days",
        "tenants.acme.plugin_settings.ccloud_api.secret",
        "tenants.acme.plugin_settings.metrics",
        "tenants.acme.storage.connection_string",
    ]
    assert "6 problems" in said.stderr
    assert "my-password" not in said.stderr + said.stdout
    assert "Traceback" not in said.stderr


def test_a_valid_file(chargeback: Run, tmp_path: Path) -> None:
    """The output for a valid file has the tenants and where their data is, but no secret."""
    (tmp_path / "c.yaml").write_text(tenant())
    said = chargeback("check", "--config", "c.yaml")
    assert (said.returncode, said.stderr) == (0, "")
    assert str(tmp_path / "acme.facts") in said.stdout
    assert "top-secret" not in said.stdout


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("{}", "access: none; everybody who reaches the service may see and change everything"),
        (
            "{mode: proxy, proxy: {trusted: [10.0.3.7]}, roles: [{groups: [a], allow: [read]}]}",
            "access: proxy, 1 role; `chargeback access explain` shows what a user may do",
        ),
    ],
)
def test_who_may_see_what(chargeback: Run, tmp_path: Path, access: str, said: str) -> None:
    """The summary has the access mode and the number of roles."""
    (tmp_path / "c.yaml").write_text(f"access: {access}\n{tenant()}")
    assert said in chargeback("check", "--config", "c.yaml").stdout.splitlines()


def test_the_keys_of_an_issuer(chargeback: Run, tmp_path: Path) -> None:
    """A key file is read; an address is requested only with --online."""
    jwt = "mode: jwt, roles: [{users: ['.*'], allow: [read]}], jwt: {issuer: x, audience: y, "
    (tmp_path / "c.yaml").write_text(f"access: {{{jwt} jwks_file: keys.json}}}}\n{tenant()}")
    said = chargeback("check", "--config", "c.yaml")
    assert said.returncode == 1
    assert f"access.jwt.jwks_file: {tmp_path / 'keys.json'} cannot be read: No such file" in said.stderr
    Issuer().publish(tmp_path / "keys.json")
    assert chargeback("check", "--config", "c.yaml").returncode == 0
    (tmp_path / "c.yaml").write_text(f"access: {{{jwt} jwks_url: 'http://127.0.0.1:9/k'}}}}\n{tenant()}")
    assert chargeback("check", "--config", "c.yaml").returncode == 0
    assert "access.jwt.jwks_url: " in chargeback("check", "--config", "c.yaml", "--online").stderr


def test_a_gap_longer_than_the_interval_is_a_warning(chargeback: Run, tmp_path: Path) -> None:
    """If the gap between refreshes is longer than the interval, a warning describes the effect."""
    settings = f"{{{CLOUD}, min_refresh_gap_seconds: 1800}}"
    (tmp_path / "c.yaml").write_text("features: {refresh_interval: 600}\n" + tenant(plugin_settings=settings))
    said = chargeback("check", "--config", "c.yaml")
    assert said.returncode == 0
    assert "warning: tenant acme is refreshed only every 1800 s" in said.stderr
    (tmp_path / "c.yaml").write_text("features: {refresh_interval: 1800}\n" + tenant(plugin_settings=settings))
    assert chargeback("check", "--config", "c.yaml").stderr == ""


def test_invalid_topics_are_a_warning(chargeback: Run, tmp_path: Path) -> None:
    """Invalid topic settings of a tenant are a warning, and the exit code is 0."""
    settings = f"{{{CLOUD}, topic_attribution: {{enabled: true}}}}"
    (tmp_path / "c.yaml").write_text(tenant(plugin_settings=settings))
    said = chargeback("check", "--config", "c.yaml")
    assert said.returncode == 0
    assert "warning: tenant acme works without topic attribution" in said.stderr


def test_online_tries_everything(chargeback: Run, demo: Demo) -> None:
    """--online tries every address and credential; each result is listed, and the exit code covers all of them."""
    right = chargeback("check", "--config", str(demo.file), "--online")
    assert (right.returncode, right.stderr) == (0, "")
    assert "environments" in right.stdout
    demo.server.faults.add("/iam", Fault(status=401, times=None))
    wrong = chargeback("check", "--config", str(demo.file), "--online")
    assert wrong.returncode == 1
    assert "FAILED" in wrong.stdout
    assert demo.server.secret not in wrong.stdout + wrong.stderr


@pytest.mark.extensive
def test_online_asks_the_workers(chargeback: Run, demo: Demo) -> None:
    """If workers calculate the days, --online lists how many there are."""
    demo.file.write_text("features: {compute: {type: dask, workers: 1}}\n" + demo.file.read_text())
    assert "Dask" not in chargeback("check", "--config", str(demo.file)).stdout
    said = chargeback("check", "--config", str(demo.file), "--online")
    assert (said.returncode, said.stderr) == (0, "")
    assert "compute: the Dask cluster of this machine has 1 worker, with the versions of this process" in said.stdout


def test_a_warning_is_shown_and_is_no_failure(chargeback: Run, demo: Demo) -> None:
    """A warning, such as a Flink region without statements, leaves the exit code at 0."""
    demo.server.faults.add("/flink", Fault(status=200, body='{"data": [], "metadata": {}}', times=None))
    said = chargeback("check", "--config", str(demo.file), "--online")
    assert (said.returncode, "FAILED" in said.stdout) == (0, False)
    warned = [line for line in said.stdout.splitlines() if line.startswith("  warning")]
    assert warned
    assert all("Flink region" in line and "no statements" in line for line in warned), said.stdout


def test_storage_of_another_tenant(chargeback: Run, tmp_path: Path) -> None:
    """Storage that belongs to another tenant_id is refused, by the check and by a run."""
    (tmp_path / "c.yaml").write_text(tenant())
    assert chargeback("db", "upgrade", "--config", "c.yaml").returncode == 0
    assert chargeback("check", "--config", "c.yaml").returncode == 0
    (tmp_path / "c.yaml").write_text(tenant(tenant_id="globex"))
    for command in ("check", "run"):
        said = chargeback(command, "--config", "c.yaml")
        assert said.returncode == 1
        assert "belongs to tenant_id acme (confluent_cloud)" in said.stderr
        assert "for tenant_id globex (confluent_cloud)" in said.stderr
        assert "configure another storage for this tenant" in said.stderr
        assert "Traceback" not in said.stderr


@pytest.mark.usefixtures("process")
def test_object_storage_is_tried_out(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """Only with --online, an object is written and deleted. A store without conditional writes passes, because the
    database orders the writers."""
    with scratch_database("postgresql", tmp_path) as address, careless_store() as store:
        written = yaml.safe_load(demo.file.read_text())
        location = store.location()
        storage = {"connection_string": address, "facts_path": str(location), "object_store": store.written}
        written["tenants"]["acme"]["storage"] = storage
        demo.file.write_text(yaml.safe_dump(written))
        assert chargeback("check", "--config", str(demo.file)).returncode == 0
        said = chargeback("check", "--config", str(demo.file), "--online")
    assert said.returncode == 0, said.stderr
    assert store.secret_access_key not in said.stdout + said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize(
    ("clock", "code", "told"),
    [
        ("+40s", 0, "warning: tenant acme: the clock of {} is [34][0-9] s behind this machine's: synchronise both"),
        ("-10m", 1, "error: tenant acme: the clock of {} is [56][0-9]+ s ahead of this machine's: synchronise both"),
        ("+20m", 1, r"error: .*{}.* time is too large\. Set the clock of this machine\. \(tenant acme\)"),
    ],
    ids=["wrong", "dangerous", "refused"],
)
def test_a_clock_that_differs(demo: Demo, tmp_path: Path, clock: str, code: int, told: str) -> None:
    """A clock difference is a warning, and an error well before requests are refused; if they are, the message says
    why."""
    with scratch_database("postgresql", tmp_path) as address:
        written = yaml.safe_load(demo.file.read_text())
        location = object_server().location()
        storage = {"connection_string": address, "facts_path": str(location), "object_store": object_server().written}
        written["tenants"]["acme"]["storage"] = storage
        demo.file.write_text(yaml.safe_dump(written))
        words = ["faketime", "-f", clock, *COMMAND, "check", "--config", str(demo.file), "--online"]
        said = subprocess.run(
            words, env=environment(), capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
        )
    assert said.returncode == code, said.stderr
    lines = said.stderr.splitlines()
    for name in (str(location),) if clock == "+20m" else ("the control database", str(location)):
        assert any(re.match(told.format(re.escape(name)), line) for line in lines), said.stderr
