"""A small S3-compatible object store that ignores the conditions of requests: the last writer wins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from tests.support.objects import ObjectServer

_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
    "<ETag>x</ETag><Size>{}</Size></Contents>"
)


class _Store(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.objects: dict[str, bytes] = {}


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Store

    def do_PUT(self) -> None:
        """Store an object."""
        self.server.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_HEAD(self) -> None:
        """Report that an object exists."""
        self._answer(200 if self.path in self.server.objects else 404, of=len(self.server.objects.get(self.path, b"")))

    def do_DELETE(self) -> None:
        """Delete an object."""
        self.server.objects.pop(self.path, None)
        self._answer(204)

    def do_GET(self) -> None:
        """Return an object, or list all objects with a prefix."""
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        if "list-type" in query:
            start = f"{address.path}/{query.get('prefix', [''])[0]}"
            found = "".join(
                _OBJECT.format(escape(path.removeprefix(f"{address.path}/")), len(content))
                for path, content in sorted(self.server.objects.items())
                if path.startswith(start)
            )
            self._answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode())
        elif self.path in self.server.objects:
            self._answer(200, self.server.objects[self.path])
        else:
            self._answer(404)

    def _answer(self, status: int, content: bytes = b"", of: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(of or len(content)))
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def careless_store() -> Iterator[ObjectServer]:
    """Serve such a store."""
    with _Store() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield ObjectServer(f"http://127.0.0.1:{server.server_address[1]}", "id", "secret-of-the-store", "facts")
        finally:
            server.shutdown()
            thread.join()
