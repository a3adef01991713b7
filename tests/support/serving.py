"""The application on a real server on the loopback interface."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket

import httpx
import uvicorn
from fastapi import FastAPI

from chargeback.api.app import create_app
from chargeback.api.services import ApiLimits, Authenticate, Services, everybody
from chargeback.model.days import Clock
from chargeback.reports.tenant_view import PipelinePort, SimulatorPort, TenantView
from chargeback.store.tenant import TenantStore
from tests.support.clock import FixedClock


class _Server(uvicorn.Server):
    """Stops immediately: uvicorn checks ten times a second and then waits another tenth of a second, which would delay
    hundreds of tests. How the service itself stops is tested with its own server."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.005)
        await self.lifespan.shutdown()


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve ``app`` as in production; yield its address."""
    config = uvicorn.Config(
        app,
        port=0,
        loop="uvloop",
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="on",
    )
    server = _Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def client_of(services: Services) -> Iterator[httpx.Client]:
    """Open a client of the application with ``services``."""
    with served(create_app(services)) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


def services_for(
    *stores: TenantStore,
    mode: str = "both",
    limits: ApiLimits = ApiLimits(),  # noqa: B008 - immutable
    pipeline: PipelinePort | None = None,
    simulator: SimulatorPort | None = None,
    lookback_days: int = 200,
    clock: Clock = FixedClock(),  # noqa: B008 - immutable
    authenticate: Authenticate = everybody,
) -> Services:
    """Create services for the storage of tenants, on the day of the tests."""
    tenants = {
        store.tenant_name: TenantView(
            store.tenant_name, store.tenant_id, store.ecosystem, lookback_days, store, pipeline, simulator
        )
        for store in stores
    }
    return Services("1.2.3", mode, limits, tenants, clock=clock, authenticate=authenticate)


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until ``condition`` is true; fail after a timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
