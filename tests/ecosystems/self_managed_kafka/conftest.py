"""A cluster of two brokers that is scraped every minute, and a gatherer for its metrics."""

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
from chargeback.ecosystems.self_managed_kafka import SelfManagedKafkaSettings, ecosystem
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.openmetrics import Scrapes, Value, steady
from tests.support.prometheus import RealPrometheus

DAY = TODAY - timedelta(days=2)
FIRST = TODAY - timedelta(days=3)
GIB = 2**30
MIB = 2**20
IN = "kafka_server_brokertopicmetrics_bytesin_total"
OUT = "kafka_server_brokertopicmetrics_bytesout_total"
RATES = {
    "compute_hourly_rate": "0.50",
    "storage_per_gib_hourly": "0.0001",
    "network_ingress_per_gib": "0.01",
    "network_egress_per_gib": "0.05",
}


def until_now(value: Value) -> Value:
    """Return the same values without those in the future."""
    last = (NOW - Scrapes(FIRST, TODAY).start) // timedelta(minutes=1)
    return lambda minute: value(minute) if minute <= last else None


def scrapes() -> Scrapes:
    """Return the series of the exporter with ``kafka-2_0_0.yml``, with principals, in MiB a minute; also those of an
    unrelated cluster, and of one with the other rule file and quotas."""
    seen = Scrapes(FIRST, TODAY)
    ours = {"job": "kafka-prod"}
    for name, principal, rate in ((IN, "alice", 3), (IN, "bob", 1), (OUT, "carol", 2)):
        labels = {**ours, "instance": "b1:7071", "topic": "orders", "principal": principal}
        seen.counter(name, labels, until_now(steady(rate * MIB)))
    seen.counter(IN, {**ours, "instance": "b1:7071"}, until_now(steady(4 * MIB)))
    seen.counter(OUT, {**ours, "instance": "b2:7071", "topic": "payments"}, until_now(steady(2 * MIB)))
    seen.counter(OUT, {**ours, "instance": "b1:7071"}, until_now(steady(2 * MIB)))
    seen.counter(IN, {"job": "kafka-test", "topic": "orders", "principal": "tester"}, until_now(steady(100 * MIB)))
    for instance in ("b1:7071", "b2:7071"):
        for partition in ("0", "1"):
            labels = {**ours, "instance": instance, "topic": "orders", "partition": partition}
            seen.gauge("kafka_log_log_size", labels, until_now(lambda _: 10 * GIB))
    other = {"job": "kafka-quota", "instance": "q1:7071"}
    seen.gauge("kafka_server_brokertopicmetrics_bytesinpersec", {**other, "topic": "x"}, until_now(steady(6 * MIB)))
    seen.gauge("kafka_server_brokertopicmetrics_bytesinpersec", other, until_now(steady(6 * MIB)))
    seen.gauge("kafka_server_brokertopicmetrics_bytesoutpersec", {**other, "topic": "x"}, until_now(steady(6 * MIB)))
    seen.gauge("kafka_log_log_size", {**other, "topic": "x", "partition": "0"}, until_now(lambda _: GIB))
    for user, rate in (("dora", 5), ("emil", 15)):
        labels = {**other, "user": user, "client_id": "app"}
        seen.gauge("kafka_server_produce_byte_rate", labels, until_now(lambda _, bytes_a_second=rate: bytes_a_second))  # type: ignore[misc]
        seen.gauge("kafka_server_fetch_byte_rate", labels, until_now(lambda _: 0))
    return seen


@pytest.fixture(scope="session")
def prometheus() -> Iterator[RealPrometheus]:
    """A Prometheus that has scraped the brokers for four days."""
    with RealPrometheus(scrapes().text()) as server:
        yield server


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant, on the day of the tests."""
    return TenantContext(
        "prod", "prod-id", "EUR", TODAY, Event(), str(tmp_path / "state"), is_awaited=True, now=FixedClock()
    )


def settings_for(url: str, **more: Any) -> SelfManagedKafkaSettings:
    """Return settings of the cluster; ``more`` replaces or adds keys."""
    keys: dict[str, Any] = {
        "metrics": {"url": url},
        "cluster_id": "kafka-prod",
        "broker_count": 2,
        "cost_model": RATES,
        "metric_names": {"matchers": 'job="kafka-prod"'},
    }
    return SelfManagedKafkaSettings.model_validate(keys | more)


def gatherer(context: TenantContext, url: str, **more: Any) -> AbstractContextManager[ConstructedGatherer]:
    """Return a gatherer."""
    return ecosystem.open(context, settings_for(url, **more))
