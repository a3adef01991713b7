"""The example of a proxy in a real nginx, with the paths and addresses of this machine."""

from __future__ import annotations

import http.client
import re
import shutil
import ssl
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import free_port
from tests.support.prometheus import installed

CONFIG = Path(__file__).parents[2] / "deploy" / "nginx.conf"
#: The example that passes identities to the service, and the file that it includes.
ACCESS_CONFIG = CONFIG.parent / "access" / "nginx.conf"
SECRET_FILE = "/etc/nginx/chargeback-secret.conf"
PASSWORD = "open-sesame"
USERS = ("alice", "bob", "carol", "finance", "nobody")


@dataclass(frozen=True)
class Proxy:
    """A running nginx; ``plain_port`` is the port without TLS."""

    port: int
    plain_port: int
    trust: ssl.SSLContext

    def get(
        self, path: str, user: str | None = None, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Return status and text of a response; the path is sent without normalisation."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust, timeout=30)
        connection.putrequest(method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", "0")
        if user is not None:
            connection.putheader("Authorization", "Basic " + b64encode(f"{user}:{PASSWORD}".encode()).decode())
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text


def example_below_a_path() -> str:
    """Return the example, changed for a service below ``/apps/chargeback/`` by the command in its comment."""
    text = CONFIG.read_text(encoding="utf-8")
    (program,) = re.findall(r"^#   sed -E '([^']+)' nginx.conf$", text, re.MULTILINE)
    done = subprocess.run(["sed", "-E", program], input=text, capture_output=True, text=True, check=True)
    return done.stdout


def configuration(text: str, folder: Path, upstream: str, certificate: Path, ports: tuple[int, int]) -> str:
    """Return the example, or a modified one, with the paths and addresses of this machine."""
    places = {
        "127.0.0.1:8080": upstream.removeprefix("http://"),
        "listen 443 ssl": f"listen 127.0.0.1:{ports[0]} ssl",
        "listen 80": f"listen 127.0.0.1:{ports[1]}",
        "/etc/nginx/tls/chargeback.pem": str(certificate / "certificate.pem"),
        "/etc/nginx/tls/chargeback.key": str(certificate / "key.pem"),
        "/etc/nginx/chargeback.htpasswd": str(folder / "htpasswd"),
    }
    for written, here in places.items():
        assert written in text
        text = text.replace(written, here)
    text = text.replace(SECRET_FILE, str(folder / "secret.conf"))
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if folder.owner() == "root" else ""
    return (
        f"{user}daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{text}\n}}\n"
    )


@contextmanager
def proxied(
    folder: Path, upstream: str, certificate: Path, text: str | None = None, secret: str = ""
) -> Iterator[Proxy]:
    """Run nginx with the example, or with ``text``, in front of the service at ``upstream``, in a separate folder.

    ``secret`` is sent to the service with every request by the example for roles.
    """
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin") or installed("nginx")
    folder.mkdir(parents=True, exist_ok=True)
    ports = (free_port(), free_port())
    example = CONFIG.read_text(encoding="utf-8") if text is None else text
    (folder / "htpasswd").write_text("".join(f"{user}:{{PLAIN}}{PASSWORD}\n" for user in USERS))
    (folder / "secret.conf").write_text(f'proxy_set_header X-Chargeback-Proxy-Secret "{secret}";\n')
    (folder / "nginx.conf").write_text(configuration(example, folder, upstream, certificate, ports))
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    proxy = Proxy(*ports, ssl.create_default_context(cafile=str(certificate / "certificate.pem")))
    try:
        until = time.monotonic() + 30
        while True:
            try:
                proxy.get("/")
                break
            except OSError:
                assert time.monotonic() < until, (folder / "error.log").read_text()
                time.sleep(0.05)
        yield proxy
    finally:
        process.terminate()
        process.wait(30)
