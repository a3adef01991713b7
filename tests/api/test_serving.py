"""The application of a configuration."""

from __future__ import annotations

from pathlib import Path

import httpx

from chargeback.api.serving import create_app_from
from chargeback.config import load_configuration
from tests.support.serving import served

CONFIGURATION = """
api: {request_timeout_seconds: 7, enable_cors: true, cors_origins: ["https://finops.example"]}
tenants:
  acme:
    ecosystem: confluent_cloud
    tenant_id: acme-id
    lookback_days: 30
    storage: {connection_string: "sqlite:///acme.db"}
    plugin_settings: {ccloud_api: {key: KEY, secret: "top-secret-1"}}
"""


def test_a_configuration_becomes_an_application(tmp_path: Path) -> None:
    """Its tenants can be asked; storage that nobody has set up yet is initializing, and nothing leaks a secret."""
    file = tmp_path / "chargeback.yaml"
    file.write_text(CONFIGURATION)
    app = create_app_from(load_configuration(file), "api", None)
    with served(app) as address, httpx.Client(base_url=address) as client:
        readiness = client.get("/api/v1/readiness", headers={"Origin": "https://finops.example"})
        assert readiness.json()["status"] == "initializing"
        assert readiness.json()["mode"] == "api"
        assert readiness.headers["access-control-allow-origin"] == "https://finops.example"
        (summary,) = client.get("/api/v1/tenants").json()
        assert (summary["tenant_id"], summary["ecosystem"]) == ("acme-id", "confluent_cloud")
        assert client.get("/api/v1/tenants/acme/chargebacks").status_code == 503
        assert "top-secret" not in client.get("/openapi.json").text
