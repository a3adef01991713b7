"""Readiness shows what is available, and is cached for two seconds."""

from __future__ import annotations

import time
from datetime import date
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from chargeback.api import executor
from chargeback.api.routes.readiness import overall
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.control.runs import finish_run, start_run, suspend
from chargeback.store.tenant import TenantStore
from tests.support.databases import KINDS, scratch_database
from tests.support.facts import tenant_store
from tests.support.processes import eventually
from tests.support.serving import client_of, services_for


def _readiness(*stores: TenantStore) -> httpx.Response:
    with client_of(services_for(*stores)) as client:
        return client.get("/api/v1/readiness")


def test_a_tenant_with_data_is_ready(client: httpx.Client) -> None:
    """The response has every documented field."""
    assert client.get("/api/v1/readiness").json() == {
        "status": "ready",
        "version": "1.2.3",
        "mode": "both",
        "tenants": [
            {
                "tenant_name": "acme",
                "tables_ready": True,
                "has_data": True,
                "pipeline_running": False,
                "pipeline_stage": None,
                "pipeline_current_date": None,
                "last_run_status": None,
                "last_run_at": None,
                "permanent_failure": None,
                "storage_error": None,
                "topic_attribution_status": "disabled",
                "topic_attribution_error": None,
            }
        ],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_from_nothing_to_the_end_of_a_first_run(tmp_path: Path, kind: str) -> None:
    """The status is initializing until the tables exist and while the first run works, and no_data otherwise."""
    with scratch_database(kind, tmp_path) as connection_string:
        store = TenantStore.open(
            tenant_name="acme", tenant_id="a", ecosystem="e", connection_string=connection_string, facts=tmp_path / "f"
        )
        first = _readiness(store).json()
        assert (first["status"], first["tenants"][0]["tables_ready"]) == ("initializing", False)
        store.control.upgrade()
        assert _readiness(store).json()["status"] == "no_data"
        lease = acquire(store.control, LeaseOwner.this_process())
        with lease.write() as connection:
            number = start_run(connection, lease.epoch)
        lease.show("gathering", date(2026, 1, 1))
        running = _readiness(store).json()
        assert running["status"] == "initializing"
        entry = running["tenants"][0]
        assert (entry["pipeline_running"], entry["pipeline_stage"]) == (True, "gathering")
        assert (entry["pipeline_current_date"], entry["last_run_status"]) == ("2026-01-01", "running")
        with lease.write() as connection:
            finish_run(connection, number, outcome="failed", errors=["x"], counts={})
        lease.release()
        ended = _readiness(store).json()
        assert (ended["status"], ended["tenants"][0]["last_run_status"]) == ("no_data", "failed")
        assert ended["tenants"][0]["last_run_at"].endswith("Z")
        store.close()


def test_storage_that_cannot_be_used_is_an_error(tmp_path: Path, store: TenantStore) -> None:
    """A broken tenant makes the state an error; the HTTP status is still 200."""
    with tenant_store(tmp_path, name="broken") as broken:
        with broken.control.write() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        response = _readiness(store, broken)
    assert response.status_code == 200
    assert response.json()["status"] == "error"
    assert [tenant["tables_ready"] for tenant in response.json()["tenants"]] == [True, False]


def test_a_suspended_tenant_is_told_with_its_reason(tmp_path: Path, store: TenantStore) -> None:
    """The service is in error only if every tenant is suspended."""
    with tenant_store(tmp_path, name="other") as other:
        with other.control.write() as connection:
            suspend(connection, "five failures")
        both, alone = _readiness(store, other).json(), _readiness(other).json()
    assert both["status"] == "ready"
    assert both["tenants"][1]["permanent_failure"] == "five failures"
    assert alone["status"] == "error"


@pytest.mark.extensive
def test_the_answer_is_remembered_for_two_seconds(tmp_path: Path) -> None:
    """A change shows once the cached response has expired, not before."""
    with tenant_store(tmp_path) as store, client_of(services_for(store)) as client:

        def _reason() -> object:
            return client.get("/api/v1/readiness").json()["tenants"][0]["permanent_failure"]

        assert _reason() is None
        with store.control.write() as connection:
            suspend(connection, "x")
        assert _reason() is None
        time.sleep(2.1)
        assert _reason() == "x"


def test_no_tenants_is_no_data() -> None:
    """A service without tenants has the status no_data."""
    assert overall([]) == "no_data"


@pytest.mark.usefixtures("process")
def test_a_tenant_that_hangs_is_told_and_holds_nobody_up(
    tmp_path: Path, store: TenantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a tenant hangs, readiness, the list of tenants and the metrics respond with 200 in time and report the
    others; the error disappears when the tenant responds again."""
    monkeypatch.setattr(executor, "WATCH_SECONDS", 2.5)
    with (
        tenant_store(tmp_path, name="hanging", kind="postgresql") as hanging,
        client_of(services_for(store, hanging)) as client,
    ):
        with hanging.control.write() as connection:
            connection.execute(text("LOCK TABLE tenant, runs, days, alembic_version"))
            ready, listed, metrics = (client.get(path) for path in ("/api/v1/readiness", "/api/v1/tenants", "/metrics"))
        assert [ready.status_code, listed.status_code, metrics.status_code] == [200, 200, 200]
        assert ready.json()["status"] == "error"
        for healthy, error in (ready.json()["tenants"], listed.json()):
            assert (healthy["tenant_name"], healthy["storage_error"]) == ("acme", None)
            assert error["storage_error"] == "the storage has not responded within 2.5 s"
        assert 'chargeback_storage_usable{tenant="acme"} 1' in metrics.text
        assert 'chargeback_storage_usable{tenant="hanging"} 0' in metrics.text
        eventually(lambda: client.get("/api/v1/readiness").json()["status"] == "ready")
