"""Settings, inventory and checks of a tenant whose bill is files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.ecosystems.focus_files import FocusFilesSettings
from chargeback.ecosystems.focus_files.settings import AdminApi
from chargeback.model.inventory import ListedInventory
from tests.ecosystems.focus_files.conftest import STATIC, gatherer, row, settings_for, write_csv, write_parquet
from tests.support.kafka import MockCluster, closed_port

EVEN = {"portions": [{"share": "1", "try": ["even(active)"]}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_source": {"bootstrap_servers": "k:9092"}}, "resource_source.source"),
        ({"resource_source": {"source": "admin_api"}}, "bootstrap_servers is missing"),
        ({"bill": {"files": "ftp://x/y"}}, "should be a folder, a file, a pattern"),
        ({"bill": {"files": "x", "cost": "amortised"}}, "effective"),
        ({"bill": {"files": "x", "resource": {"from": "tag:"}}}, "should be the name of a column"),
        ({"bill": {"files": "x", "object_store": {"access_key_id": "k"}}}, "belong together"),
        ({"usage": {"presence": {"query": "x"}}}, "presence is a built-in measure"),
        ({"usage": {"bytes_in": {"query": "x"}}}, "metrics required: usage is measured"),
        ({"identity_source": {}}, "discovery_query is missing"),
        ({"chargeback_granularity": "hourly"}, "daily lines"),
        ({"allocation_policies": {"*": {"portions": [{"share": "1", "try": ["usage(x)"]}]}}}, "no such measure: x"),
    ],
)
def test_settings_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    """The error for each mistake says what to write."""
    keys: dict[str, Any] = {"cluster_id": "c", "identity_source": STATIC, "bill": {"files": "x"}}
    with pytest.raises(ValidationError, match=message):
        FocusFilesSettings.model_validate(keys | changes)


def test_the_inventory(context: TenantContext, tmp_path: Path) -> None:
    """The cluster and its users are listed without reading the bill."""
    with gatherer(context, settings_for(tmp_path / "missing")) as opened:
        listed = opened.inventory()
    assert [each.resource_id for each in listed.inventory.resources] == ["orders"]
    assert [each.identity_id for each in listed.inventory.identities] == ["team-a"]


def test_the_cluster_lists_its_parts(context: TenantContext, tmp_path: Path) -> None:
    """With the admin API, brokers and topics are listed; without a response they are failures. For an additional bill
    the cluster is not queried."""
    cluster = MockCluster("orders", "payments")
    settings = settings_for(tmp_path / "missing")

    def listed(servers: str, *, bill_only: bool = False) -> ListedInventory:
        source = AdminApi(source="admin_api", bootstrap_servers=servers)
        own = settings.model_copy(update={"resource_source": source})
        with gatherer(replace(context, bill_only=bill_only), own) as opened:
            return opened.inventory()

    found = listed(cluster.bootstrap_servers)
    topics = [each.resource_id for each in found.inventory.resources if each.resource_type == "kafka_topic"]
    assert topics == ["orders:topic:orders", "orders:topic:payments"]
    assert {"kafka_broker", "kafka_topic", "kafka_cluster"} <= found.complete
    assert listed(f"127.0.0.1:{closed_port()}").failures.keys() == {"kafka_broker", "kafka_topic"}
    assert not listed(f"127.0.0.1:{closed_port()}", bill_only=True).failures


def findings(context: TenantContext, files: Path, **more: Any) -> dict[str, Finding]:
    """Return the findings of a check by subject."""
    policies = more.pop("allocation_policies", {})
    settings = FocusFilesSettings.model_validate(
        {
            "cluster_id": "orders",
            "identity_source": STATIC,
            "allocation_policies": policies,
            "bill": {"files": str(files), **more},
        }
    )
    with gatherer(context, settings) as opened:
        return {each.subject: each for each in opened.check()}


def test_what_a_check_says(context: TenantContext, tmp_path: Path) -> None:
    """The check reports files, services with their costs, services that the filter excludes, and product types without
    a policy."""
    write_csv(tmp_path / "a.csv", [row(), row(ServiceName="Amazon S3", EffectiveCost="2")])
    write_parquet(tmp_path / "b.parquet", [row(SkuMeter="Storage")], cost="DOUBLE")
    found = findings(context, tmp_path, filter={"services": ["Amazon MSK"]})
    assert "2 files from a.csv to b.parquet in FOCUS 1.1" in found["bill files"].detail
    assert "in 1 of them EffectiveCost is a binary number" in found["bill files"].detail
    assert found["bill services"].detail == "Amazon MSK 0.36 USD; left out: Amazon S3"
    assert (found["bill policies"].ok, found["bill policies"].warning) == (True, True)
    assert "no policy for Storage, USE1-Kafka.m5.large" in found["bill policies"].detail
    done = findings(context, tmp_path, allocation_policies={"*": EVEN})
    assert done["bill policies"].detail == "all 2 product types of the last 35 days have a policy"


def test_a_filter_that_leaves_nothing(context: TenantContext, tmp_path: Path) -> None:
    """If the filter excludes everything, the warning names the existing services."""
    write_csv(tmp_path / "a.csv", [row()])
    found = findings(context, tmp_path, filter={"services": ["Kafka"]})["bill services"]
    assert found.warning
    assert found.detail == "the filter leaves nothing of the last 35 days: the services are Amazon MSK"


def test_files_that_are_missing(context: TenantContext, tmp_path: Path) -> None:
    """Missing files are a single finding; other checks of the bill are skipped."""
    found = findings(context, tmp_path / "missing")
    assert not found["bill files"].ok
    assert "bill services" not in found


def test_a_check_of_an_additional_bill(context: TenantContext, tmp_path: Path) -> None:
    """For an additional bill, usage and policies are not checked, because they are those of the tenant."""
    write_csv(tmp_path / "a.csv", [row()])
    assert list(findings(replace(context, bill_only=True), tmp_path)) == ["bill files", "bill services"]
