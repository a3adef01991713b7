"""Serves a generated organisation, on 127.0.0.1 by default, in a thread or as a process of its own.

``python -m chargeback.demo.server --size usual`` prints one JSON line (:class:`~chargeback.demo.config.ServerInfo`)
and serves until it is asked to stop. To the bill of each day that it reads from standard input, a line each, it adds a
late line, and prints the day again when that is done.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter, deque
from datetime import UTC, date, datetime
from types import TracebackType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from chargeback.demo.app import PROMETHEUS, TRANSPORT, DemoApp, ServerOptions
from chargeback.demo.changes import OrganisationChanges
from chargeback.demo.config import FlinkAccess, ServerInfo
from chargeback.demo.faults import Fault, Faults
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.randomness import token
from chargeback.demo.sizes import FLINK_REGIONS
from chargeback.errors import SourceUnavailable

__all__ = ["DemoServer", "Fault", "ServerOptions"]

HOST = "127.0.0.1"
_START_SECONDS = 30
_LINE = 64


class DemoServer:
    """A server of an organisation, as a context manager.

    >>> spec = DemoSpec(today=date(2026, 11, 20), size="small", days=10)
    >>> with DemoServer(Organisation.generate(spec)) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self, organisation: Organisation, *, host: str = HOST, port: int = 0, options: ServerOptions | None = None
    ) -> None:
        """Bind the port (0: any free one) of the address ``host``; serving begins with the ``with`` statement.

        Raises:
            OSError: when the port is taken.
        """
        options = options or ServerOptions()
        self._socket = _bound(host, port)
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"
        self.prometheus_url = self.url + PROMETHEUS
        seed = organisation.spec.seed
        self.key = token(16, "cloud key", seed).upper()
        self.secret = token(64, "cloud secret", seed)
        self._flink = {
            f"{cloud.lower()}.{name}": (token(16, "flink key", name, seed).upper(), token(64, "flink", name, seed))
            for cloud, name in FLINK_REGIONS
        }
        self.changes = OrganisationChanges(organisation, legacy_shapes=options.legacy_shapes)
        credentials = {"control": (self.key, self.secret), **self._flink}
        self.app = DemoApp(self.changes, self.url, credentials, options)
        config = uvicorn.Config(
            self.app,
            http=_Protocol,
            loop="asyncio",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def organisation(self) -> Organisation:
        """The organisation served now."""
        return self.changes.organisation

    @property
    def faults(self) -> Faults:
        """The faults in force; add and remove them at any time."""
        return self.app.faults

    @property
    def requests(self) -> Counter[str]:
        """The number of requests, by path."""
        return self.app.requests

    @property
    def log(self) -> deque[tuple[str, str]]:
        """The last requests: the path, and the query string or the form."""
        return self.app.log

    @property
    def info(self) -> ServerInfo:
        """Addresses and credentials."""
        flink = tuple(
            FlinkAccess(region.partition(".")[2], *credentials, url=self.flink_url(region))
            for region, credentials in self._flink.items()
        )
        spec = self.organisation.spec
        today = spec.today.isoformat()
        return ServerInfo(self.url, self.prometheus_url, self.key, self.secret, flink, spec.days, today)

    def flink_url(self, region: str) -> str:
        """Return the address of a region's statement gateway (``us-east-1`` or ``aws.us-east-1``)."""
        return f"{self.url}/flink/{self._region(region)}"

    def flink_credentials(self, region: str) -> tuple[str, str]:
        """Return key and secret of a region's gateway."""
        return self._flink[self._region(region)]

    def __enter__(self) -> DemoServer:
        """Start the server; return when it responds to requests.

        Raises:
            SourceUnavailable: when the server does not start.
        """
        arguments = {"sockets": [self._socket]}
        self._thread = threading.Thread(target=self._server.run, kwargs=arguments, name="demo-server", daemon=True)
        self._thread.start()
        until = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise SourceUnavailable("the demo server did not start", source=self.url)
            time.sleep(0.005)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving and free the port; waits in responses end at once."""
        self.app.stopping.set()
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=_START_SECONDS)
        self._socket.close()

    def _region(self, region: str) -> str:
        found = next((name for name in self._flink if region in (name, name.partition(".")[2])), None)
        if found is None:
            raise KeyError(f"no Flink gateway in region {region}")
        return found


class _Protocol(HttpToolsProtocol):
    """Gives the application its transport, so that a fault can reset the connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[TRANSPORT] = self.transport


def _bound(host: str, port: int) -> socket.socket:
    # With the protocol given, asyncio disables Nagle's algorithm: otherwise every response takes 40 ms.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError:
        found.close()
        raise
    return found


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m chargeback.demo.server", description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--size", choices=("small", "usual", "large"), default="usual")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--today", type=date.fromisoformat, default=datetime.now(UTC).date())
    parser.add_argument("--late", type=date.fromisoformat, help="the day whose metrics come some minutes late")
    parser.add_argument("--late-bill", type=date.fromisoformat, help="the day whose bill has its late line already")
    parser.add_argument("--burst", type=date.fromisoformat, help="from when on a consumer reads far more, for six days")
    parser.add_argument("--host", default=HOST, help="the IPv4 address to listen on, which clients use, too")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    parsed = parser.parse_args(arguments)
    spec = DemoSpec(today=parsed.today, seed=parsed.seed, size=parsed.size, days=parsed.days, burst=parsed.burst)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    options = ServerOptions(latency=parsed.latency, late_day=parsed.late)
    with DemoServer(Organisation.generate(spec), host=parsed.host, port=parsed.port, options=options) as server:
        if parsed.late_bill is not None:
            server.changes.bill_late(parsed.late_bill)
        _print(server.info.to_json())
        threading.Thread(target=_bill_late, args=(server.changes,), name="late-bills", daemon=True).start()
        stop.wait()
    return 0


def _bill_late(changes: OrganisationChanges) -> None:
    """Bill late what standard input names. It is read without a buffer, whose lock would disturb the end of the
    process."""
    while line := os.read(sys.stdin.fileno(), _LINE):
        day = line.decode().strip()
        changes.bill_late(date.fromisoformat(day))
        _print(day)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
