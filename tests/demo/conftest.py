"""A small organisation, served."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import httpx
import pytest

from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer

TODAY = date(2026, 11, 20)


@pytest.fixture(scope="session")
def spec() -> DemoSpec:
    """A small organisation of twelve days."""
    return DemoSpec(today=TODAY, size="small", days=12)


@pytest.fixture(scope="session")
def organisation(spec: DemoSpec) -> Organisation:
    """The generated organisation."""
    return Organisation.generate(spec)


@pytest.fixture
def server(organisation: Organisation) -> Iterator[DemoServer]:
    """The organisation, served for one test."""
    with DemoServer(organisation) as running:
        yield running


@pytest.fixture
def client(server: DemoServer) -> Iterator[httpx.Client]:
    """A client of the control plane with the Cloud key."""
    with httpx.Client(base_url=server.url, auth=(server.key, server.secret)) as opened:
        yield opened
