"""SPEC §4 «Common parameters» and §8: defaults, limits, and what is refused, at every endpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.deployment import DAYS
from tests.contract.endpoints import ENDPOINTS, TENANT, Endpoint
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, needed_of
from tests.support.clock import TODAY

GETS = [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET" and endpoint.path.startswith("/api/")]
PAGED = [
    "billing",
    "chargebacks",
    "chargebacks/allocation-issues",
    "resources",
    "identities",
    "tags",
    "topic-attributions",
]

BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"page": 0}, ["page"]),
    ({"page": -1}, ["page"]),
    ({"page": "two"}, ["page"]),
    ({"page": ""}, ["page"]),
    ({"page_size": 0}, ["page_size"]),
    ({"page_size": 1001}, ["page_size"]),
    ({"page_size": "1.5"}, ["page_size"]),
    ({"start_date": "2026-02-30"}, ["start_date"]),
    ({"start_date": "20260201"}, ["start_date"]),
    ({"end_date": "2026-02-01T00:00:00Z"}, ["end_date"]),
    ({"end_date": "yesterday"}, ["end_date"]),
    ({"start_date": "2026-02-02", "end_date": "2026-02-01"}, ["start_date"]),
    ({"start_date": (TODAY + timedelta(days=3)).isoformat()}, ["start_date"]),
    ({"timezone": "Mars/Olympus_Mons"}, ["timezone"]),
    ({"timezone": ""}, ["timezone"]),
    ({"timezone": "../../etc/passwd"}, ["timezone"]),
    ({"timezone": "localtime"}, ["timezone"]),
    ({"timezone": "right/Europe/Berlin"}, ["timezone"]),
    ({"nonsense": 1}, ["nonsense"]),
    ({"page": [1, 2]}, ["page"]),
    (
        {"page": 0, "page_size": 0, "timezone": "x", "start_date": "x", "why": 1},
        ["page", "page_size", "start_date", "timezone", "why"],
    ),
]


@pytest.mark.parametrize("endpoint", GETS, ids=lambda endpoint: endpoint.name)
def test_every_get_accepts_the_common_parameters(client: Client, endpoint: Endpoint, everything: Everything) -> None:
    """Every GET accepts the common parameters, even if it does not use them."""
    common: dict[str, Any] = {
        "start_date": TODAY,
        "end_date": TODAY,
        "timezone": "Europe/Berlin",
        "page": 1,
        "page_size": 1000,
    }
    common |= needed_of(endpoint, everything)
    assert client.get(endpoint.of("acme", **everything.ids), params=common).status_code == 200


@pytest.mark.parametrize("endpoint", GETS, ids=lambda endpoint: endpoint.name)
def test_every_get_refuses_what_is_wrong_with_them(client: Client, endpoint: Endpoint) -> None:
    """Invalid, unknown and repeated parameters are a 400 that names all of them."""
    for parameters, named in BAD:
        response = client.get(endpoint.of("acme"), params=dict(endpoint.needed) | parameters)
        assert complaints(response) == named, parameters


@pytest.mark.extensive
@pytest.mark.parametrize("name", PAGED)
def test_pages(client: Client, everything: Everything, name: str) -> None:
    """The default is page 1 of size 100; sizes are 1 to 1000; a page is always the same part of the list."""
    path = f"{everything.base}/{name}"
    default = client.answer(path)
    assert (default["page"], default["page_size"]) == (1, 100)
    whole = client.all_items(path)
    assert default["items"] == whole[:100]
    for size in (1, 7, 1000):
        pages = -(-len(whole) // size)
        for page in {1, 2, max(pages // 2, 1), max(pages, 1)}:
            answer = client.answer(path, page=page, page_size=size)
            assert answer["items"] == whole[(page - 1) * size : page * size]
            assert (answer["total"], answer["pages"]) == (len(whole), pages)


@pytest.mark.parametrize("name", PAGED)
@pytest.mark.parametrize("page", [10_000, 2**31, 2**63, 10**40])
def test_pages_past_the_end_are_empty(client: Client, everything: Everything, name: str, page: int) -> None:
    """A page past the end is empty, however far."""
    answer = client.answer(f"{everything.base}/{name}", page=page, page_size=1000)
    assert answer["items"] == []
    assert answer["page"] == page
    assert answer["total"] == client.answer(f"{everything.base}/{name}", page_size=1)["total"]


def test_an_empty_list_has_no_pages(client: Client, everything: Everything) -> None:
    """An empty list has 0 ``pages``."""
    answer = client.answer(f"{everything.base}/billing", resource_id="nobody")
    assert answer == {"items": [], "total": 0, "page": 1, "page_size": 100, "pages": 0}


DATED = ["billing", "chargebacks", "chargebacks/allocation-issues", "topic-attributions"]


@pytest.mark.extensive
@pytest.mark.parametrize("name", DATED)
def test_the_default_range_is_the_lookback(client: Client, everything: Everything, name: str) -> None:
    """Without dates, the range is the tenant's lookback window, which ends today."""
    path, lookback = f"{everything.base}/{name}", DAYS
    whole = client.all_items(path)
    start, end = TODAY - timedelta(days=lookback), TODAY
    assert whole == client.all_items(path, start_date=start, end_date=end)
    last = end - timedelta(days=9)
    only_end = client.all_items(path, end_date=last)
    assert only_end == client.all_items(path, start_date=last - timedelta(days=lookback), end_date=last)
    assert client.all_items(path, start_date=last) == client.all_items(path, start_date=last, end_date=end)


@pytest.mark.parametrize("path", [TENANT.format(tenant_name="acme") + "/billing", "/api/v1/tenants"])
def test_extreme_dates_and_zones_are_harmless(client: Client, path: str) -> None:
    """Any date of the calendar is valid in any time zone."""
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu", "UTC"):
        parameters = {"start_date": "0001-01-01", "end_date": "9999-12-31", "timezone": zone}
        assert client.get(path, params=parameters).status_code == 200
