"""A small organization, served, and a gatherer for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud import ConfluentCloudSettings, ecosystem
from chargeback.ecosystems.confluent_cloud.api import ControlPlane
from chargeback.ecosystems.confluent_cloud.gatherer import ConfluentCloudGatherer
from chargeback.ecosystems.contract import TenantContext
from chargeback.sources.requests import Limits
from tests.support.clock import FixedClock

TODAY = date(2026, 11, 20)
NOON = datetime.combine(TODAY, time(12), UTC)
#: The retries of production, with shorter times.
QUICK = Limits(
    attempts=3,
    deadline_seconds=10,
    exchange_seconds=3,
    silence_seconds=2,
    first_backoff_seconds=0.01,
    longest_backoff_seconds=0.05,
)


@pytest.fixture(scope="session")
def organisation() -> Organisation:
    """A small organization of twenty days."""
    return Organisation.generate(DemoSpec(today=TODAY, size="small", days=20))


@pytest.fixture(scope="session")
def served(organisation: Organisation) -> Iterator[DemoServer]:
    """The organization, served for all tests."""
    with DemoServer(organisation) as running:
        yield running


@pytest.fixture
def server(served: DemoServer) -> DemoServer:
    """The served organization in its initial state."""
    served.faults.clear()
    served.requests.clear()
    served.log.clear()
    for back in range(30):
        served.changes.restore_costs(TODAY - timedelta(days=back))
    return served


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant with a fixed current day."""
    return TenantContext("acme", "acme-id", "USD", TODAY, Event(), str(tmp_path / "state"), now=FixedClock(NOON))


def settings_for(server: DemoServer, **more: Any) -> ConfluentCloudSettings:
    """Return settings for the served organization, with its Flink keys and its metrics."""
    flink = [
        {"region_id": access.region_id, "key": access.key, "secret": access.secret, "url": access.url}
        for access in server.info.flink
    ]
    api = {"key": server.key, "secret": server.secret, "url": server.url, "requests_per_second": 1000}
    fields = {
        "ccloud_api": api,
        "billing_api": {"requests_per_second": 1000},
        "flink": flink,
        "metrics": {"url": server.prometheus_url},
        "topic_attribution": {"enabled": True},
    }
    return ConfluentCloudSettings.model_validate(fields | more)


@pytest.fixture
def gatherer(server: DemoServer, context: TenantContext) -> Iterator[ConfluentCloudGatherer]:
    """Return a gatherer for the served organization."""
    with ecosystem.open(context, settings_for(server)) as opened:
        yield opened


@pytest.fixture
def plane(server: DemoServer, context: TenantContext) -> Iterator[ControlPlane]:
    """The control plane of the served organization, with short retries."""
    with ExitStack() as stack:
        opened = ControlPlane(context, settings_for(server), QUICK)
        stack.callback(opened.close)
        yield opened
