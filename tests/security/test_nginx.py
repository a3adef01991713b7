"""The example configuration of nginx keeps its promises, with a real nginx and the real service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chargeback.store.tenant import TenantStore
from tests.security.test_tenants import MARK, TRAVERSALS, address, service, stores
from tests.security.test_tls import certificate
from tests.support.nginx import Proxy, proxied

pytestmark = pytest.mark.usefixtures("process")

__all__ = ["address", "certificate", "service", "stores"]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, address: str, certificate: Path) -> Iterator[Proxy]:
    """nginx with the example, in front of a service with two tenants."""
    with proxied(tmp_path_factory.mktemp("nginx"), address, certificate) as proxy:
        yield proxy


def test_the_probe_needs_no_password_and_the_rest_needs_tls(proxy: Proxy) -> None:
    """`/health` needs no password; a request without TLS is redirected to one with TLS."""
    assert proxy.get("/health")[0] == 200
    redirected = httpx.get(f"http://127.0.0.1:{proxy.plain_port}/api/v1/tenants")
    assert redirected.headers["location"] == "https://127.0.0.1/api/v1/tenants"


@pytest.mark.parametrize(
    ("path", "user", "status"),
    [
        ("/health", None, 200),
        ("/api/v1/tenants", None, 401),
        ("/api/v1/tenants/acme/chargebacks", None, 401),
        ("/docs", None, 401),
        ("/api/v1/tenants/acme/chargebacks", "alice", 200),
        ("/api/v1/tenants/acme/chargebacks?page_size=1", "alice", 200),
        ("/api/v1/tenants/globex/chargebacks", "alice", 403),
        ("/api/v1/tenants/globex/chargebacks", "bob", 200),
        ("/api/v1/tenants/acme/chargebacks", "bob", 403),
        ("/api/v1/tenants/acme/chargebacks", "nobody", 403),
        ("/api/v1/tenants/acme/chargebacks", "finance", 200),
        ("/api/v1/tenants", "alice", 403),
        ("/api/v1/tenants", "finance", 200),
        ("/api/v1/readiness", "bob", 403),
        ("/api/v1/readiness", "finance", 200),
        ("/mcp", "alice", 403),
        ("/%6dcp", "alice", 403),
        ("/mcp", "finance", 404),
        ("/metrics", "finance", 403),
        ("/metrics/chargebacks", "finance", 403),
        ("/docs", "nobody", 200),
    ],
)
def test_who_may_see_what(proxy: Proxy, path: str, user: str | None, status: int) -> None:
    """A request without a password is refused, and a user sees only their own tenants."""
    assert proxy.get(path, user)[0] == status


@pytest.mark.parametrize(
    "path",
    [
        *TRAVERSALS,
        "/api/v1/tenants/%61cme/chargebacks",
        "/api/v1/tenants/acme%2Fchargebacks",
        "/api/v1/tenants/acme",
        "/api/v1/tenants/acme/entities/resource/x/../../../../globex/entities/resource/lkc-both/tags",
        "/api/v1/tenants/acme/entities/resource/x/%2e%2e/%2e%2e/%2e%2e/%2e%2e/globex/entities/resource/lkc-both/tags",
        "/api/v1/tenants/globex?x=/api/v1/tenants/acme/chargebacks",
        "/API/V1/tenants/acme/chargebacks",
        "/api/v1/./tenants/acme/chargebacks",
    ],
)
def test_no_spelling_reaches_another_tenant(proxy: Proxy, path: str) -> None:
    """Bob, who may see only globex, gets nothing of acme, however the path is written."""
    status, text = proxy.get(path, "bob")
    assert status in {400, 403, 404}, text
    assert MARK not in text


def test_a_name_is_not_enough(proxy: Proxy) -> None:
    """A user name with a wrong password is refused."""
    answer = httpx.get(
        f"https://127.0.0.1:{proxy.port}/api/v1/tenants/acme/chargebacks", auth=("alice", "guessed"), verify=proxy.trust
    )
    assert answer.status_code == 401
    assert "Basic" in answer.headers["www-authenticate"]


def test_an_export_goes_through(proxy: Proxy) -> None:
    """A streamed export arrives completely."""
    status, text = proxy.get("/api/v1/tenants/acme/export", "alice", "POST")
    assert status == 200
    assert text.count(MARK) >= 10


def test_pages_of_other_sites_change_nothing(proxy: Proxy) -> None:
    """The service refuses cross-site requests, even though the browser adds the user's password."""
    export = "/api/v1/tenants/acme/export"
    foreign = {"Origin": "https://attacker.example"}
    for headers in (foreign, foreign | {"Sec-Fetch-Site": "cross-site"}):
        status, text = proxy.get(export, "alice", "POST", headers)
        assert (status, MARK in text) == (403, False)
    own = {"Origin": f"https://127.0.0.1:{proxy.port}"}
    for headers in (own, own | {"Sec-Fetch-Site": "same-origin"}, {}):
        assert proxy.get(export, "alice", "POST", headers)[0] == 200


def test_other_names_are_refused(proxy: Proxy) -> None:
    """The service receives the host that the client requested, and refuses unknown ones."""
    status, text = proxy.get("/api/v1/tenants", "finance", headers={"Host": "attacker.example"})
    assert (status, "api.allowed_hosts" in text) == (421, True)


def test_the_certificate_is_needed(proxy: Proxy) -> None:
    """A client that does not trust the certificate authority does not connect."""
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"https://127.0.0.1:{proxy.port}/health")


def test_the_marks_are_there(stores: tuple[TenantStore, TenantStore]) -> None:
    """The service behind the proxy has two tenants."""
    assert [store.tenant_name for store in stores] == ["acme", "globex"]
