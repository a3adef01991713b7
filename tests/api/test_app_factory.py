"""Create the application from a configuration."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from chargeback.api.app_factory import create_app_from
from chargeback.config import load_configuration
from chargeback.store.queries.engine import CancellationToken
from tests.support.serving import served

CONFIGURATION = """
api: {request_timeout_seconds: 7, enable_cors: true, cors_origins: ["https://finops.example"], query_memory: 300MiB,
      query_threads: 3}
tenants:
  acme:
    ecosystem: confluent_cloud
    tenant_id: acme-id
    lookback_days: 30
    storage: {connection_string: "sqlite:///acme.db"}
    plugin_settings: {ccloud_api: {key: KEY, secret: "top-secret-1"}}
"""


def test_a_configuration_becomes_an_application(tmp_path: Path) -> None:
    """The application serves its tenants; storage that is not set up is initializing, and no response has a secret."""
    file = tmp_path / "chargeback.yaml"
    file.write_text(CONFIGURATION)
    app = create_app_from(load_configuration(file), "api", None)
    with served(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        readiness = client.get("/api/v1/readiness", headers={"Origin": "https://finops.example"})
        assert readiness.json()["status"] == "initializing"
        assert readiness.json()["mode"] == "api"
        assert readiness.headers["access-control-allow-origin"] == "https://finops.example"
        (summary,) = client.get("/api/v1/tenants").json()
        assert (summary["tenant_id"], summary["ecosystem"]) == ("acme-id", "confluent_cloud")
        assert client.get("/api/v1/tenants/acme/chargebacks").status_code == 503
        assert "top-secret" not in client.get("/openapi.json").text


def test_callers_are_told_apart_as_configured(tmp_path: Path) -> None:
    """With an access mode, a request needs an identity; no response contains a secret."""
    file = tmp_path / "chargeback.yaml"
    access = "access: {mode: proxy, proxy: {trusted: [127.0.0.1], shared_secret: top-secret-of-proxy}}"
    file.write_text(f"{access}{CONFIGURATION}")
    with served(create_app_from(load_configuration(file), "api", None)) as address:
        said = httpx.get(f"{address}/api/v1/me", headers={"X-Forwarded-Email": "ann"})
        assert said.status_code == 401
        ours = {"X-Forwarded-Email": "ann", "X-Chargeback-Proxy-Secret": "top-secret-of-proxy"}
        assert httpx.get(f"{address}/api/v1/me", headers=ours).json()["user"] == "ann"
        assert "top-secret" not in said.text + httpx.get(f"{address}/openapi.json", timeout=60).text


def test_the_query_engine_has_the_configured_limits(tmp_path: Path) -> None:
    """``api.query_memory`` and ``api.query_threads`` limit the query engine of the API."""
    file = tmp_path / "chargeback.yaml"
    file.write_text(CONFIGURATION)
    app = create_app_from(load_configuration(file), "api", None)
    with served(app), app.state.executor.engine.cursor(CancellationToken()) as cursor:
        found = cursor.rows("SELECT current_setting('memory_limit'), current_setting('threads')")
    assert found == [("300.0 MiB", 3)]


def test_an_address_beyond_the_loopback_asks_for_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without `api.allowed_hosts` the log says which hosts are accepted and what to configure; with it, the listed
    hosts are accepted."""
    file = tmp_path / "chargeback.yaml"
    for hosts, warned in (("", 1), (', allowed_hosts: ["costs.example.com"]', 0)):
        everybody = "\naccess: {allow_anonymous: true}"
        file.write_text(CONFIGURATION.replace("\napi: {", f'{everybody}\napi: {{host: "0.0.0.0"{hosts}, '))
        caplog.clear()
        app = create_app_from(load_configuration(file), "api", None)
        assert (
            sum("set api.allowed_hosts to the host names" in record.getMessage() for record in caplog.records) == warned
        )
        with served(app) as address, httpx.Client(base_url=address, timeout=60) as client:
            assert client.get("/api/v1/tenants").status_code == 200
            named = client.get("/api/v1/tenants", headers={"Host": "costs.example.com"})
            assert named.status_code == (421 if warned else 200)
