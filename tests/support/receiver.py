"""A receiver of webhooks with configurable responses, which stores the requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

#: Two secrets in the format of receivers.
SECRET, OTHER_SECRET = "whsec_" + "YWJj" * 10, "whsec_" + "eHl6" * 10


@dataclass(frozen=True)
class Received:
    """One request: its headers with lower-case names, and its body."""

    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Answer:
    """A response: a status with headers, after some seconds; without a status, the connection is closed."""

    status: int | None = 204
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    seconds: float = 0


class Receiver:
    """The server; a context manager. ``answer`` is called for each request, with the number of earlier ones."""

    def __init__(self, answer: Callable[[Received, int], Answer] = lambda _received, _before: Answer()) -> None:
        self.received: list[Received] = []
        self.answer = answer
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Store the request, and respond."""
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                received = Received({name.lower(): value for name, value in self.headers.items()}, body)
                before = len(outer.received)
                outer.received.append(received)
                answer = outer.answer(received, before)
                time.sleep(answer.seconds)
                if answer.status is None:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.text)))
                self.end_headers()
                self.wfile.write(answer.text.encode())

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
