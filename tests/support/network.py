"""A network between this project and an object store, with a delay of every request and lost responses.

It listens on the loopback and forwards requests and responses unchanged, so that signatures stay valid: the server
checks them against the host that the client uses.
"""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import BinaryIO, Final, cast
from urllib.parse import parse_qs, urlsplit

from tests.support.objects import ObjectServer

#: Requests that write a file of facts.
_WRITE: Final = re.compile(r"PUT /.*\.zstd\.parquet")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)
_REASONS: Final = {500: "InternalError", 503: "SlowDown"}


@dataclass(frozen=True)
class Fault:
    """A fault of every ``every``-th write of a file: its response is lost, or replaced by a ``status``. The fault
    occurs ``before`` the write reaches the store, or after it."""

    every: int
    status: int | None = None
    before: bool = False

    def __str__(self) -> str:
        what = f"{self.status} instead of an answer" if self.status else "no answer"
        return f"{what}, {'before' if self.before else 'after'} the write"


@dataclass
class Network:
    """A network with faults, and its statistics.

    Attributes:
        server: the server with its address in the network.
        delay: the additional seconds of each request.
        fault: the fault of writes, or None.
        requests: the number of requests by subject, such as ``GET members/_delta_log``.
        disturbed: the number of writes with the fault.
    """

    server: ObjectServer
    delay: float = 0.0
    fault: Fault | None = None
    requests: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    disturbed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meets(self, line: str) -> Fault | None:
        """Count a request; return its fault, if any."""
        with self._lock:
            self.requests[_kind(line, urlsplit(self.server.endpoint).path)] += 1
            if not _WRITE.match(line):
                return None
            self.writes += 1
            if self.fault is None or self.writes % self.fault.every:
                return None
            self.disturbed += 1
            return self.fault


@contextmanager
def network(server: ObjectServer, *, delay: float = 0.0, fault: Fault | None = None) -> Iterator[Network]:
    """Run a network in front of a server."""
    with _Listener(server) as listener:
        here = f"127.0.0.1:{listener.server_address[1]}"
        address = urlsplit(server.endpoint)._replace(netloc=here).geturl()
        listener.seen = Network(replace(server, endpoint=address), delay, fault)
        thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield listener.seen
        finally:
            listener.shutdown()
            thread.join()


class _Listener(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    seen: Network

    def __init__(self, server: ObjectServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        parts = urlsplit(server.endpoint)
        self.upstream = (str(parts.hostname), int(parts.port or 80))


class _Connection(StreamRequestHandler):
    """A connection of a client, and a connection to the store."""

    server: _Listener
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._upstream: socket.socket | None = None
        self._answers: BinaryIO

    def handle(self) -> None:
        """Forward requests one at a time; if either side disconnects, disconnect the other."""
        with suppress(OSError, EOFError):
            while self._pass_on():
                pass

    def finish(self) -> None:
        """Close both sides."""
        self._hang_up()
        with suppress(OSError):
            super().finish()

    def _pass_on(self) -> bool:
        """Forward a request and its response; return whether another request may follow."""
        requests = cast(BinaryIO, self.rfile)
        head = _head(requests)
        if not head:
            return False
        content = _body(requests, head)
        seen = self.server.seen
        line = head.partition(b"\r\n")[0].decode()
        fault = seen.meets(line)
        time.sleep(seen.delay)
        if fault is not None and fault.before:
            return self._answer_wrongly(fault)
        answer = self._ask(head, content, line.partition(" ")[0])
        if fault is not None:
            return self._answer_wrongly(fault)
        self.wfile.write(answer)
        return not _CLOSES.search(answer.partition(b"\r\n\r\n")[0] + b"\r\n")

    def _answer_wrongly(self, fault: Fault) -> bool:
        if fault.status is None:
            return False
        reason = _REASONS[fault.status]
        content = f"<Error><Code>{reason}</Code><Message>{reason}</Message></Error>".encode()
        head = f"HTTP/1.1 {fault.status} {reason}\r\nContent-Type: application/xml\r\nContent-Length: {len(content)}"
        self.wfile.write(head.encode() + b"\r\n\r\n" + content)
        return True

    def _ask(self, head: bytes, content: bytes, method: str) -> bytes:
        """Return the whole response of the store."""
        if self._upstream is not None and select.select([self._upstream], [], [], 0)[0]:
            self._hang_up()  # the store has closed an idle connection
        if self._upstream is None:
            self._upstream = socket.create_connection(self.server.upstream)
            self._upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._answers = cast(BinaryIO, self._upstream.makefile("rb"))
        self._upstream.sendall(head + content)
        answer = _head(self._answers)
        while answer.startswith(b"HTTP/1.1 100"):
            answer = _head(self._answers)
        if not answer:
            raise EOFError
        status = int(answer.split(b" ", 2)[1])
        if method == "HEAD" or status in (204, 304):
            return answer
        return answer + _body(self._answers, answer)

    def _hang_up(self) -> None:
        if self._upstream is not None:
            with suppress(OSError):
                self._answers.close()
                self._upstream.close()
            self._upstream = None


def _kind(line: str, account: str) -> str:
    """Return the subject of a request, without days, versions and digests; ``account`` precedes the bucket."""
    method, target, _ = line.split(" ")
    address = urlsplit(target)
    query = parse_qs(address.query)
    if "list-type" in query:
        method, path = "LIST", query.get("prefix", [""])[0]
    else:
        path = address.path.removeprefix(account).partition("/")[2].partition("/")[2]
    path = path.partition("/")[2]
    for pattern, text in (
        (r"date(=|%3D)[^/]+/.*|part-.*", "DATA"),
        (r"\d{20}\.json", "ENTRY"),
        (r"\d{20}\.checkpoint.*", "CHECKPOINT"),
    ):
        path = re.sub(pattern, text, path)
    return f"{method} {path}"


def _head(stream: BinaryIO) -> bytes:
    """Return the lines of a request or response up to the empty line, or nothing at the end of the stream."""
    lines = []
    while (line := stream.readline()) not in (b"\r\n", b""):
        lines.append(line)
    if not line:
        return b""
    return b"".join([*lines, line])


def _body(stream: BinaryIO, head: bytes) -> bytes:
    """Return the body after a head, as transferred."""
    if _CHUNKED.search(head):
        return b"".join(_chunks(stream))
    length = _LENGTH.search(head)
    return _exactly(stream, int(length[1])) if length else b""


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while True:
        size = stream.readline()
        yield size
        yield _exactly(stream, int(size.partition(b";")[0], 16) + 2)
        if int(size.partition(b";")[0], 16) == 0:
            return


def _exactly(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content
