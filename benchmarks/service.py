"""The service as a whole: the export, many clients, and limits under load."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.bare import bare_server
from benchmarks.calculation import calculate_for
from benchmarks.dashboard import costs_page
from benchmarks.floors import Floors
from benchmarks.load import finish, put_load, start_load
from benchmarks.measure import Figure, cpu_seconds, memory_mib, reset_peak
from benchmarks.reference.star import Star
from benchmarks.serving import Service, serving, target
from benchmarks.shapes import Shape
from benchmarks.tenants import Generated

_HEAVY = ["identity_id", "resource_id", "product_type", "cost_type", "allocation_method", "environment_id"]

#: How many dashboards are open at once.
_DASHBOARDS: Final = 200


def export(service: Service, tenant: Generated, scratch: Path, star: Star | None) -> Iterator[Figure]:
    """Export everything as CSV to the socket; measure the time and the growth of the server's memory."""
    first, last = tenant.shape.dates()[0], tenant.shape.last_day
    body = {"start_date": first.isoformat(), "end_date": last.isoformat()}
    client, pid = service.client(), service.process.pid
    path = f"/api/v1/tenants/{tenant.shape.name}/export"
    client.drain("POST", path, {**body, "start_date": body["end_date"]})
    before = memory_mib(pid)
    reset_peak(pid)
    start = time.perf_counter()
    size, lines = client.drain("POST", path, body)
    taken = time.perf_counter() - start
    grown = memory_mib(pid, peak=True) - before
    if lines != tenant.rows + 1:
        raise RuntimeError(f"the export has {lines} lines, the tenant {tenant.rows} rows")
    floors = Floors(tenant.facts)
    file = scratch / "floor.csv"
    start = time.perf_counter()
    floors.export(first, last, file)
    floor = time.perf_counter() - start
    floors.close()
    file.unlink()
    yield Figure(
        f"export, {tenant.shape.name}",
        "rows to the socket",
        tenant.rows / taken,
        "rows/s",
        tenant.rows / floor,
        _rows_of_reference(star),
        more_is_better=True,
        note=f"{size / taken / 2**20:.0f} MiB/s",
    )
    yield Figure(f"export, {tenant.shape.name}", "growth of memory", grown, "MiB")


def _rows_of_reference(star: Star | None) -> float | None:
    if star is None:
        return None
    start = time.perf_counter()
    rows = star.export()
    return rows / (time.perf_counter() - start)


def many_clients(service: Service, shape: Shape, seconds: float) -> Iterator[Figure]:
    """Measure requests per second of keep-alive clients."""
    dates = {"start_date": shape.dates()[0].isoformat(), "end_date": shape.last_day.isoformat()}
    asked = {
        "chargebacks, page 1": target(f"/api/v1/tenants/{shape.name}/chargebacks", **dates),
        "tenants": "/api/v1/tenants",
        "health": "/health",
    }
    for name, path in asked.items():
        for clients in (1, 8, 32):
            before = cpu_seconds(service.process.pid)
            load = put_load(service.port, clients, seconds, path)
            used = (cpu_seconds(service.process.pid) - before) / load.answered
            if load.failed:
                raise RuntimeError(f"{load.failed} of {load.answered} answers to {path} were not 200")
            yield Figure(
                f"requests, {shape.name}",
                f"{name}, {clients} client{'s' if clients > 1 else ''}",
                load.per_second,
                "1/s",
                more_is_better=True,
                note=f"p50 {load.p50:.1f} ms, p99 {load.p99:.1f} ms, {used * 1000:.1f} ms CPU each",
            )


def open_dashboards(service: Service, shape: Shape, seconds: float) -> Iterator[Figure]:
    """Measure keep-alive clients that ask what the costs page asks again at each refresh, and have the response
    already (304). The floor is ``/health`` with the same clients."""
    question = target(f"/api/v1/tenants/{shape.name}/costs", **costs_page(shape))
    etag = service.client().etag(question)
    floor = put_load(service.port, _DASHBOARDS, seconds, "/health")
    before = cpu_seconds(service.process.pid)
    load = put_load(service.port, _DASHBOARDS, seconds, question, etag=etag)
    used = (cpu_seconds(service.process.pid) - before) / load.answered
    for each in (floor, load):
        if each.failed:
            raise RuntimeError(f"{each.failed} of {each.answered} answers were not as expected")
    group, name = f"dashboards, {shape.name}", f"{_DASHBOARDS} open, costs unchanged (304)"
    note = f"p50 {load.p50:.0f} ms, {used * 1000:.1f} ms CPU each; the floor is /health"
    yield Figure(group, name, load.per_second, "1/s", floor.per_second, more_is_better=True, note=note)
    yield Figure(group, f"{name}, p99", load.p99, "ms", floor.p99, note=f"longest {load.longest:.0f} ms")


def while_busy(service: Service, tenant: Generated, other: Shape, seconds: float) -> Iterator[Figure]:
    """Measure `/health` while an aggregate, an export and a calculation run in loops.

    The floor is a server that does nothing else, measured at the same time.
    """
    stop = threading.Event()
    path = f"/api/v1/tenants/{tenant.shape.name}"
    dates = {"start_date": tenant.shape.dates()[0].isoformat(), "end_date": tenant.shape.last_day.isoformat()}

    def _aggregate() -> None:
        client = service.client()
        while not stop.is_set():
            client.get(f"{path}/chargebacks/aggregate", group_by=["identity_id"], **dates)

    def _export() -> None:
        client = service.client()
        while not stop.is_set():
            client.drain("POST", f"{path}/export", dates)

    calculating = multiprocessing.get_context("spawn").Process(target=calculate_for, args=(other, seconds + 2))
    threads = [threading.Thread(target=work, daemon=True) for work in (_aggregate, _export)]
    calculating.start()
    for thread in threads:
        thread.start()
    time.sleep(1)
    with bare_server() as port:
        asking = start_load(service.port, 1, seconds, "/health", pause=0.01)
        floor = put_load(port, 1, seconds, "/", pause=0.01)
        load = finish(asking)
    stop.set()
    calculating.join()
    for thread in threads:
        thread.join()
    yield Figure(
        f"while busy, {tenant.shape.name}",
        "/health, p99",
        load.p99,
        "ms",
        floor.p99,
        note=f"p50 {load.p50:.1f} ms, longest {load.longest:.0f} ms of {load.answered}; the floor is a bare server",
    )


def time_limit(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    """Measure the time of the response to a query that exceeds a limit of one second."""
    dates = {"start_date": tenant.shape.dates()[0].isoformat(), "end_date": tenant.shape.last_day.isoformat()}
    path = target(
        f"/api/v1/tenants/{tenant.shape.name}/chargebacks/aggregate", group_by=_HEAVY, time_bucket="hour", **dates
    )
    limit = 1
    with serving([tenant], scratch / "limited", limit_seconds=limit) as service:
        client, taken = service.client(), []
        for _ in range(5):
            start = time.perf_counter()
            status, content = client.exchange("GET", path)
            taken.append((time.perf_counter() - start) * 1000)
            if status != 504:
                note = f"no 504 but {status} after {taken[-1]:.0f} ms: {content[:60]!r}"
                yield Figure(f"limit, {tenant.shape.name}", "504 at a limit of 1 s", taken[-1], "ms", note=note)
                return
        start = time.perf_counter()
        client.answer("GET", "/api/v1/tenants")
        after = (time.perf_counter() - start) * 1000
    yield Figure(
        f"limit, {tenant.shape.name}",
        "504 at a limit of 1 s",
        max(taken),
        "ms",
        limit * 1000,
        note=f"the longest of 5; the next request took {after:.0f} ms",
    )
