"""The example configurations are valid, and those with constructed costs run against a real Prometheus."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
import yaml

from chargeback.api.app_factory import create_app_from
from chargeback.config import load_configuration
from chargeback.demo.config import demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.model.money import total
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.engine import Engine
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.verify import verify
from chargeback.store.tenant import open_store
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.kafka import closed_port
from tests.support.openmetrics import Scrapes, Value, steady
from tests.support.pipeline import run_pipeline
from tests.support.prometheus import RealPrometheus
from tests.support.serving import served

pytestmark = pytest.mark.usefixtures("process")

EXAMPLES = Path(__file__).parents[2] / "examples"
LOOKBACK_DAYS = 3
GIB, MIB = 2**30, 2**20


def copied(name: str, folder: Path) -> Path:
    """Return a copy of an example in a folder, for its data, with a shorter lookback."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert "lookback_days: 14" in text
    (folder / name).write_text(text.replace("lookback_days: 14", f"lookback_days: {LOOKBACK_DAYS}"), encoding="utf-8")
    return folder / name


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """The metrics of the examples' exporters, for the days of the lookback until now."""
    seen = Scrapes(TODAY - timedelta(days=LOOKBACK_DAYS), TODAY, every=4)
    last = (NOW - seen.start) // timedelta(minutes=1)

    def until_now(value: Value) -> Value:
        return lambda minute: value(minute) if minute <= last else None

    topic = {"job": "kafka-prod", "instance": "b1:7071", "topic": "orders"}
    for name, who in (("bytesin", "User:checkout"), ("bytesout", "User:warehouse")):
        labels = {**topic, "principal": who}
        seen.counter(f"kafka_server_brokertopicmetrics_{name}_total", labels, until_now(steady(MIB)))
    seen.gauge("kafka_log_log_size", {**topic, "partition": "0"}, until_now(lambda _: 10 * GIB))
    seen.gauge("pg_database_size_bytes", {"datname": "shop"}, until_now(lambda _: 10 * GIB))
    interface = {"device": "eth0", "instance": "pg-main:9100"}
    seen.counter("node_network_transmit_bytes_total", interface, until_now(steady(MIB)))
    # postgres_exporter calls some counters by names without _total.
    seen.gauge("pg_stat_database_tup_returned", {"datname": "shop"}, until_now(steady(1000)))
    with RealPrometheus(seen.text()) as server:
        yield server


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: str(file.name))
def test_every_example_is_valid(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example is valid when its variables are set, and its comments name these variables."""
    text = file.read_text(encoding="utf-8")
    active = "\n".join(line.partition("#")[0] for line in text.splitlines())
    for name in set(re.findall(r"\$\{(\w+)\}", active)):
        assert name in text.partition("\ntenants:")[0], f"the head of {file.name} does not speak of {name}"
        monkeypatch.setenv(name, "http://localhost:9090" if name.endswith("URL") else "value")
    assert load_configuration(file).tenants


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: str(file.name))
def test_what_is_commented_out_is_valid_too(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys that an example suggests in comments are valid in their place."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        offered = re.match(r"^( *)# ((?:- |  )*[a-z_A-Z]+:(?: .*)?|  +.*)$", line)
        lines.append(f"{offered[1]}{offered[2]}" if offered and "chargeback " not in line else line)
    text = "\n".join(lines)
    for name in set(re.findall(r"\$\{(\w+)\}", text)):
        monkeypatch.setenv(name, "http://localhost:9090" if name.endswith("URL") else "value")
    written = tmp_path / file.name
    written.write_text(re.sub(r"(?m)^ +(connection_string: postgresql|facts_path).*\n", "", text), encoding="utf-8")
    assert load_configuration(written).tenants


@pytest.mark.parametrize(
    ("name", "tenant", "payers"),
    [
        ("self-managed-kafka.yaml", "kafka-prod", {"User:checkout", "User:warehouse"}),
        ("generic-metrics.yaml", "databases", {"shop"}),
    ],
)
def test_an_example_runs(
    name: str,
    tenant: str,
    payers: set[str],
    prometheus: RealPrometheus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With only the address of the metrics set, the example bills and allocates every day of its window."""
    monkeypatch.setenv("METRICS_URL", prometheus.url)
    with run_pipeline(copied(name, tmp_path), tenant) as ran:
        assert ran.result.outcome is RunOutcome.COMPLETED, ran.result.errors
        checks = ran.checks()
        assert len(checks) == LOOKBACK_DAYS - 1
        assert all(check.state == "calculated" and check.difference == 0 and check.billing > 0 for check in checks)
        assert {row["identity_id"] for row in ran.chargebacks(checks[1].day)} == payers


def test_three_kinds_of_bill_in_one_service(
    prometheus: RealPrometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process runs and serves a cloud's bill, a self-managed cluster and a database, and each adds up exactly."""
    monkeypatch.setenv("METRICS_URL", prometheus.url)
    organisation = Organisation.generate(DemoSpec(today=TODAY, size="small", days=8))
    with DemoServer(organisation) as provider:
        document = yaml.safe_load(demo_configuration(provider.info, tmp_path))
        for name in ("self-managed-kafka.yaml", "generic-metrics.yaml"):
            document["tenants"] |= yaml.safe_load(copied(name, tmp_path).read_text(encoding="utf-8"))["tenants"]
        (tmp_path / "all.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        configuration = load_configuration(tmp_path / "all.yaml")
        engine = Engine(configuration, None, clock=FixedClock())
        try:
            results = engine.run_once(list(configuration.tenants), RunRequest())
            with (
                served(create_app_from(configuration, "both", engine, FixedClock())) as address,
                httpx.Client(base_url=f"{address}/api/v1", timeout=60) as client,
            ):
                summaries = client.get("/tenants").json()
                sums = {name: _sums(client, name) for name in configuration.tenants}
        finally:
            engine.stop()
    assert [result.outcome for result in results] == [RunOutcome.COMPLETED] * 3
    assert [summary["tenant_name"] for summary in summaries] == ["acme", "databases", "kafka-prod"]
    assert all(billed == charged > 0 for billed, charged in sums.values())
    for tenant in configuration.tenants.values():
        with closing(open_store(tenant)) as store:
            assert {(check.state, check.difference) for check in verify(store)} == {("calculated", Decimal(0))}


def _sums(client: httpx.Client, tenant: str) -> tuple[Decimal, Decimal]:
    """Return the billed and the charged amount according to the API."""
    lines = client.get(f"/tenants/{tenant}/billing", params={"page_size": 1000}).json()
    assert lines["pages"] == 1
    charged = client.get(f"/tenants/{tenant}/chargebacks/aggregate").json()["total_amount"]
    return total(Decimal(line["total_cost"]) for line in lines["items"]), Decimal(charged)


@pytest.mark.parametrize(
    ("name", "tenant", "doubtful"),
    [("self-managed-kafka.yaml", "kafka-prod", {"brokers"}), ("generic-metrics.yaml", "databases", set())],
)
def test_an_example_is_checked_online(
    name: str,
    tenant: str,
    doubtful: set[str],
    prometheus: RealPrometheus,
    tmp_path: Path,
    context: TenantContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check of an example has no warnings except for brokers, of which only one is served here."""
    monkeypatch.setenv("METRICS_URL", prometheus.url)
    configured = load_configuration(copied(name, tmp_path)).tenants[tenant]
    with configured.ecosystem.open(context, configured.plugin_settings) as gatherer:
        found: list[Finding] = list(gatherer.check())
    assert {finding.subject for finding in found if not finding.ok or finding.warning} == doubtful


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: str(file.name))
def test_an_example_is_served(file: Path, tmp_path: Path) -> None:
    """The service starts with the example, responds, and stops when requested."""
    port = closed_port()
    text = file.read_text(encoding="utf-8").replace("port: 8080", f"port: {port}")
    written = tmp_path / file.name
    written.write_text(text if str(port) in text else f"api: {{port: {port}}}\n{text}", encoding="utf-8")
    variables = {"METRICS_URL": "http://127.0.0.1:9", "CONFLUENT_CLOUD_API_KEY": "K", "CONFLUENT_CLOUD_API_SECRET": "S"}
    process = subprocess.Popen(
        [sys.executable, "-m", "chargeback", "serve", "--config", str(written), "--mode", "api"],
        env=os.environ | variables,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening on" in line:
                break
        assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=30).json()["status"] == "ok"
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 0, said
