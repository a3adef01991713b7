"""Lists of the control plane: pages, unusual responses, and the rate limits that tenants of one organization share."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer, ServerOptions
from chargeback.ecosystems.confluent_cloud.api import ControlPlane, ListRequest
from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import SourceDataError, SourceRejected, SourceUnavailable
from tests.ecosystems.confluent_cloud.conftest import QUICK, TODAY, settings_for
from tests.sources.loopback import Answer, Asked, Loopback, Script, each


def listing(data: object, following: object = None) -> Answer:
    """Return a page of a list."""
    return Answer(json.dumps({"kind": "List", "metadata": {"next": following}, "data": data}))


@contextmanager
def scripted(script: Script, context: TenantContext) -> Iterator[tuple[ControlPlane, Loopback]]:
    """Serve a control plane with scripted responses."""
    with Loopback(script) as server:
        settings = settings_for(_Address(server.url))  # type: ignore[arg-type]
        plane = ControlPlane(context, settings, QUICK)
        try:
            yield plane, server
        finally:
            plane.close()


class _Address:
    """The parts of a served organization that settings need."""

    def __init__(self, url: str) -> None:
        self.url, self.prometheus_url = url, f"{url}/prometheus"
        self.key, self.secret, self.info = "KEY", "SECRET", self
        self.flink: tuple[object, ...] = ()


def ids(script: Script, context: TenantContext) -> tuple[list[str], list[Asked]]:
    """Return the ids of all listed objects, and the requests."""
    with scripted(script, context) as (plane, server):
        return [each["id"] for each in plane.list("/x", environment="env-1")], server.asked


@pytest.mark.parametrize("end", [None, ""])
def test_pages_are_followed_by_token(context: TenantContext, end: str | None) -> None:
    """Only the token is taken from `next`; the address does not change, page_size is sent once, and filters always."""
    following = "https://elsewhere.example/other?page_size=100&page_token=t%2B1"
    found, asked = ids(each(listing([{"id": "a"}], following), listing([{"id": "b"}], end)), context)
    assert found == ["a", "b"]
    assert [request.query for request in asked] == [
        {"environment": "env-1", "page_size": "100"},
        {"environment": "env-1", "page_token": "t+1"},
    ]


@pytest.mark.parametrize(
    "body", ['{"data": null, "metadata": {}}', '{"data": [], "metadata": null}', '{"metadata": {"next": null}}']
)
def test_an_empty_list_in_all_its_shapes(context: TenantContext, body: str) -> None:
    """An empty list may have `"data": null`, null metadata, or no data."""
    assert ids(each(Answer(body)), context)[0] == []


@pytest.mark.parametrize(
    "body",
    ["{}", "[]", '"text"', '{"data": {}}', '{"data": ["a"]}', '{"data": [], "metadata": []}', '{"errors": []}'],
)
def test_what_is_no_list_is_not_an_empty_one(context: TenantContext, body: str) -> None:
    """A response that is not a list is an error, not an empty list."""
    with pytest.raises(SourceDataError):
        ids(each(Answer(body)), context)


@pytest.mark.parametrize("following", ["https://x/y", "https://x/y?page_token=", 7, {"a": 1}])
def test_a_next_page_without_token_is_an_error(context: TenantContext, following: object) -> None:
    """A `next` without a page token is an error."""
    with pytest.raises(SourceDataError, match="page_token"):
        ids(each(listing([], following)), context)


def test_an_object_on_two_pages_is_one_object(context: TenantContext) -> None:
    """An object that appears on two pages, because the list changes while it is read, is returned once."""
    first, second = [{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "c"}]
    assert ids(each(listing(first, "?page_token=1"), listing(second)), context)[0] == ["a", "b", "c"]


def test_the_same_token_again_is_a_loop(context: TenantContext) -> None:
    """A page token that is repeated is an error, not an endless loop."""
    with pytest.raises(SourceDataError, match="repeat"):
        ids(lambda asked: listing([{"id": str(asked.number)}], "?page_token=same"), context)


def test_the_same_page_again_is_a_loop(context: TenantContext) -> None:
    """A page that is repeated with a new token is an error: on a bill its rows would count twice."""
    page = [{"id": "a"}, {"id": "b"}]
    with pytest.raises(SourceDataError, match="repeat"):
        ids(lambda asked: listing(page, f"?page_token={asked.number}"), context)


@pytest.mark.parametrize("kind", ["endless_paging", "duplicated_page"])
def test_paging_faults_of_the_served_organization(kind: str, server: DemoServer, plane: ControlPlane) -> None:
    """Endless and repeated pages raise an error."""
    server.faults.add("/iam/v2/api-keys", Fault(kind, times=None))  # type: ignore[arg-type]
    with pytest.raises(SourceDataError):
        list(plane.pages(ListRequest("/iam/v2/api-keys", {}, page_size=10)))


def test_the_organization_is_asked_for_once(server: DemoServer, plane: ControlPlane) -> None:
    """The organization's id is requested once and cached."""
    assert plane.organization_id() == plane.organization_id() == server.organisation.inventory.organization_id
    assert server.requests["/org/v2/organizations"] == 1


def test_a_configured_organization_is_not_asked_for(server: DemoServer, context: TenantContext) -> None:
    """With organization_id in the settings, the id is not requested."""
    plane = ControlPlane(context, settings_for(server, organization_id="org-9"), QUICK)
    assert plane.organization_id() == "org-9"
    assert not server.requests
    plane.close()


def test_an_organization_that_may_not_be_seen_is_none(server: DemoServer, plane: ControlPlane) -> None:
    """If the organizations may not be listed, the id is None."""
    server.faults.add("/org/v2/organizations", Fault(status=403, times=None))
    assert plane.organization_id() is None


def test_an_organization_that_cannot_be_asked_for_now_is_an_error(server: DemoServer, plane: ControlPlane) -> None:
    """If the organizations cannot be listed temporarily, this is an error: a changing id would change the bill."""
    server.faults.add("/org/v2/organizations", Fault(status=500, times=None))
    with pytest.raises(SourceUnavailable):
        plane.organization_id()


def test_a_wrong_key_is_refused(server: DemoServer, context: TenantContext) -> None:
    """A wrong key raises an error with status 401, without the secret."""
    api = {"key": server.key, "secret": "not-the-secret", "url": server.url}
    plane = ControlPlane(context, settings_for(server, ccloud_api=api), QUICK)
    with pytest.raises(SourceRejected) as caught:
        list(plane.list("/iam/v2/users"))
    assert caught.value.status == 401
    assert "not-the-secret" not in str(caught.value)
    plane.close()


def test_tenants_of_one_organization_share_its_limit(server: DemoServer, tmp_path: Path) -> None:
    """Two tenants with the same organization have one limit, even with different keys; costs have their own limit."""
    planes = []
    for name in ("one", "two"):
        context = TenantContext(name, name, "USD", TODAY, Event(), str(tmp_path))
        api = {"key": name, "secret": "x", "url": server.url}
        planes.append(ControlPlane(context, settings_for(server, ccloud_api=api, organization_id="org-1"), QUICK))
    one, two = planes
    one.limiter("control-plane").block(60)
    assert two.limiter("control-plane").reserve() > 1
    assert two.limiter("costs").reserve() == 0
    for plane in planes:
        plane.close()


def test_before_the_organization_is_known_the_key_has_a_limit(server: DemoServer, plane: ControlPlane) -> None:
    """The first request counts against the limit of the key, later ones against that of the organization."""
    before = plane.limiter("control-plane")
    plane.organization_id()
    assert plane.limiter("control-plane") is not before


def test_a_storm_of_429_is_waited_out(organisation: object, context: TenantContext) -> None:
    """Requests that are rate limited are retried until they succeed."""
    options = ServerOptions(rate_burst=2, rate_per_second=20)
    with DemoServer(organisation, options=options) as server:  # type: ignore[arg-type]
        plane = ControlPlane(context, settings_for(server), QUICK)
        counts: list[int] = []
        threads = [
            threading.Thread(target=lambda: counts.append(len(list(plane.list("/iam/v2/users"))))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        plane.close()
    assert counts == [4, 4, 4, 4]
