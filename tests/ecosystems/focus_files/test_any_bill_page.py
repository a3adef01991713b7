"""The examples and tables of ``docs/any-bill.md``, with files in the layout of the providers."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from chargeback.config.problems import walk
from chargeback.ecosystems.constructed.settings import ConstructedSettings
from chargeback.ecosystems.focus_files.settings import FocusFilesSettings
from chargeback.model.money import total
from chargeback.pipeline.run_messages import RunOutcome
from tests.config.test_documentation import default, holds_others
from tests.ecosystems.focus_files.conftest import row, settled, write_csv, write_parquet
from tests.support.clock import NOW, TODAY
from tests.support.openmetrics import Scrapes, Value, steady
from tests.support.pipeline import Ran, run_pipeline
from tests.support.prometheus import RealPrometheus

PAGE = (Path(__file__).parents[3] / "docs" / "any-bill.md").read_text(encoding="utf-8")
FIRST, DAY = TODAY - timedelta(days=4), TODAY - timedelta(days=2)
MIB = 2**20


def example(heading: str) -> str:
    """Return the configuration of a section."""
    return PAGE.partition(f"\n## {heading}\n")[2].partition("```yaml\n")[2].partition("```")[0]


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """Brokers that count the bytes of two principals in a ratio of three to one."""
    seen = Scrapes(FIRST, TODAY)
    last = (NOW - seen.start) // timedelta(minutes=1)

    def until_now(value: Value) -> Value:
        return lambda minute: value(minute) if minute <= last else None

    for principal, rate in (("checkout", 3 * MIB), ("billing", MIB)):
        for counter in ("kafka_bytes_in_total", "kafka_bytes_out_total"):
            seen.counter(counter, {"cluster": "orders", "principal": principal}, until_now(steady(rate)))
    for kind, principal, rate in (("classic", "checkout", 2), ("diskless", "checkout", 1), ("diskless", "billing", 4)):
        labels = {"topic_kind": kind, "principal": principal}
        seen.counter("kafka_kind_bytes_in_total", labels, until_now(steady(rate * MIB)))
    with RealPrometheus(seen.text()) as server:
        yield server


def hours(**changes: Any) -> list[dict[str, Any]]:
    """Return the 24 hourly rows of ``DAY``."""
    ends = [f"{DAY}T{hour:02d}:00:00Z" for hour in range(1, 24)] + [f"{DAY + timedelta(days=1)}T00:00:00Z"]
    return [
        row(ChargePeriodStart=f"{DAY}T{hour:02d}:00:00Z", ChargePeriodEnd=end) | changes
        for hour, end in enumerate(ends)
    ]


def run(folder: Path, heading: str, url: str = "http://127.0.0.1:9") -> Iterator[Ran]:
    """Run the configuration of a section over the files in ``folder``."""
    yield from run_settings(folder, example(heading).replace("/bill/", f"{folder}/").replace("${METRICS_URL}", url))


def run_settings(folder: Path, text: str, *, is_whole: bool = True) -> Iterator[Ran]:
    """Run a tenant with these plugin settings; unless ``is_whole``, the run must report errors."""
    tenant = {
        "ecosystem": "focus",
        "tenant_id": "it",
        "lookback_days": 4,
        "cutoff_days": 1,
        "storage": {"connection_string": "sqlite:///it.db"},
        "plugin_settings": yaml.safe_load(text),
    }
    file = folder / "chargeback.yaml"
    file.write_text(yaml.safe_dump({"tenants": {"it": tenant}}), encoding="utf-8")
    with run_pipeline(file, "it") as ran:
        expected = RunOutcome.COMPLETED if is_whole else RunOutcome.COMPLETED_WITH_ERRORS
        assert ran.result.outcome is expected, ran.result.errors
        assert all(check.difference == 0 for check in ran.checks())
        yield ran


def shares(ran: Ran) -> dict[tuple[str, str], Decimal]:
    """Return what each identity pays of each product type on the day."""
    found: dict[tuple[str, str], Decimal] = {}
    for each in ran.chargebacks(DAY):
        key = each["product_type"], each["identity_id"]
        found[key] = found.get(key, Decimal(0)) + each["amount"]
    return found


@pytest.mark.usefixtures("process")
def test_msk(tmp_path: Path, prometheus: RealPrometheus) -> None:
    """Brokers are split by bytes and evenly, storage evenly; other services and superseded files are ignored."""
    export = tmp_path / "aws" / "focus"
    data = export / "data" / "BILLING_PERIOD=2026-01"
    broker, other = hours(), hours(ServiceName="Amazon S3", ResourceId="arn:aws:s3:::logs")
    disk = hours(SkuMeter="USE1-Kafka-Storage-GB", EffectiveCost="0.01")
    resource = {"ResourceId": "arn:aws:kafka:us-east-1:1:cluster/orders/0"}
    write_parquet(data / "orders-00001.snappy.parquet", [each | resource for each in (*broker, *disk)])
    write_parquet(data / "orders-00002.snappy.parquet", other)
    write_parquet(data / "superseded.snappy.parquet", broker)
    names = [f"s3://bills/focus/data/BILLING_PERIOD=2026-01/orders-0000{number}.snappy.parquet" for number in (1, 2)]
    manifest = export / "metadata" / "BILLING_PERIOD=2026-01" / "focus-Manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"dataFiles": names}))
    settled(manifest)
    for ran in run(tmp_path, "MSK", prometheus.url):
        paid = shares(ran)
    assert paid == {
        ("MSK_BROKER", "checkout"): Decimal("2.916"),
        ("MSK_BROKER", "billing"): Decimal("1.404"),
        ("MSK_STORAGE", "checkout"): Decimal("0.12"),
        ("MSK_STORAGE", "billing"): Decimal("0.12"),
    }


@pytest.mark.usefixtures("process")
def test_event_hubs(tmp_path: Path, prometheus: RealPrometheus) -> None:
    """Only the newest run of the export counts; its rows are selected by subscription and service."""
    hub = {"ServiceName": "Event Hubs", "SubAccountId": "/subscriptions/0001", "SkuMeter": "", "Tags": ""}
    for number, cost in ((1, "9"), (2, "1")):
        folder = tmp_path / "azure" / "focus" / "20260101-20260131" / f"run-{number}"
        kept = [
            row(**hub, x_SkuMeterName="Standard Throughput Unit", BilledCost=cost, ChargePeriodStart=f"{DAY}T00:00Z")
        ]
        kept[0]["ChargePeriodEnd"] = f"{DAY + timedelta(days=1)}T00:00Z"
        kept.append(kept[0] | {"SubAccountId": "/subscriptions/0002"})
        written = write_csv(folder / "part_0_0001.csv", kept)
        (folder / "part_0_0001.csv.gz").write_bytes(gzip.compress(written.read_bytes()))
        written.unlink()
        settled(folder / "part_0_0001.csv.gz")
        info = {"submittedTime": f"2026-01-30T0{number}:00:00Z", "startDate": "2026-01-01", "endDate": "2026-01-31"}
        blobs = [{"blobName": f"focus/20260101-20260131/run-{number}/part_0_0001.csv.gz"}]
        (folder / "manifest.json").write_text(json.dumps({"runInfo": info, "blobs": blobs}))
        settled(folder / "manifest.json")
    for ran in run(tmp_path, "Event Hubs", prometheus.url):
        assert shares(ran) == {("EVENT_HUBS", "checkout"): Decimal("0.75"), ("EVENT_HUBS", "billing"): Decimal("0.25")}


@pytest.mark.usefixtures("process")
def test_machines(tmp_path: Path) -> None:
    """The tag selects rows of several services; machines and disks remain resources, traffic belongs to the cluster."""
    rows = [
        each | {"Tags": json.dumps({"kafka-cluster": cluster, "role": role}), "ResourceId": resource}
        for cluster, role, resource in (
            ("kafka-vm", "broker", "vm-1"),
            ("kafka-vm", "disk", "disk-1"),
            ("kafka-vm", "traffic", "net-1"),
            ("other", "broker", "vm-9"),
        )
        for each in hours()
    ]
    write_csv(tmp_path / "machines" / "january.csv", rows)
    for ran in run(tmp_path, "Your own machines in a cloud"):
        assert {line["resource_id"] for line in ran.bill(DAY)} == {"vm-1", "disk-1", "kafka-vm"}
        assert shares(ran) == {
            (role, team): Decimal("2.16") for role in ("broker", "disk", "traffic") for team in ("payments", "sales")
        }


@pytest.mark.usefixtures("process")
def test_redpanda(tmp_path: Path) -> None:
    """A monthly fee is spread over the days of the month."""
    month = {"ChargePeriodStart": "2026-01-01T00:00:00Z", "ChargePeriodEnd": "2026-02-01T00:00:00Z"}
    fee = row(**month, BilledCost="310", ServiceName="Redpanda BYOC", SkuMeter="Cluster fee", ListCost="")
    write_csv(tmp_path / "redpanda" / "2026-01.csv", [fee])
    for ran in run(tmp_path, "Redpanda in your own cloud"):
        assert total(line["total_cost"] for line in ran.bill(DAY)) == Decimal(10)
        assert shares(ran) == {("Cluster fee", "payments"): Decimal(10)}


@pytest.mark.usefixtures("process")
def test_kinds_of_topics(tmp_path: Path, prometheus: RealPrometheus) -> None:
    """A product type of one kind is split by the usage of that kind."""
    write_csv(tmp_path / "bill" / "a.csv", hours(SkuMeter="DISKLESS_INGRESS", EffectiveCost="1"))
    text = example("Topics of several kinds").replace("kafka_bytes_in_total", "kafka_kind_bytes_in_total")
    text += f"""
cluster_id: kinds
bill: {{files: {tmp_path / "bill"}}}
identity_source: {{source: static, static_identities: [{{identity_id: team}}]}}
metrics: {{url: "{prometheus.url}"}}
"""
    for ran in run_settings(tmp_path, text):
        paid = shares(ran)
    assert paid == {
        ("DISKLESS_INGRESS", "checkout"): Decimal("4.8"),
        ("DISKLESS_INGRESS", "billing"): Decimal("19.2"),
    }


@pytest.mark.usefixtures("process")
def test_a_month_that_shrinks(tmp_path: Path) -> None:
    """If a file is replaced by a part of it, the missing lines are removed only in the third run that finds it so."""
    bill = tmp_path / "bill" / "a.csv"
    text = f"""
cluster_id: c
bill: {{files: {tmp_path / "bill"}}}
identity_source: {{source: static, static_identities: [{{identity_id: team}}]}}
allocation_policies: {{"*": {{portions: [{{share: "1", try: [even(active)]}}]}}}}
"""
    whole = [*hours(), *hours(SkuMeter="STORAGE")]
    write_csv(bill, whole)
    for ran in run_settings(tmp_path, text):
        assert len(ran.bill(DAY)) == 2
    write_csv(bill, whole[:24])
    for kept in (2, 2, 1):
        for ran in run_settings(tmp_path, text, is_whole=kept == 1):
            assert len(ran.bill(DAY)) == kept
            assert any("1 instead of 2 lines" in error for error in ran.result.errors) == (kept == 2)


def test_every_key_is_documented() -> None:
    """The table lists exactly the keys of the settings and their defaults."""
    table = PAGE.partition("\n## Every key\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([^`]+)` \| (required|none|`[^`]+`) \|", table, re.MULTILINE))
    known = dict(walk(ConstructedSettings)).keys()
    existing = {
        path.replace(".column", ".from"): info
        for path, info in walk(FocusFilesSettings)
        if path not in known and not holds_others(info)
    }
    assert documented == {path: default(info) for path, info in existing.items()}
