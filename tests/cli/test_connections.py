"""Clients that do not finish their requests lose their connections, and take nothing from others."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from chargeback.api.app import create_app
from chargeback.api.services import ApiLimits, Services
from chargeback.cli.connections import LimitedProtocol, connection_limit
from chargeback.cli.http_server import HttpServer, listen
from chargeback.cli.shutdown import ShutdownHandler
from tests.support.serving import wait_until

HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Never: "
WHOLE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.contextmanager
def running() -> Iterator[int]:
    """The port of a server as the command line starts it."""
    listening = listen("127.0.0.1", 0)
    port: int = listening.getsockname()[1]
    server = HttpServer(create_app(Services("1.2.3", "both", ApiLimits(20))), ShutdownHandler(lambda: None))
    thread = threading.Thread(target=server.run_on, args=(listening,), daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(30)


def is_closed(connection: socket.socket, within: float) -> bool:
    """Whether the other side ends the connection in time."""
    connection.settimeout(within)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def healthy(port: int) -> bool:
    """Whether the probe is answered on a new connection."""
    return httpx.get(f"http://127.0.0.1:{port}/health", timeout=10).status_code == 200


@pytest.mark.parametrize("sent", [b"", HALF, b"\r\n" * 3, WHOLE + HALF], ids=["none", "half", "blank", "second"])
def test_headers_have_a_time_limit(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Whatever part of a request came, and however often a little more comes, the connection ends."""
    monkeypatch.setattr(LimitedProtocol, "header_seconds", 1.0)
    with running() as port, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        until = time.monotonic() + 15
        with contextlib.suppress(OSError):
            while sent and time.monotonic() < until and not is_closed(connection, 0.2):
                connection.sendall(b"\r\n" if sent == b"\r\n" * 3 else b"x")
        assert is_closed(connection, 15)
        assert healthy(port)


def test_requests_may_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for headers: a body may come later, and a connection is used again."""
    monkeypatch.setattr(LimitedProtocol, "header_seconds", 0.5)
    with running() as port, socket.create_connection(("127.0.0.1", port)) as connection:
        head = b"POST /api/v1/tenants/x/export HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for _ in range(2):
            connection.sendall(head + b"Content-Length: 2\r\n\r\n")
            time.sleep(1)
            connection.sendall(b"{}")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 404")


def test_half_requests_take_no_place_from_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the connection that waits longest for its client gives way; others are answered at once."""
    monkeypatch.setattr(LimitedProtocol, "most_connections", 20)
    body = b"POST /api/v1/tenants/x/export HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    with running() as port, ExitStack() as stack:
        crowd = []
        for number in range(100):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(body if number % 2 else HALF)
            crowd.append(connection)
            assert number % 20 or healthy(port)
        assert healthy(port)
        assert is_closed(crowd[0], 10)
        wait_until(lambda: sum(is_closed(each, 0.01) for each in crowd) >= 80, 20)


def test_the_limit_leaves_files_for_the_rest() -> None:
    """Storage and databases need files too."""
    assert 16 <= connection_limit() <= 4096
