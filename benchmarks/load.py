"""Many clients at once: requests per second, and response times under load.

``python -m benchmarks.load PORT CLIENTS SECONDS PATH PAUSE ETAG`` is a separate process, so that the clients do not
share an interpreter with the measured code; it prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final, cast

import uvloop

from benchmarks.measure import percentile
from benchmarks.serving import HOST

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


@dataclass(frozen=True)
class Load:
    """The results of clients: the number of responses, the number without the expected status, and the median, 99th
    percentile and maximum in ms."""

    seconds: float
    answered: int
    failed: int
    p50: float
    p99: float
    longest: float

    @property
    def per_second(self) -> float:
        """Successful responses per second."""
        return (self.answered - self.failed) / self.seconds


def put_load(port: int, clients: int, seconds: float, path: str, *, pause: float = 0.0, etag: str = "") -> Load:
    """Let ``clients`` keep-alive clients repeat a request, each ``pause`` seconds after its last response. Clients with
    the ``etag`` of a response already have it, and expect status 304 instead of 200."""
    return finish(start_load(port, clients, seconds, path, pause=pause, etag=etag))


def start_load(
    port: int, clients: int, seconds: float, path: str, *, pause: float = 0.0, etag: str = ""
) -> subprocess.Popen[str]:
    """Start the load; :func:`finish` waits for its end."""
    words = [str(port), str(clients), str(seconds), path, str(pause), etag]
    return subprocess.Popen([sys.executable, "-m", "benchmarks.load", *words], stdout=subprocess.PIPE, text=True)


def finish(running: subprocess.Popen[str]) -> Load:
    """Wait for the end of a load and return its results.

    Raises:
        RuntimeError: the clients failed.
    """
    output, _ = running.communicate()
    if running.returncode:
        raise RuntimeError("the clients could not reach the service")
    return Load(**json.loads(output))


class _Client(asyncio.Protocol):
    """One connection: sends, and waits for the whole response. After the first one it is ``open``; when it was told to
    repeat that until an ``ending``, it sends again after each."""

    def __init__(self, request: bytes, expected: bytes, pause: float) -> None:
        self._request, self._expected, self._pause = request, expected, pause
        self._buffer = bytearray()
        self._ending = 0.0
        self.times: list[float] = []
        self.failed = 0
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._ask()

    def repeat(self, ending: float) -> None:
        """Send again and again, until an instant."""
        self._ending = ending
        self._ask()

    def _ask(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(_END_OF_HEAD)
        if head < 0:
            return
        heading = bytes(self._buffer[:head]).lower()
        # A response with status 304 has no body, and may have no length.
        length = int(heading.split(_LENGTH, 1)[1].split(b"\r\n", 1)[0]) if _LENGTH in heading else 0
        if len(self._buffer) < head + len(_END_OF_HEAD) + length:
            return
        now = time.perf_counter()
        self.failed += self._expected not in heading[:20]
        self._buffer.clear()
        if not self.open.done():
            self.open.set_result(None)
            return
        self.times.append((now - self._sent) * 1000)
        if now >= self._ending:
            self._transport.close()
        elif self._pause:
            asyncio.get_running_loop().call_later(self._pause, self._ask)
        else:
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        for each in (self.open, self.done):
            if not each.done():
                each.set_result(None)


async def _run(port: int, clients: int, seconds: float, path: str, pause: float, etag: str) -> Load:
    condition = f"If-None-Match: {etag}\r\n" if etag else ""
    request = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{condition}\r\n".encode()
    expected = b" 304 " if etag else b" 200 "
    loop = asyncio.get_running_loop()
    protocols = []
    for _ in range(clients):
        _, protocol = await loop.create_connection(lambda: _Client(request, expected, pause), HOST, port)
        await protocol.open
        protocols.append(protocol)
    start = time.perf_counter()
    for protocol in protocols:
        protocol.repeat(start + seconds)
    await asyncio.gather(*(protocol.done for protocol in protocols))
    times = [taken for protocol in protocols for taken in protocol.times]
    failed = sum(protocol.failed for protocol in protocols)
    middle, late = percentile(times, 0.5), percentile(times, 0.99)
    return Load(time.perf_counter() - start, len(times), failed, middle, late, max(times))


if __name__ == "__main__":
    port_, clients_, seconds_, path_, pause_, etag_ = sys.argv[1:]
    found = uvloop.run(_run(int(port_), int(clients_), float(seconds_), path_, float(pause_), etag_))
    sys.stdout.write(json.dumps(asdict(found)) + "\n")
