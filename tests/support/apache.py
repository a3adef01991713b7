"""The example of single sign-on in a real Apache with mod_auth_openidc, and a real OpenID provider."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import eventually, free_port
from tests.support.prometheus import installed

CONFIG = Path(__file__).parents[2] / "deploy" / "access" / "apache-oidc.conf"
SECRETS_FILE = "/etc/apache2/chargeback-secrets.conf"
MODULES = Path("/usr/lib/apache2/modules")
#: The Apache modules that the example needs; Debian's `a2enmod` and defaults load these.
LOADED = (
    *("mpm_event", "alias", "authn_core", "authz_core", "authz_user", "auth_openidc"),
    *("headers", "proxy", "proxy_http", "socache_shmcb", "ssl"),
)


@contextmanager
def provider(users: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Start an OpenID provider that knows some users, each with a ``sub`` and claims; yield its address."""
    port = free_port()
    known = [word for user in users for word in ("--user-claims", json.dumps(user))]
    process = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), *known],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: _answers(f"{address}/.well-known/openid-configuration"))
        yield address
    finally:
        process.terminate()
        process.wait(30)


@dataclass(frozen=True)
class SignOn:
    """A running Apache, and the data that its clients need."""

    address: str
    trust: ssl.SSLContext

    @contextmanager
    def client(self, **headers: str) -> Iterator[httpx.Client]:
        """Open a client that is not signed in and keeps cookies, like a browser."""
        # A cookie for a host without a port is sent to all its ports, as browsers do.
        with httpx.Client(base_url=self.address, verify=self.trust, headers=headers, timeout=30) as client:
            yield client

    @contextmanager
    def signed_in(self, sub: str) -> Iterator[httpx.Client]:
        """Open a client that has signed in at the provider."""
        with self.client() as client:
            form = client.get("/ui/", headers={"Accept": "text/html"}, follow_redirects=True)
            assert form.status_code == 200, form.text
            back = client.post(form.url, data={"sub": sub}, follow_redirects=True)
            assert back.url.path == "/ui/", f"{back.url}: {back.text}"
            yield client


@contextmanager
def apache(folder: Path, upstream: str, issuer: str, certificate: Path, secret: str) -> Iterator[SignOn]:
    """Run Apache with the example, in front of the service at ``upstream``, for users of the provider ``issuer``."""
    program = shutil.which("apache2", path="/usr/sbin:/usr/bin") or installed("apache2")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "secrets.conf").write_text(
        'OIDCClientSecret "known to both"\nOIDCCryptoPassphrase "a long random text of this test"\n'
        f'RequestHeader set X-Chargeback-Proxy-Secret "{secret}"\n'
    )
    port, plain = free_port(), free_port()
    (folder / "apache.conf").write_text(configuration(folder, upstream, issuer, certificate, (port, plain)))
    command = [program, "-d", str(folder), "-f", str(folder / "apache.conf")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen([*command, "-DFOREGROUND"], stderr=subprocess.DEVNULL)
    trust = ssl.create_default_context(cafile=str(certificate / "certificate.pem"))
    try:
        until = time.monotonic() + 30
        while not _answers(f"https://127.0.0.1:{port}/health", trust):
            assert time.monotonic() < until, (folder / "error.log").read_text()
            time.sleep(0.05)
        yield SignOn(f"https://127.0.0.1:{port}", trust)
    finally:
        process.terminate()
        process.wait(30)


def configuration(folder: Path, upstream: str, issuer: str, certificate: Path, ports: tuple[int, int]) -> str:
    """Return the example with the paths and addresses of this machine, and the settings that Debian's own files
    have."""
    text = CONFIG.read_text(encoding="utf-8")
    places = {
        "http://127.0.0.1:8080/": f"{upstream}/",
        "https://login.example.com": issuer,
        "https://chargeback.example.com": f"https://127.0.0.1:{ports[0]}",
        "ServerName chargeback.example.com": "ServerName 127.0.0.1",
        "*:443": f"127.0.0.1:{ports[0]}",
        "*:80>": f"127.0.0.1:{ports[1]}>",
        "/etc/apache2/tls/chargeback.pem": str(certificate / "certificate.pem"),
        "/etc/apache2/tls/chargeback.key": str(certificate / "key.pem"),
        SECRETS_FILE: str(folder / "secrets.conf"),
    }
    for written, here in places.items():
        assert written in text, written
        text = text.replace(written, here)
    modules = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in LOADED)
    user = "User www-data\nGroup www-data\n" if folder.owner() == "root" else ""
    return (
        f"{modules}{user}ServerName 127.0.0.1\nPidFile {folder / 'pid'}\nErrorLog {folder / 'error.log'}\n"
        f"DefaultRuntimeDir {folder}\n"
        f"Listen 127.0.0.1:{ports[0]}\nListen 127.0.0.1:{ports[1]}\n{text}"
    )


def _answers(address: str, trust: ssl.SSLContext | bool = True) -> bool:
    try:
        return httpx.get(address, verify=trust).status_code == 200
    except httpx.TransportError:
        return False
