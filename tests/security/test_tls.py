"""Outbound connections verify the server's certificate."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event

import certifi
import pytest

from chargeback.errors import SourceUnavailable
from chargeback.sources.credentials import Credentials, MetricsSettings
from chargeback.sources.http import HttpClient
from chargeback.sources.prometheus import PrometheusClient
from chargeback.sources.requests import INTERACTIVE_LIMITS, Call

pytestmark = pytest.mark.usefixtures("process")

SECRET = "a-secret-that-nobody-may-see"


class Impostor(BaseHTTPRequestHandler):
    """Responds to every request, and records the requests."""

    heard: list[str]

    def do_GET(self) -> None:
        type(self).heard.append(str(self.headers))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": 1}')

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for this host, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name, *files]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def impostor(certificate: Path) -> Iterator[tuple[str, list[str]]]:
    """A server on the loopback with that certificate; yields its address and the headers that it received."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    heard: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (Impostor,), {"heard": heard}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}", heard
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_an_unknown_certificate_is_refused(impostor: tuple[str, list[str]]) -> None:
    """A server without a trusted certificate receives no request and no credentials."""
    address, heard = impostor
    credentials = Credentials.basic("user", SECRET)
    with (
        HttpClient(
            address, source="impostor", stop=Event(), credentials=credentials, limits=INTERACTIVE_LIMITS
        ) as client,
        pytest.raises(SourceUnavailable, match=r"(?i)certificate verify failed") as raised,
    ):
        client.read_json(Call("/x"))
    assert heard == []
    assert SECRET not in str(raised.value)


def test_the_metrics_source_is_verified(impostor: tuple[str, list[str]]) -> None:
    """Certificates of the metrics source are verified as well."""
    address, heard = impostor
    settings = MetricsSettings.model_validate({"url": address, "auth_type": "bearer", "bearer_token": SECRET})
    with (
        PrometheusClient(settings, stop=Event(), interactive=True) as client,
        pytest.raises(SourceUnavailable, match=r"(?i)certificate verify failed"),
    ):
        client._client.read_json(Call("/api/v1/query", form={"query": "up"}))
    assert heard == []


def test_an_authority_of_ones_own(
    impostor: tuple[str, list[str]], certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers with a certificate from `SSL_CERT_FILE` are trusted; a changed file is used without a restart."""
    address, heard = impostor
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(Path(certifi.where()).read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    with (
        HttpClient(address, source="own", stop=Event(), limits=INTERACTIVE_LIMITS) as client,
        pytest.raises(SourceUnavailable, match=r"(?i)certificate verify failed"),
    ):
        client.read_json(Call("/x"))
    authorities.write_bytes((certificate / "certificate.pem").read_bytes())
    with HttpClient(address, source="own", stop=Event(), limits=INTERACTIVE_LIMITS) as client:
        assert client.read_json(Call("/x")) == {"data": 1}
    assert len(heard) == 1
