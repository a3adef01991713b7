"""Saved views, shared by everybody who sees a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract import page_shapes, shapes
from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client

URL = "/api/v1/tenants/scratch/views"
VIEW = {"name": "Payments", "page": "costs", "query": "period=30d&tag:team=payments&not.product_type=SUPPORT"}


@pytest.fixture
def views(client: Client) -> Iterator[Client]:
    """A client; afterwards tenant ``scratch`` has no views."""
    yield client
    for view in client.answer(URL)["items"]:
        assert client.delete(f"{URL}/{view['id']}").status_code == 204


def _saved(client: Client, **more: str) -> dict[str, Any]:
    response = client.post(URL, json=VIEW | more)
    assert response.status_code == 201, response.text
    shapes.check(page_shapes.VIEW, response.json())
    view: dict[str, Any] = response.json()
    return view


def test_the_life_of_a_view(views: Client) -> None:
    """The query comes back as it was; a change keeps the author; a name is taken once; another tenant sees nothing."""
    first, second = _saved(views, created_by="ann"), _saved(views, name="A map", page="map", query="")
    assert views.answer(URL) == {"items": [second, first]}
    assert (first["query"], first["created_by"], second["created_by"]) == (VIEW["query"], "ann", "api")
    assert "Payments" in detail_of(views.put(f"{URL}/{second['id']}", json=VIEW), 409)
    assert "Payments" in detail_of(views.post(URL, json=VIEW), 409)
    changed = views.put(f"{URL}/{first['id']}", json={"name": "B", "page": "topics", "query": ""})
    assert changed.json() == first | {"name": "B", "page": "topics", "query": ""}
    assert views.answer("/api/v1/tenants/plain/views") == {"items": []}
    assert kind_of(views.delete(f"/api/v1/tenants/plain/views/{first['id']}"), 404) == "not-found"
    assert views.delete(f"{URL}/{first['id']}").status_code == 204
    assert kind_of(views.delete(f"{URL}/{first['id']}"), 404) == "not-found"
    assert _saved(views, name="later")["id"] not in (first["id"], second["id"])


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["name", "page"]),
        (VIEW | {"name": "", "page": "a/b", "query": "x" * 8001}, ["name", "page", "query"]),
        (VIEW | {"id": 1, "created_by": "x" * 256}, ["created_by", "id"]),
        ([], ["body"]),
    ],
)
def test_what_is_refused(views: Client, body: Any, named: list[str]) -> None:
    """400, with every field that is wrong."""
    assert complaints(views.post(URL, json=body)) == named
