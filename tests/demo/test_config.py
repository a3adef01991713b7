"""The configuration for a served demo."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from chargeback.demo.config import FlinkAccess, ServerInfo, demo_configuration


def _info(days: int = 60) -> ServerInfo:
    flink = (FlinkAccess("us-east-1", "k", "s", "http://127.0.0.1:1/flink/aws.us-east-1"),)
    return ServerInfo("http://127.0.0.1:1", "http://127.0.0.1:1/prometheus", "key", "secret", flink, days, "2026-11-20")


def test_the_tenant_reaches_the_demo(tmp_path: Path) -> None:
    """Addresses and credentials are those of the server; data is stored in the given folder."""
    tenant = yaml.safe_load(demo_configuration(_info(), tmp_path))["tenants"]["acme"]
    settings = tenant["plugin_settings"]
    assert tenant["ecosystem"] == "confluent_cloud"
    assert tenant["storage"]["connection_string"] == f"sqlite:///{tmp_path}/acme.db"
    api = {"key": "key", "secret": "secret", "url": "http://127.0.0.1:1", "requests_per_second": 1000}
    assert settings["ccloud_api"] == api
    assert settings["flink"][0]["url"].endswith("/flink/aws.us-east-1")
    assert settings["metrics"]["url"] == "http://127.0.0.1:1/prometheus"
    assert settings["topic_attribution"] == {"enabled": True}


def test_every_month_has_a_rate(tmp_path: Path) -> None:
    """There is a rate for each month of the demo and of the days before, for comparisons."""
    tenant = yaml.safe_load(demo_configuration(_info(40), tmp_path))["tenants"]["acme"]
    assert list(tenant["currencies"]["EUR"]) == ["2026-09", "2026-10", "2026-11"]


@pytest.mark.parametrize(("days", "lookback"), [(1, 6), (60, 60), (900, 364)])
def test_lookback_fits_the_days(tmp_path: Path, days: int, lookback: int) -> None:
    """The lookback covers the days of the demo, within its maximum, and exceeds the cutoff."""
    tenant = yaml.safe_load(demo_configuration(_info(days), tmp_path))["tenants"]["acme"]
    assert tenant["lookback_days"] == lookback > tenant["cutoff_days"]


def test_storage_may_be_elsewhere(tmp_path: Path) -> None:
    """A separate database and a facts folder can be configured."""
    text = demo_configuration(
        _info(), tmp_path, connection_string="postgresql://x/y", facts_path=tmp_path, topic_attribution=False
    )
    tenant = yaml.safe_load(text)["tenants"]["acme"]
    assert tenant["storage"] == {"connection_string": "postgresql://x/y", "facts_path": str(tmp_path)}
    assert tenant["plugin_settings"]["topic_attribution"]["enabled"] is False


def test_information_survives_json() -> None:
    """The information that a process prints about itself can be parsed without loss."""
    assert ServerInfo.from_json(_info().to_json()) == _info()
