"""The service below a path of a real nginx, which either passes the path on as it was sent, or removes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urljoin

import httpx
import pytest

from chargeback.api.app import create_app
from chargeback.api.services import ApiLimits
from chargeback.page.serve import BUILT
from chargeback.store.tenant import TenantStore
from tests.security.test_tenants import MARK, TRAVERSALS, stores
from tests.security.test_tls import certificate
from tests.support.nginx import CONFIG, PASSWORD, Proxy, example_below_a_path, proxied
from tests.support.serving import served, services_for

pytestmark = pytest.mark.usefixtures("process")

__all__ = ["certificate", "stores"]

PREFIX = "/apps/chargeback"
#: nginx removes the path itself and lets all users see everything: only addresses matter here.
STRIPPING = (
    f"    location {PREFIX}/ {{\n        proxy_pass http://chargeback/;\n    }}\n}}\n\nserver {{\n    listen 80;"
)


@dataclass(frozen=True)
class Site:
    """A proxy, and a client of it that is signed in as a user who may see all tenants."""

    proxy: Proxy
    client: httpx.Client

    def get(self, path: str) -> httpx.Response:
        """Return the response below the prefix; the path is sent unchanged."""
        return self.client.get(self.client.base_url.copy_with(raw_path=(PREFIX + path).encode()))


def stripping() -> str:
    """Return the example configuration with the documented location that removes the path."""
    documented = f"`location {PREFIX}/ {{ proxy_pass http://chargeback/; }}`"
    assert documented in (CONFIG.parents[1] / "docs" / "security.md").read_text(encoding="utf-8")
    return CONFIG.read_text(encoding="utf-8").replace("}\n\nserver {\n    listen 80;", STRIPPING)


@pytest.fixture(scope="module", params=["passed on", "removed by nginx"])
def site(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    stores: tuple[TenantStore, TenantStore],
    certificate: Path,
) -> Iterator[Site]:
    """The service behind nginx, below the path."""
    passed = request.param == "passed on"
    services = services_for(*stores)
    limits = replace(services.api, path_prefix=PREFIX if passed else None)
    text = example_below_a_path() if passed else stripping()
    with (
        served(create_app(replace(services, api=limits))) as address,
        proxied(tmp_path_factory.mktemp("nginx"), address, certificate, text) as proxy,
        httpx.Client(
            base_url=f"https://127.0.0.1:{proxy.port}", auth=("finance", PASSWORD), verify=proxy.trust, timeout=30
        ) as client,
    ):
        yield Site(proxy, client)


@pytest.fixture(scope="module")
def passed(
    tmp_path_factory: pytest.TempPathFactory, stores: tuple[TenantStore, TenantStore], certificate: Path
) -> Iterator[Proxy]:
    """nginx that passes the path on, with the map of users from the example."""
    services = services_for(*stores, limits=ApiLimits(path_prefix=PREFIX))
    folder = tmp_path_factory.mktemp("nginx")
    with (
        served(create_app(services)) as address,
        proxied(folder, address, certificate, example_below_a_path()) as proxy,
    ):
        yield proxy


def test_the_way_to_the_page(site: Site) -> None:
    """The path without a slash leads to the page by relative redirects."""
    answer = site.client.get(PREFIX, headers={"Accept": "text/html"}, follow_redirects=True)
    assert answer.url.path == f"{PREFIX}/ui/"
    assert site.get("/ui").headers["location"].endswith("ui/")


@pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the page has not been built")
@pytest.mark.parametrize("path", ["/ui/", "/ui/acme/costs", "/ui/acme/rows?period=7d&identity_id=a%2Fb"])
def test_the_page_finds_its_files_from_every_address(site: Site, path: str) -> None:
    """The page loads its scripts, styles and lazily loaded files, also at deep links."""
    page = site.get(path)
    assert page.status_code == 200
    (base,) = re.findall(r'<base href="([^"]+)">', page.text)
    root = urljoin(f"{PREFIX}{path}", base)
    assert root == f"{PREFIX}/ui/"
    waiting = {urljoin(root, name) for name in re.findall(r'(?:src|href)="(\./[^"]+)"', page.text)}
    known: set[str] = set()
    while waiting:
        address = waiting.pop()
        known.add(address)
        answer = site.get(address.removeprefix(PREFIX))
        assert answer.status_code == 200, address
        if address.endswith(".js"):
            waiting |= {urljoin(address, name) for name in re.findall(r'"(\./[\w.-]+\.js)"', answer.text)} - known
    assert len([name for name in known if name.endswith(".js")]) > 8


@pytest.mark.parametrize(
    "path", ["/api/v1/tenants", "/api/v1/tenants/acme/costs", "/docs", "/docs/start.js", "/health"]
)
def test_the_rest_is_there_too(site: Site, path: str) -> None:
    """The API, its documentation and the probe respond."""
    assert site.get(path).status_code == 200


def test_the_document_is_right_for_its_reader(site: Site) -> None:
    """The paths of the document are resolved from its servers, or from the address of `/docs`."""
    document = site.get("/openapi.json").json()
    if "servers" in document:
        assert document["servers"] == [{"url": PREFIX}]
    assert 'new URL(".", window.location.href)' in site.get("/docs/start.js").text


def test_an_encoded_slash_stays_in_its_id(passed: Proxy) -> None:
    """The path reaches the service unchanged, so that `%2F` does not end a part of the path."""
    tags = f"{PREFIX}/api/v1/tenants/acme/entities/resource"
    assert passed.get(f"{tags}/lkc-both/tags", "alice")[0] == 200
    assert passed.get(f"{tags}/lkc%2Dboth/tags", "alice")[0] == 200
    for name in ("a%2Fb", "a%2Fb%3Fc", "a/b", "a%20%2F.%2Fb"):
        status, text = passed.get(f"{tags}/{name}/tags", "alice")
        assert status == 404
        assert f"The inventory has no resource {unquote(name)}" in json.loads(text)["detail"]
    assert passed.get(f"{PREFIX}/api/v1/tenants/acme%2Fchargebacks", "alice")[0] == 403


@pytest.mark.parametrize(
    ("path", "user", "status"),
    [
        (f"{PREFIX}/health", None, 200),
        (f"{PREFIX}/api/v1/tenants", None, 401),
        (f"{PREFIX}/api/v1/tenants/acme/chargebacks", None, 401),
        (f"{PREFIX}/api/v1/tenants/acme/chargebacks", "alice", 200),
        (f"{PREFIX}/api/v1/tenants/globex/chargebacks", "alice", 403),
        (f"{PREFIX}/api/v1/tenants/acme/chargebacks", "bob", 403),
        (f"{PREFIX}/api/v1/tenants", "alice", 403),
        (f"{PREFIX}/api/v1/tenants", "finance", 200),
        (f"{PREFIX}/api/v1/readiness", "bob", 403),
        (f"{PREFIX}/metrics", "finance", 403),
        (f"{PREFIX}{PREFIX}/api/v1/tenants/globex/chargebacks", "alice", 404),
        ("/api/v1/tenants/acme/chargebacks", "finance", 404),
        ("/metrics", "finance", 404),
    ],
)
def test_who_may_see_what_below_the_path(passed: Proxy, path: str, user: str | None, status: int) -> None:
    """The rules of the example apply below the path, and nothing outside it can be reached."""
    assert passed.get(path, user)[0] == status


@pytest.mark.parametrize(
    "path", [*TRAVERSALS, "/api/v1/tenants/%61cme/chargebacks", "/API/V1/tenants/acme/chargebacks"]
)
def test_no_spelling_reaches_another_tenant(passed: Proxy, path: str) -> None:
    """Bob, who may see only globex, gets nothing of acme: below the path, below it twice, or without it."""
    for prefix in (PREFIX, PREFIX + PREFIX, "", "/apps/%63hargeback", "/apps//chargeback", "/apps/./chargeback"):
        status, text = passed.get(prefix + path, "bob")
        assert status in {400, 403, 404}, text
        assert MARK not in text
