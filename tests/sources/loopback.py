"""A real HTTP server on loopback with scripted responses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

Script = Callable[["Asked"], "Answer"]


@dataclass(frozen=True)
class Asked:
    """One received request: ``number`` counts from 0, ``query`` and ``form`` are decoded."""

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """A response; ``promise`` announces more bytes than are sent, ``pieces`` is the number of parts in which the body
    is sent, with ``pause`` seconds between them, and ``hold`` is the delay in seconds before the response."""

    body: str | bytes = "{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    promise: int = 0
    pieces: int = 1
    pause: float = 0
    hold: float = 0


class Loopback:
    """Serves ``script`` on 127.0.0.1 for the length of the ``with``; ``asked`` records every request."""

    def __init__(self, script: Script) -> None:
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(script))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Loopback:
        """Serve."""
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving; delayed responses are released."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, script: Script) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._respond()

            def do_POST(self) -> None:
                self._respond()

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
                pass

            def _respond(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                form = dict(parse_qsl(self.rfile.read(length).decode()))
                parts = urlsplit(self.path)
                with outer._lock:
                    number = len(outer.asked)
                    asked = Asked(
                        number, self.command, parts.path, dict(parse_qsl(parts.query)), form, dict(self.headers)
                    )
                    outer.asked.append(asked)
                try:
                    self._send(script(asked))
                except OSError:
                    self.close_connection = True

            def _send(self, answer: Answer) -> None:
                outer._closing.wait(answer.hold)
                body = answer.body if isinstance(answer.body, bytes) else answer.body.encode()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(body) + answer.promise))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                size = max(len(body) // answer.pieces, 1)
                for start in range(0, len(body), size):
                    self.wfile.write(body[start : start + size])
                    self.wfile.flush()
                    if answer.pause and outer._closing.wait(answer.pause):
                        break
                self.close_connection = self.close_connection or bool(answer.promise)

        return Handler


def each(*answers: Answer) -> Script:
    """Return the responses in order, and the last one for all further requests."""
    return lambda asked: answers[min(asked.number, len(answers) - 1)]
