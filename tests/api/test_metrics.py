"""GET /metrics: requests, runs, and the state of every tenant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from chargeback.api.app import create_app
from chargeback.model.budgets import Budget
from chargeback.model.days import utc_now
from chargeback.store.control import runs
from chargeback.store.control.anomalies import KnownAnomaly, save_anomalies
from chargeback.store.control.budgets import save_state, write_budget
from chargeback.store.control.events import Event, add_events
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, LAST, fill
from tests.support.facts import tenant_store
from tests.support.prometheus import RealPrometheus
from tests.support.serving import client_of, served, services_for, wait_until

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(client: httpx.Client) -> Samples:
    """Return all samples, as an OpenMetrics parser reads them."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
        for family in text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def of(client: httpx.Client, name: str, **labels: str) -> float | None:
    """Return one sample."""
    return samples(client).get((name, tuple(sorted(labels.items()))))


@pytest.fixture
def fresh(own_store: TenantStore) -> Iterator[httpx.Client]:
    """Open a client of a new application."""
    with client_of(services_for(own_store)) as client:
        yield client


def test_requests_by_route_and_status(fresh: httpx.Client) -> None:
    """Requests are counted by route, without ids; unknown paths share one label."""
    fresh.get(f"{ACME}/chargebacks")
    fresh.get(f"{ACME}/chargebacks/123")
    fresh.get("/api/v1/tenants/nobody/chargebacks")
    fresh.get("/made/up")
    fresh.request("PROPFIND", "/health")
    counted = samples(fresh)
    name = "chargeback_http_request_duration_seconds_count"

    def count(method: str, route: str, status: str) -> float | None:
        return counted.get((name, (("method", method), ("route", route), ("status", status))))

    prefix = "/api/v1/tenants/{tenant_name}"
    assert count("GET", f"{prefix}/chargebacks", "200") == 1
    assert count("GET", f"{prefix}/chargebacks/{{dimension_id}}", "404") == 1
    assert count("GET", f"{prefix}/chargebacks", "404") == 1
    assert count("GET", "none", "404") == 1
    assert [key for key in counted if key[0] == name and ("method", "other") in key[1]]
    assert not [key for key in counted if "nobody" in str(key) or "123" in str(key) or "made" in str(key)]
    assert counted["chargeback_http_requests_in_progress", ()] == 1


def test_how_far_budgets_are(fresh: httpx.Client, own_store: TenantStore) -> None:
    """Ratios are those of the newest month; that of a forecast exists only with one."""
    with own_store.control.write() as connection:
        for budget_id in ("all", "none"):
            write_budget(connection, budget_id, Budget(budget_id, "B"), expected=None, who="test")
        looked = {"version": 1, "revision": 1, "forecasts": {}}
        save_state(connection, "all", "2026-01", looked | {"ratios": [0.9, 1.5]})
        save_state(connection, "all", "2026-02", looked | {"ratios": [0.25, None]})
        save_state(connection, "none", "2026-02", looked | {"ratios": []})
        save_state(connection, "gone", "2026-02", looked | {"ratios": [2.0, 2.0]})
    found = samples(fresh)
    labels = (("budget", "all"), ("tenant", "acme"))
    assert {key: value for key, value in found.items() if key[0].startswith("chargeback_budget_")} == {
        ("chargeback_budget_ratio", labels): 0.25
    }


def test_how_much_asks_for_somebody(fresh: httpx.Client, own_store: TenantStore) -> None:
    """Every kind has a sample, so that a curve starts at zero."""
    kinds = ("anomaly", "budget", "period", "shadow", "sink")
    assert [of(fresh, "chargeback_open", tenant="acme", kind=kind) for kind in kinds] == [0] * 5
    with own_store.control.write() as connection:
        body = {"identity_id": "sa-1", "category": None, "value": None, "product_category": "KAFKA", "more": 0}
        body |= {"first_date": "2026-01-25", "last_date": "2026-01-25", "impact": "9", "sentence": "More"}
        story = Event("anomaly.opened", "anomaly/1", body | {"belongs_to": {}, "currency": "USD"}, "opened")
        add_events(connection, [story], utc_now())
        save_anomalies(connection, [KnownAnomaly("1", LAST, "open", 9.0, 9.0, utc_now())], 1, LAST)
    assert of(fresh, "chargeback_open", tenant="acme", kind="anomaly") == 1


def test_the_state_of_a_tenant(fresh: httpx.Client, own_store: TenantStore) -> None:
    """The metrics show days, the lease, failures and suspension as stored in the database."""
    acme = {"tenant": "acme"}
    assert of(fresh, "chargeback_days_pending", **acme) == 1
    assert of(fresh, "chargeback_days_calculated", **acme) == 5
    newest = datetime(LAST.year, LAST.month, LAST.day, tzinfo=UTC).timestamp()
    assert of(fresh, "chargeback_last_calculated_date_seconds", **acme) == newest
    assert of(fresh, "chargeback_lease_held", **acme) == 0
    assert of(fresh, "chargeback_last_run_failed", **acme) is None
    lease = acquire(own_store.control, LeaseOwner.this_process())
    with lease.write() as connection:
        run = runs.start_run(connection, lease.epoch)
        runs.count_gather_failure(connection)
        runs.suspend(connection, "enough")
    assert of(fresh, "chargeback_lease_held", **acme) == 1
    assert of(fresh, "chargeback_lease_epoch", **acme) == lease.epoch
    with lease.write() as connection:
        runs.finish_run(connection, run, outcome="failed", errors=["no"], counts={})
    lease.release()
    found = samples(fresh)
    labels = (("tenant", "acme"),)
    names = ("lease_held", "gather_failures", "suspended", "last_run_failed", "storage_usable")
    assert [found[f"chargeback_{name}", labels] for name in names] == [0, 1, 1, 1, 1]
    assert found["chargeback_last_run_end_seconds", labels] > newest


def test_a_tenant_whose_storage_is_gone_does_not_hide_the_others(tmp_path: Path) -> None:
    """The tenant is marked as unusable, and the metrics of the others are complete."""
    with tenant_store(tmp_path) as good, tenant_store(tmp_path, name="globex") as bad:
        fill(good)
        with bad.control.write() as connection:
            connection.exec_driver_sql("DROP TABLE tenant")
        with client_of(services_for(good, bad)) as client:
            assert of(client, "chargeback_storage_usable", tenant="globex") == 0
            assert of(client, "chargeback_days_calculated", tenant="globex") is None
            assert of(client, "chargeback_storage_usable", tenant="acme") == 1
            assert of(client, "chargeback_days_calculated", tenant="acme") == 5


@pytest.mark.parametrize("mode", ["api", "worker", "both"])
def test_every_mode_has_metrics(store: TenantStore, mode: str) -> None:
    """Every mode serves metrics and `/health`; the metrics include version, mode, and runs if there are any."""
    registry = CollectorRegistry()
    Counter("chargeback_runs", "Runs.", registry=registry).inc(7)
    with client_of(replace(services_for(store, mode=mode), runs=registry)) as client:
        assert of(client, "chargeback_info", version="1.2.3", mode=mode) == 1
        assert of(client, "chargeback_runs_total") == 7
        assert client.get("/health").status_code == 200


@pytest.mark.usefixtures("process")
def test_a_real_prometheus_scrapes_it(store: TenantStore) -> None:
    """Prometheus accepts every sample, and queries by tenant and route work."""
    with served(create_app(services_for(store))) as address:
        httpx.get(f"{address}{ACME}/chargebacks")
        with RealPrometheus(scrape=f"{address}/metrics") as prometheus:

            def ask(query: str) -> list[str]:
                answer = httpx.get(f"{prometheus.url}/api/v1/query", params={"query": query}, timeout=10)
                return [each["value"][1] for each in answer.json()["data"]["result"]]

            wait_until(lambda: ask("up") == ["1"])
            assert ask('chargeback_days_calculated{tenant="acme"}') == ["5"]
            count = 'chargeback_http_request_duration_seconds_count{route=~".*/chargebacks"}'
            assert ask(count) == ["1"]
            assert ask('{__name__=~".*_created"}') == []
