"""Time limits hold, abandoned work is cancelled, and responses are either complete or visibly broken."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from chargeback.api.services import ApiLimits
from chargeback.model.chargeback import CHARGEBACKS
from chargeback.model.run_request import RunRequest
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.facts import Share, days_from, hold_tags, replace_day, tenant_store
from tests.support.serving import client_of, services_for, wait_until

FIRST = date(2026, 1, 1)
RANGE = {"start_date": "2026-01-01", "end_date": "2026-01-31"}
#: Minutes of work for two processors: eight hundred thousand rows a day, each a group of its own.
KEYS = "abcdefghijklmnop"
HEAVY = f"{ACME}/chargebacks/aggregate?start_date=2026-01-01&end_date=2026-01-31" + "".join(
    f"&group_by=tag:{key}" for key in KEYS
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """Six days of four hundred thousand rows, each with an identity of its own."""
    with tenant_store(tmp_path_factory.mktemp("large")) as store:
        for day in days_from(FIRST, 6):
            replace_day(store.facts, CHARGEBACKS_TABLE, day, _day(day, 400_000))
        hold_tags(store, KEYS)
        yield store


def _day(day: date, rows: int) -> pa.Table:
    row = Share(day, "sa", "1.5").row()
    columns = {field.name: pa.repeat(pa.scalar(row[field.name], field.type), rows) for field in CHARGEBACKS}
    columns["identity_id"] = _identities(rows)
    return pa.table(columns, schema=CHARGEBACKS)


@cache
def _identities(rows: int) -> pa.Array:
    numbers = pc.cast(pa.array(range(10**6, 10**6 + rows)), pa.string())
    return pc.binary_join_element_wise("sa-", numbers, "")


def _cpu() -> float:
    times = os.times()
    return times.user + times.system


def _is_idle() -> bool:
    before = _cpu()
    time.sleep(0.5)
    return _cpu() - before < 0.1


def _in_progress(client: httpx.Client) -> int:
    """Return the number of requests in progress, without the one that reads it."""
    (value,) = re.findall(r"^chargeback_http_requests_in_progress (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return int(float(value)) - 1


def test_a_slow_query_is_answered_504_and_stopped(large: TenantStore) -> None:
    """The response comes at the limit, not at the end of the query, and the query is cancelled."""
    with client_of(services_for(large, limits=ApiLimits(0.2))) as client:
        started = time.monotonic()
        response = client.get(HEAVY)
        assert time.monotonic() - started < 5
        assert response.status_code == 504
        assert response.json()["type"] == "urn:chargeback:timeout"
        wait_until(_is_idle)
        assert client.get("/health").status_code == 200


def test_a_client_that_leaves_takes_its_query_along(large: TenantStore) -> None:
    """When a connection closes, its query is cancelled."""
    with client_of(services_for(large)) as client:
        address = urlsplit(str(client.base_url))
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(f"GET {HEAVY} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(0.3)
        wait_until(_is_idle, 10)


def test_health_does_not_queue_behind_heavy_queries(large: TenantStore) -> None:
    """A probe responds although there are more heavy requests than threads."""
    with client_of(services_for(large, limits=ApiLimits(2))) as client:
        address = str(client.base_url)
        crowd = [threading.Thread(target=httpx.get, args=(address + HEAVY,), kwargs={"timeout": 60}) for _ in range(12)]
        for thread in crowd:
            thread.start()
        time.sleep(0.2)
        for _ in range(20):
            started = time.monotonic()
            assert client.get("/health").status_code == 200
            assert time.monotonic() - started < 1
        for thread in crowd:
            thread.join()


def test_a_trigger_that_hangs_is_answered_504(large: TenantStore) -> None:
    """The limit applies to every kind of request."""
    release = threading.Event()

    class Hanging:
        def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object]) -> None:
            release.wait(30)

    with client_of(services_for(large, limits=ApiLimits(0.2), pipeline=Hanging())) as client:
        assert client.post(f"{ACME}/pipeline/run").status_code == 504
        release.set()


@pytest.mark.extensive
def test_an_export_may_take_longer_than_the_limit(large: TenantStore) -> None:
    """The limit applies to the first byte; a client that keeps reading gets the whole file."""
    limit = 2.0
    with (
        client_of(services_for(large, limits=ApiLimits(limit))) as client,
        client.stream("POST", f"{ACME}/export", json=RANGE) as response,
    ):
        assert response.status_code == 200
        size, started = 0, time.monotonic()
        for piece in response.iter_raw(2**20):
            size += len(piece)
            if time.monotonic() - started < 1.25 * limit:
                time.sleep(limit / 8)
        assert time.monotonic() - started > limit
        assert size > 100 * 2**20


@pytest.mark.extensive
def test_a_client_that_accepts_nothing_is_given_up(large: TenantStore) -> None:
    """A stalled export is aborted, and its resources are released."""
    with client_of(services_for(large, limits=ApiLimits(4))) as client:
        address = urlsplit(str(client.base_url))
        with socket.create_connection((address.hostname, address.port)) as connection:
            body = b'{"start_date": "2026-01-01", "end_date": "2026-01-31"}'
            declared = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
            head = f"POST {ACME}/export HTTP/1.1\r\nHost: localhost\r\n{declared}\r\n\r\n"
            connection.sendall(head.encode() + body)
            connection.settimeout(20)
            received = connection.recv(1)
            wait_until(lambda: _in_progress(client) == 0)
            while piece := connection.recv(2**20):
                received += piece
            assert received.startswith(b"HTTP/1.1 200")
            assert not received.endswith(b"0\r\n\r\n")
        wait_until(_is_idle, 10)


def test_a_failure_in_the_middle_breaks_the_connection(tmp_path: Path) -> None:
    """A failure while reading breaks the connection, so that no partial file looks complete."""
    with tenant_store(tmp_path) as store:
        for day in days_from(FIRST, 4):
            replace_day(store.facts, CHARGEBACKS_TABLE, day, _day(day, 100_000))
        last = store.facts.snapshot(CHARGEBACKS_TABLE).files[-1]
        path = Path(last.path)
        content = bytearray(path.read_bytes())
        content[len(content) // 4 : len(content) // 2] = b"\x00" * (len(content) // 2 - len(content) // 4)
        path.write_bytes(content)
        with client_of(services_for(store)) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                client.post(f"{ACME}/export", json=RANGE)
            assert client.get("/health").status_code == 200


def test_a_failure_before_the_first_byte_is_a_problem(tmp_path: Path) -> None:
    """If reading fails before the first row, the response is an error, not an empty file."""
    with tenant_store(tmp_path) as store:
        replace_day(store.facts, CHARGEBACKS_TABLE, FIRST, _day(FIRST, 10))
        Path(store.facts.snapshot(CHARGEBACKS_TABLE).files[0].path).write_bytes(b"nonsense")
        with client_of(services_for(store)) as client:
            response = client.post(f"{ACME}/export", json=RANGE)
            assert response.status_code == 503
            assert response.headers["content-type"] == "application/problem+json"
