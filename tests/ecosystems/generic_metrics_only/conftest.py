"""A database server with two databases, and a gatherer for its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.generic_metrics_only import GenericMetricsSettings, ecosystem
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.openmetrics import Scrapes, Value, steady
from tests.support.prometheus import RealPrometheus

DAY = TODAY - timedelta(days=2)
FIRST = TODAY - timedelta(days=3)
GIB = 2**30
MIB = 2**20

SERVER: dict[str, Any] = {
    "name": "PG_SERVER",
    "product_category": "postgres",
    "rate": "0.12",
    "cost_quantity": {"type": "fixed", "count": 2},
}
STORAGE: dict[str, Any] = {
    "name": "PG_STORAGE",
    "product_category": "postgres",
    "rate": "0.0003",
    "cost_quantity": {"type": "storage_gib", "query": "sum(pg_database_size_bytes)"},
}
NETWORK: dict[str, Any] = {
    "name": "PG_NETWORK",
    "product_category": "postgres",
    "rate": "0.02",
    "cost_quantity": {"type": "network_gib", "query": "sum(increase(pg_bytes_sent_total[{step}]))"},
    "allocation_strategy": "usage_ratio",
    "allocation_query": "sum by (datname) (increase(pg_bytes_sent_total[{step}]))",
}
DISCOVERED = {"label": "datname", "discovery_query": "pg_database_size_bytes"}
STATIC = {"source": "static", "static_identities": [{"identity_id": "team-a", "identity_type": "team"}]}


@pytest.fixture(scope="session")
def prometheus() -> Iterator[RealPrometheus]:
    """A Prometheus that has scraped the server for four days; ``crm`` began at noon of DAY."""
    seen = Scrapes(FIRST, TODAY)
    last = (NOW - seen.start) // timedelta(minutes=1)
    noon = (DAY - FIRST) // timedelta(minutes=1) + 720

    def until_now(value: Value, first: int = 0) -> Value:
        return lambda minute: value(minute) if first <= minute <= last else None

    seen.counter("pg_bytes_sent_total", {"datname": "shop"}, until_now(steady(3 * MIB)))
    seen.counter("pg_bytes_sent_total", {}, until_now(steady(MIB)))
    seen.gauge("pg_database_size_bytes", {"datname": "shop"}, until_now(lambda _: 30 * GIB))
    seen.gauge("pg_database_size_bytes", {"datname": "crm"}, until_now(lambda _: 4 * GIB, noon))
    with RealPrometheus(seen.text()) as server:
        yield server


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant, on the day of the tests."""
    return TenantContext(
        "pg", "pg-id", "EUR", TODAY, Event(), str(tmp_path / "state"), is_awaited=True, now=FixedClock()
    )


def settings_for(url: str | None, **more: Any) -> GenericMetricsSettings:
    """Return settings of the server; ``more`` replaces or adds keys."""
    keys: dict[str, Any] = {
        "cluster_id": "pg-main",
        "identity_source": DISCOVERED,
        "cost_types": [SERVER, STORAGE, NETWORK],
    }
    if url is not None:
        keys["metrics"] = {"url": url}
    return GenericMetricsSettings.model_validate(keys | more)


def gatherer(context: TenantContext, url: str | None, **more: Any) -> AbstractContextManager[ConstructedGatherer]:
    """Return a gatherer."""
    return ecosystem.open(context, settings_for(url, **more))
