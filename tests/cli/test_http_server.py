"""The socket to serve on."""

from __future__ import annotations

import signal
import threading

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request

from chargeback.cli.http_server import HttpServer, listen
from chargeback.cli.shutdown import ShutdownHandler
from chargeback.errors import ListenError


def test_a_free_port() -> None:
    """Port 0 gives any free one, on IPv4 as on a name."""
    for host in ("127.0.0.1", "localhost"):
        with listen(host, 0) as socket:
            assert socket.getsockname()[1] > 0


def test_a_taken_port() -> None:
    """A taken port says what to change."""
    with listen("127.0.0.1", 0) as socket, pytest.raises(ListenError, match="choose another one"):
        listen("127.0.0.1", socket.getsockname()[1])


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_somebody_else(host: str) -> None:
    """An address that is not this machine's names the setting."""
    with pytest.raises(ListenError, match=r"api\.host should be an address of this machine"):
        listen(host, 0)


@pytest.mark.extensive
@pytest.mark.parametrize("moment", ["before", "while serving"])
def test_the_end_that_is_asked_for_at_any_moment(moment: str) -> None:
    """A server that is to end before it serves ends at once; so does one whose end something else asks for."""
    stopper = ShutdownHandler(lambda: None)
    if moment == "before":
        stopper.request()
    else:
        threading.Timer(0.5, stopper.request).start()
    with listen("127.0.0.1", 0) as socket:
        HttpServer(FastAPI(), stopper).run_on(socket)
    stopper.finish()


def test_the_peer_is_who_is_connected() -> None:
    """No header changes the address that a request comes from: that is what a proxy is told apart by."""
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
    """What else runs is stopped as soon as the signal comes, and the server ends."""
    stopped = threading.Event()
    stopper = ShutdownHandler(stopped.set)
    stopper.listen()
    threading.Timer(0.5, signal.raise_signal, (signal.SIGTERM,)).start()
    with listen("127.0.0.1", 0) as socket:
        HttpServer(FastAPI(), stopper).run_on(socket)
    stopper.finish()
    assert stopped.is_set()
    assert stopper.signalled
