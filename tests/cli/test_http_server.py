"""The server and its socket."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from chargeback.api.app import create_app
from chargeback.api.services import ApiLimits, Services
from chargeback.cli.http_server import MAX_HEADER_BYTES, HttpServer, LimitedProtocol, connection_limit, listen
from chargeback.cli.shutdown import ShutdownHandler
from chargeback.errors import ListenError
from tests.support.laws import one_first
from tests.support.serving import wait_until


def test_a_free_port() -> None:
    """Port 0 is any free port, for an IPv4 address and for a name."""
    for host in ("127.0.0.1", "localhost"):
        with listen(host, 0) as socket:
            assert socket.getsockname()[1] > 0


def test_a_taken_port() -> None:
    """For a port in use, the error says what to change."""
    with listen("127.0.0.1", 0) as socket, pytest.raises(ListenError, match="choose another one"):
        listen("127.0.0.1", socket.getsockname()[1])


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_somebody_else(host: str) -> None:
    """For an address of another machine, the error names the setting."""
    with pytest.raises(ListenError, match=r"api\.host should be an address of this machine"):
        listen(host, 0)


@pytest.mark.extensive
@pytest.mark.parametrize("moment", ["before", "while serving"])
def test_the_end_that_is_asked_for_at_any_moment(moment: str) -> None:
    """A server ends immediately when a shutdown is requested, before or while it serves."""
    stopper = ShutdownHandler(lambda: None)
    if moment == "before":
        stopper.request()
    else:
        threading.Timer(0.5, stopper.request).start()
    with listen("127.0.0.1", 0) as socket:
        HttpServer(FastAPI(), stopper).run_on(socket)
    stopper.finish()


def test_the_peer_is_who_is_connected() -> None:
    """The address is that of the connection, whatever headers say."""
    app = FastAPI()

    @app.get("/peer")
    async def peer(request: Request) -> str:
        return "" if request.client is None else request.client.host

    stopper = ShutdownHandler(lambda: None)
    with listen("127.0.0.1", 0) as socket:
        thread = threading.Thread(target=HttpServer(app, stopper).run_on, args=(socket,))
        thread.start()
        address = f"http://127.0.0.1:{socket.getsockname()[1]}/peer"
        claimed = {"X-Forwarded-For": "10.0.3.7", "Forwarded": "for=10.0.3.7", "X-Real-IP": "10.0.3.7"}
        assert httpx.get(address, headers=claimed).json() == "127.0.0.1"
        stopper.request()
        thread.join(30)
    stopper.finish()


def test_a_signal_asks_the_stopper() -> None:
    """A signal calls the shutdown handler and ends the server."""
    stopped = threading.Event()
    stopper = ShutdownHandler(stopped.set)
    stopper.listen()
    threading.Timer(0.5, signal.raise_signal, (signal.SIGTERM,)).start()
    with listen("127.0.0.1", 0) as socket:
        HttpServer(FastAPI(), stopper).run_on(socket)
    stopper.finish()
    assert stopped.is_set()
    assert stopper.signalled


HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Never: "
WHOLE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.contextmanager
def running(app: ASGIApp | None = None) -> Iterator[int]:
    """Run a server as the command line does, for the service or another application; yield its port."""
    listening = listen("127.0.0.1", 0)
    port: int = listening.getsockname()[1]
    application = app or create_app(Services("1.2.3", "both", ApiLimits(20)))
    server = HttpServer(application, ShutdownHandler(lambda: None))
    thread = threading.Thread(target=server.run_on, args=(listening,), daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(30)


def is_closed(connection: socket.socket, within: float) -> bool:
    """Return whether the other side ends the connection in time."""
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
    """Return whether the probe responds on a new connection."""
    return httpx.get(f"http://127.0.0.1:{port}/health", timeout=10).status_code == 200


@pytest.mark.parametrize(
    "sent", one_first([HALF, b"", b"\r\n" * 3, WHOLE + HALF]), ids=["half", "none", "blank", "second"]
)
def test_headers_have_a_time_limit(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """The connection is closed whichever part has arrived, even if data trickles in."""
    monkeypatch.setattr(LimitedProtocol, "header_seconds", 1.0)
    with running() as port, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        until = time.monotonic() + 15
        with contextlib.suppress(OSError):
            while sent and time.monotonic() < until and not is_closed(connection, 0.2):
                connection.sendall(b"\r\n" if sent == b"\r\n" * 3 else b"x")
        assert is_closed(connection, 15)
        assert healthy(port)


@pytest.mark.extensive
def test_requests_may_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit applies only to headers: a body may come later, and a connection may be reused."""
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
    """Beyond the limit of connections, the one that has waited longest for its client is closed; others are served
    immediately."""
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
    """Open files are left for storage and databases."""
    assert 16 <= connection_limit() <= 4096


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the names of the headers after reading the body."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    if message["type"] == "http.request":
        names = b" ".join(name for name, _ in scope["headers"]) + b"."
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(names))]})
        await send({"type": "http.response.body", "body": names})


@pytest.fixture(scope="module")
def echo_port() -> Iterator[int]:
    """The port of an application that responds with the names of headers."""
    with running(echo) as port:
        yield port


def responses(connection: socket.socket) -> bytes:
    """Return the bytes that are received until the connection ends."""
    connection.settimeout(20)
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return received


def request_of(size: int, *, close: bool = False) -> bytes:
    """Return a request whose first line and headers have ``size`` bytes."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"Connection: close\r\n" * close + b"X-Long: "
    return head + b"x" * (size - len(head) - 4) + b"\r\n\r\n"


def problem_in(response: bytes) -> dict[str, Any]:
    """Return the problem document of a response."""
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    found: dict[str, Any] = json.loads(body)
    return found


def test_headers_have_a_size_limit(echo_port: int) -> None:
    """64 KiB of first line and headers are accepted; one byte more is a 431, on new and on reused connections."""
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(request_of(MAX_HEADER_BYTES))
        first = b""
        while not first.endswith(b"host x-long."):
            first += connection.recv(65536)
        assert first.startswith(b"HTTP/1.1 200")
        connection.sendall(request_of(MAX_HEADER_BYTES + 1))
        second = responses(connection)
    assert second.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert problem_in(second)["type"] == "urn:chargeback:headers-too-large"
    assert "65536 bytes" in problem_in(second)["detail"]


ENDLESS = {
    "first line": b"GET /",
    "name": b"GET / HTTP/1.1\r\n",
    "value": b"GET / HTTP/1.1\r\nX-Never: ",
    "blank": b"",
}


@pytest.mark.parametrize("part", ENDLESS)
def test_a_request_that_does_not_end_is_refused(echo_port: int, part: str) -> None:
    """A request without an end gets 431 while the client is still sending."""
    unit = b"\r\n" if part == "blank" else b"ab"
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(ENDLESS[part])
        for _ in range(80):
            connection.sendall(unit * 512)
        response = responses(connection)
    assert problem_in(response)["status"] == 431


def test_many_small_headers_are_refused(echo_port: int) -> None:
    """The limit applies to the sum of all headers."""
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 12_000)
        assert problem_in(responses(connection))["status"] == 431


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"


def test_trailers_have_a_size_limit(echo_port: int) -> None:
    """A trailer without an end is refused like a header; the application does not wait for it."""
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(CHUNKED + b"X-Never: ")
        for _ in range(80):
            connection.sendall(b"x" * 1024)
        assert problem_in(responses(connection))["status"] == 431


def test_trailers_are_no_headers(echo_port: int) -> None:
    """A trailer cannot add a header, because a proxy would not have checked it."""
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(CHUNKED + b"X-Forwarded-User: admin\r\n\r\n" + request_of(100, close=True))
        first, second = responses(connection).split(b".HTTP/1.1 ")
    assert first.endswith(b"\r\n\r\nhost transfer-encoding")
    assert second.endswith(b"\r\n\r\nhost connection x-long.")


def test_bodies_have_another_limit(echo_port: int) -> None:
    """Bodies of any size, also in chunks, do not count as headers."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (size, b"x" * size) for size in [1, 70_000, 5_000] * 10)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(head + chunks + b"0\r\n\r\n")
        assert responses(connection).startswith(b"HTTP/1.1 200")


def test_pipelined_requests_wait_unparsed(monkeypatch: pytest.MonkeyPatch, echo_port: int) -> None:
    """Pipelined requests are served in order, and at most a few hundred of them are parsed in advance."""
    waiting: list[int] = []
    serve = LimitedProtocol.on_headers_complete

    def _count(self: LimitedProtocol) -> None:
        serve(self)
        waiting.append(len(self.pipeline))

    monkeypatch.setattr(LimitedProtocol, "on_headers_complete", _count)
    sent = b"".join(b"GET / HTTP/1.1\r\nx%d: \r\n\r\n" % number for number in range(5000))
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        sender = threading.Thread(target=connection.sendall, args=(sent + request_of(100, close=True),))
        sender.start()
        received = responses(connection)
        sender.join()
    assert re.findall(rb"\r\n\r\nx(\d+)\.", received) == [b"%d" % number for number in range(5000)]
    assert received.endswith(b"host connection x-long.")
    assert max(waiting) < 250


def test_a_response_in_progress_is_completed(echo_port: int) -> None:
    """Too large headers of a pipelined request do not cut off the previous response."""
    with socket.create_connection(("127.0.0.1", echo_port)) as connection:
        connection.sendall(request_of(100) + request_of(100_000))
        received = responses(connection)
    assert received.startswith(b"HTTP/1.1 200")
    assert b"host x-long." in received
