"""The endpoint that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from chargeback.api.app import create_app
from chargeback.api.services import Services
from chargeback.emitters.contract import EmitterContext
from chargeback.emitters.openmetrics import CONTENT_TYPE, seconds
from chargeback.emitters.prometheus import ENDPOINT, PrometheusParams, exposition_of
from chargeback.model.days import start_of_day
from chargeback.store.tenant import TenantStore
from tests.api.conftest import LAST, fill
from tests.support.days import set_chargebacks
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.prometheus import RealPrometheus
from tests.support.serving import served, services_for, wait_until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TenantStore]:
    """The storage of tenant acme, with data."""
    with tenant_store(tmp_path) as store:
        fill(store)
        with store.control.write() as connection:
            set_chargebacks(connection, LAST, fingerprint="x")
        yield store


def shown(*stores: TenantStore, mode: str = "both") -> Services:
    """Return services of tenants that all have the emitter."""
    services = services_for(*stores, mode=mode)
    tenants = {}
    for name, view in services.tenants.items():
        context = EmitterContext("grafana", name, view.tenant_id, view.ecosystem, "USD")
        tenants[name] = replace(view, exposition=exposition_of(context, PrometheusParams()))
    return replace(services, tenants=tenants)


@contextmanager
def scraped(services: Services) -> Iterator[str]:
    """Yield the address of the metrics."""
    with served(create_app(services)) as address:
        yield f"{address}{ENDPOINT}"


@pytest.mark.usefixtures("process")
def test_a_real_prometheus_scrapes_twice_and_answers(store: TenantStore) -> None:
    """A scrape returns the newest day; after a recalculation, a later one returns the new values."""
    with scraped(shown(store)) as address, RealPrometheus(scrape=address) as prometheus:
        # A scrape that takes longer than a second, because the machine is busy, has the value 0.
        wait_until(lambda: bool(prometheus.query("sum_over_time(up[1m]) >= 2")))
        found = prometheus.query("chargeback_last_day_amount")
        assert {each["metric"]["identity_id"]: each["value"][1] for each in found} == {
            "sa-1": "5.25",
            "sa-2": "1.25",
            "UNALLOCATED": "3.5",
        }
        assert (
            found[0]["metric"].items()
            >= {"tenant": "acme", "currency": "USD", "product_type": "KAFKA_NUM_CKUS"}.items()
        )
        (billed,) = prometheus.query("sum(chargeback_last_day_billed_amount)")
        (stamp,) = prometheus.query("chargeback_last_day_timestamp_seconds")
        assert (billed["value"][1], float(stamp["value"][1])) == ("10", seconds(start_of_day(LAST)))
        write_shares(store.facts, [Share(LAST, "sa-9", "12345.678901234567")])
        wait_until(
            lambda: (
                [each["metric"]["identity_id"] for each in prometheus.query("chargeback_last_day_amount")] == ["sa-9"]
            )
        )


def test_the_answer_is_openmetrics(store: TenantStore) -> None:
    """The response has the content type and end mark of OpenMetrics, and exact amounts."""
    write_shares(store.facts, [Share(LAST, 'a"\\b', "12345678901234.678901234567")])
    with scraped(shown(store)) as address:
        response = httpx.get(address)
    assert response.headers["content-type"] == CONTENT_TYPE
    assert response.text.endswith("\n# EOF\n")
    assert 'identity_id="a\\"\\\\b"' in response.text
    assert "} 12345678901234.678901234567\n" in response.text


@pytest.mark.parametrize("mode", ["api", "both", "worker"])
def test_every_mode_that_serves_http_has_it(store: TenantStore, mode: str) -> None:
    """A worker with a port has the endpoint as well."""
    with scraped(shown(store, mode=mode)) as address:
        assert httpx.get(address).status_code == 200


def test_several_tenants_and_one_that_cannot_be_read(store: TenantStore, tmp_path: Path) -> None:
    """Each tenant has its label; a tenant whose storage is broken is marked as such, and the others are exported."""
    with tenant_store(tmp_path, name="beta") as new, tenant_store(tmp_path, name="gone") as gone:
        with gone.control.write() as connection:
            connection.exec_driver_sql("DROP TABLE dataset_days")
        with scraped(shown(store, new, gone)) as address:
            lines = httpx.get(address).text.splitlines()
    assert [line for line in lines if line.startswith("chargeback_tenant_up")] == [
        'chargeback_tenant_up{tenant="acme"} 1',
        'chargeback_tenant_up{tenant="beta"} 1',
        'chargeback_tenant_up{tenant="gone"} 0',
    ]
    assert [line for line in lines if 'tenant="beta"' in line] == ['chargeback_tenant_up{tenant="beta"} 1']


def test_nobody_shows_anything(store: TenantStore) -> None:
    """If no tenant has the emitter, the response is a 404 that names the setting."""
    with scraped(services_for(store)) as address:
        response = httpx.get(address)
    assert response.status_code == 404
    assert "plugin_settings.emitters" in response.json()["detail"]


def test_parameters_are_refused(store: TenantStore) -> None:
    """The endpoint takes no parameters."""
    with scraped(shown(store)) as address:
        assert httpx.get(address, params={"tenant": "acme"}).status_code == 400
