"""Cross-site requests of browsers are refused; those of programs and of the service's own pages are not."""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from chargeback.api.guard import AllowedHosts
from chargeback.api.services import ApiLimits
from chargeback.model.run_request import RunRequest
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.serving import client_of, services_for

RUN = f"{ACME}/pipeline/run"
ATTACKER = "http://attacker.example"
TAG = json.dumps({"tag_key": "team", "tag_value": "x"})
AS_JSON = {"Content-Type": "application/json"}


class Counted:
    """A pipeline that counts the requested runs."""

    def __init__(self) -> None:
        self.runs = 0

    def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object]) -> None:
        """Count the request."""
        self.runs += 1


class Raw:
    """A client that sends exactly the given headers."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.port = parts.port
        self._place = (parts.hostname or "", parts.port)

    def send(self, method: str, path: str, headers: dict[str, str] | None = None, body: str = "") -> tuple[int, str]:
        """Return the status, and the type of an error."""
        connection = http.client.HTTPConnection(*self._place, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"Host": f"localhost:{self.port}"} | (headers or {})).items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode())
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if method == "HEAD" or answer.headers["content-type"] != "application/problem+json":
            return answer.status, ""
        problem = json.loads(text)
        assert problem["status"] == answer.status
        return answer.status, problem["type"].removeprefix("urn:chargeback:")


@pytest.fixture(scope="module")
def pipeline() -> Counted:
    """The pipeline behind :func:`raw`."""
    return Counted()


@pytest.fixture(scope="module")
def raw(store: TenantStore, pipeline: Counted) -> Iterator[Raw]:
    """A client of the service on the loopback with its default settings."""
    with client_of(services_for(store, pipeline=pipeline)) as client:
        yield Raw(str(client.base_url))


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ATTACKER},
        {"Origin": ATTACKER, "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"Origin": "file://"},
        {"Origin": "http://[::1"},
        {"Origin": "http://localhost.attacker.example"},
        {"Sec-Fetch-Site": "nonsense"},
    ],
    ids=str,
)
def test_a_foreign_page_changes_nothing(raw: Raw, pipeline: Counted, headers: dict[str, str]) -> None:
    """A cross-origin request is refused for every method that writes, with and without a body."""
    before = pipeline.runs
    assert raw.send("POST", RUN, headers) == (403, "foreign-origin")
    tags = f"{ACME}/entities/resource/lkc-1/tags"
    assert raw.send("POST", tags, AS_JSON | headers, TAG) == (403, "foreign-origin")
    for method in ("PUT", "PATCH", "DELETE"):
        assert raw.send(method, f"{tags}/team", AS_JSON | headers, TAG) == (403, "foreign-origin")
    assert pipeline.runs == before


def test_programs_and_own_pages_may_write(raw: Raw, pipeline: Counted) -> None:
    """Requests from curl, the service's own origin and typed addresses are accepted."""
    own = {"Origin": f"http://localhost:{raw.port}"}
    accepted: tuple[dict[str, str], ...] = (
        {},
        own,
        {"Sec-Fetch-Site": "none"},
        own | {"Sec-Fetch-Site": "same-origin"},
    )
    for number, headers in enumerate(accepted, 1):
        before = pipeline.runs
        assert raw.send("POST", RUN, headers) == (202, ""), number
        assert pipeline.runs == before + 1


def test_a_proxy_that_changes_the_host(raw: Raw) -> None:
    """`Sec-Fetch-Site: same-origin` is trusted even if a proxy has changed the host."""
    headers = {"Origin": "https://costs.example.com", "Sec-Fetch-Site": "same-origin"}
    assert raw.send("POST", RUN, headers) == (202, "")


def test_reading_is_left_to_the_browser(raw: Raw) -> None:
    """A cross-origin GET is served; without CORS, the browser hides the response from the page."""
    assert raw.send("GET", "/api/v1/tenants", {"Origin": ATTACKER, "Sec-Fetch-Site": "cross-site"})[0] == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api/v1/tenants", RUN, "/metrics", "/docs", "/openapi.json", "/", "/nowhere"])
def test_a_rebound_name_gets_nothing(raw: Raw, method: str, path: str) -> None:
    """A request with a foreign host name is refused, which prevents DNS rebinding."""
    status, kind = raw.send(method, path, {"Host": f"rebind.attacker.example:{raw.port}"})
    assert status == 421
    assert kind == "unknown-host" or method == "HEAD"


def test_probes_know_no_name(raw: Raw) -> None:
    """`/health` responds to any host name."""
    assert raw.send("GET", "/health", {"Host": "10.1.2.3:8080"}) == (200, "")


def test_two_hosts_are_none(raw: Raw) -> None:
    """A request that names two hosts is refused, even if one of them is right."""
    address = http.client.HTTPConnection("localhost", raw.port, timeout=30)
    address.putrequest("GET", "/api/v1/tenants", skip_host=True)
    address.putheader("Host", "localhost")
    address.putheader("Host", "attacker.example")
    address.endheaders()
    assert address.getresponse().status in {400, 421}
    address.close()


def test_a_refused_name_is_logged_once(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    """The log names the setting, once for each refused host."""
    with caplog.at_level(logging.WARNING, logger="chargeback.api.guard"):
        for _ in range(3):
            raw.send("GET", "/api/v1/tenants", {"Host": "once.example"})
    assert [record.getMessage() for record in caplog.records] == [
        "rejecting requests for host 'once.example'; if this is the service's name, add it to api.allowed_hosts"
    ]


def test_what_is_configured(store: TenantStore, pipeline: Counted) -> None:
    """Configured hosts are accepted, and configured origins may write if CORS is enabled."""
    limits = ApiLimits(30, True, ("https://finops.example",), hosts=AllowedHosts(["costs.example.com"]))
    with client_of(services_for(store, limits=limits, pipeline=pipeline)) as client:
        raw = Raw(str(client.base_url))
        host = {"Host": "costs.example.com"}
        assert raw.send("GET", "/api/v1/tenants", host)[0] == 200
        listed = {"Origin": "https://finops.example", "Sec-Fetch-Site": "cross-site"}
        assert raw.send("POST", RUN, host | listed) == (202, "")
        assert raw.send("POST", RUN, host | {"Origin": ATTACKER}) == (403, "foreign-origin")
        assert raw.send("POST", RUN, host | {"Origin": "https://costs.example.com"}) == (202, "")
