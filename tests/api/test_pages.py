"""`/` leads to a page, and `/docs` works in a network without any other host."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from urllib.parse import urljoin

import httpx
import pytest

from chargeback.api.services import ApiLimits
from chargeback.store.tenant import TenantStore
from tests.support.serving import client_of, services_for

AS_BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_browser_is_sent_to_its_page(client: httpx.Client) -> None:
    """The redirect is relative, so that it works below a proxy's path."""
    answer = client.get("/", headers=AS_BROWSER)
    assert (answer.status_code, answer.headers["location"], answer.headers["vary"]) == (307, "ui/", "Accept")
    assert client.get("/", headers=AS_BROWSER, follow_redirects=True).headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(("mode", "page"), [("worker", True), ("both", False), ("api", False)])
def test_without_the_page_a_browser_is_sent_to_the_documentation(store: TenantStore, mode: str, page: bool) -> None:
    """A worker has no page, and neither has a service with `api.page: false`."""
    with client_of(services_for(store, mode=mode, limits=ApiLimits(page=page))) as client:
        assert client.get("/", headers=AS_BROWSER).headers["location"] == "docs"
        assert client.get("/ui/").status_code == 404
        assert "page" not in client.get("/").json()["links"]


def test_a_program_is_told_where_everything_is(client: httpx.Client) -> None:
    """Links are relative and valid."""
    answer = client.get("/").json()
    assert (answer["name"], answer["version"]) == ("chargeback", "1.2.3")
    assert len(answer["links"].keys() - {"page"}) == 6  # the page is named where it has been built
    for link in answer["links"].values():
        assert client.get(urljoin("/", link)).status_code == 200


def test_a_worker_names_only_what_it_has(store: TenantStore) -> None:
    """In mode worker, there are no links to the API."""
    with client_of(services_for(store, mode="worker")) as worker:
        for link in worker.get("/").json()["links"].values():
            assert worker.get(urljoin("/", link)).status_code == 200


def test_the_documentation_is_complete_in_itself(client: httpx.Client) -> None:
    """The page refers to no other host, everything that it loads exists, and its policy forbids the browser to load
    anything else."""
    page = client.get("/docs")
    assert page.status_code == 200
    assert "//" not in page.text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {"docs/swagger-ui.css", "docs/swagger-ui-bundle.js", "docs/start.js", "openapi.json"} <= set(loaded)
    for address in loaded:
        if not address.startswith("data:"):
            assert client.get(urljoin("/docs", address)).status_code == 200, address
    start = client.get("/docs/start.js").text
    assert "validatorUrl: null" in start
    assert re.findall(r'fetch\("([^"]+)"\)', start) == ["openapi.json"]
    assert "http" not in start
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert not re.search(r"http|\*|unsafe|//", policy)


def test_files_are_asked_for_again_only_when_they_changed(client: httpx.Client) -> None:
    """A browser that has the current file gets 304."""
    first = client.get("/docs/swagger-ui-bundle.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = client.get("/docs/swagger-ui-bundle.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/docs/", "/docs/LICENSE", "/docs/..%2Fdocs.html", "/docs/oauth2-redirect"])
def test_nothing_else_is_served(client: httpx.Client, path: str) -> None:
    """Only the files of the page are served."""
    assert client.get(path).status_code == 404


def test_the_shipped_files_are_those_on_record() -> None:
    """Each file has the recorded digest, and its licence is shipped."""
    folder = files("chargeback.api").joinpath("static", "swagger-ui")
    record = dict(re.findall(r"\| `([^`]+)` \| `([0-9a-f]{64})` \|", folder.joinpath("README.md").read_text("utf-8")))
    shipped = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    del shipped["README.md"]
    assert shipped == record
    assert "Apache License" in folder.joinpath("LICENSE").read_text("utf-8")
