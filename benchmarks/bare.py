"""A server that responds to every request at once with the same few bytes: the floor of a response on a busy machine.

``python -m benchmarks.bare PORT`` serves until it is stopped.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

import uvloop

from benchmarks.serving import HOST, free_port

_START_SECONDS: Final = 30
_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        self._transport.write(_ANSWER)


@contextmanager
def bare_server() -> Iterator[int]:
    """Run the server as a process for the length of the ``with``; yield its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.bare", str(port)])
    try:
        ending = time.perf_counter() + _START_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.perf_counter() > ending:
                raise RuntimeError("the bare server did not start")
            time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((HOST, port)) == 0


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Server, HOST, port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
