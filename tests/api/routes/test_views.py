"""Saved views over HTTP, on both databases."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from chargeback.api.routes import views
from chargeback.api.routes.views import ViewList
from tests.api.conftest import ACME, parameters_of

URL = f"{ACME}/views"
VIEW = {"name": "Payments", "page": "costs", "query": "period=30d&tag:team=payments"}


def _saved(client: httpx.Client, **more: str) -> dict[str, Any]:
    response = client.post(URL, json=VIEW | more)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def test_the_life_of_a_view(own_client: httpx.Client) -> None:
    """A view is saved, listed by name, changed without losing its author, and removed."""
    first = _saved(own_client, created_by="ann")
    second = _saved(own_client, name="Map of all", page="map", query="")
    assert (first["created_by"], second["created_by"]) == ("ann", "api")
    listed = own_client.get(URL).json()
    ViewList.model_validate(listed)
    assert listed == {"items": [second, first]}
    wanted = {"name": "A", "page": "topics", "query": "period=month"}
    changed = own_client.put(f"{URL}/{first['id']}", json=wanted)
    assert (changed.status_code, changed.json()) == (200, first | wanted)
    removed = own_client.delete(f"{URL}/{first['id']}")
    assert (removed.status_code, removed.content) == (204, b"")
    assert own_client.get(URL).json() == {"items": [second]}


def test_a_name_is_unique(own_client: httpx.Client) -> None:
    """A 409 names the existing view; a view may keep its own name."""
    first, second = _saved(own_client), _saved(own_client, name="Other")
    for response in (own_client.post(URL, json=VIEW), own_client.put(f"{URL}/{second['id']}", json=VIEW)):
        assert response.status_code == 409
        assert "'Payments'" in response.json()["detail"]
    kept = own_client.put(f"{URL}/{first['id']}", json=VIEW | {"page": "map"})
    assert (kept.status_code, kept.json()["page"]) == (200, "map")


def test_not_more_than_so_many(own_client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another view beyond the limit is a 409, until one is removed."""
    monkeypatch.setattr(views, "MOST_VIEWS", 1)
    first = _saved(own_client)
    response = own_client.post(URL, json=VIEW | {"name": "Two"})
    assert (response.status_code, response.json()["detail"]) == (409, "There are 1 views already; remove some.")
    own_client.delete(f"{URL}/{first['id']}")
    _saved(own_client, name="Two")


@pytest.mark.parametrize("view_id", ["1", "999999999", "0"])
def test_what_is_not_there(client: httpx.Client, view_id: str) -> None:
    """A missing view is a 404, for a change and for a removal."""
    assert client.put(f"{URL}/{view_id}", json=VIEW).status_code == 404
    assert client.delete(f"{URL}/{view_id}").status_code == 404


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"name": ""}, ["name"]),
        ({"name": " \u200b"}, ["name"]),
        ({"name": "x" * 256}, ["name"]),
        ({"name": "a\x00"}, ["name"]),
        ({"page": ""}, ["page"]),
        ({"page": "../costs"}, ["page"]),
        ({"page": "x" * 65}, ["page"]),
        ({"query": "x" * 8001}, ["query"]),
        ({"query": "a\nb"}, ["query"]),
        ({"query": None, "created_by": 1, "id": "7"}, ["created_by", "id", "query"]),
    ],
)
def test_what_is_refused(client: httpx.Client, more: dict[str, Any], wrong: list[str]) -> None:
    """A 400 names every invalid field; nothing is saved."""
    assert parameters_of(client.post(URL, json=VIEW | more)) == wrong
    assert client.get(URL).json() == {"items": []}


def test_what_is_no_id(client: httpx.Client) -> None:
    """An id is a number of up to nine digits; anything else is a 404."""
    for view_id in ("one", "-1", "1234567890", "1.0"):
        assert client.put(f"{URL}/{view_id}", json=VIEW).status_code == 404
        assert client.delete(f"{URL}/{view_id}").status_code == 404


def test_pages_of_other_sites_change_nothing(client: httpx.Client) -> None:
    """Requests of other origins are refused."""
    headers = {"Origin": "https://elsewhere.example"}
    assert client.post(URL, json=VIEW, headers=headers).status_code == 403
    assert client.put(f"{URL}/1", json=VIEW, headers=headers).status_code == 403
    assert client.delete(f"{URL}/1", headers=headers).status_code == 403
    assert client.get(URL).json() == {"items": []}
