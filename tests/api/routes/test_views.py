"""Saved views over HTTP."""

from __future__ import annotations

import httpx
import pytest

from chargeback.api.schemas import views
from tests.api.conftest import ACME, parameters_of

URL = f"{ACME}/views"


def test_views_are_bounded(own_client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are never more than so many."""
    monkeypatch.setattr("chargeback.api.routes.views.MOST_VIEWS", 1)
    view = {"name": "a", "page": "costs"}
    views.ViewItem.model_validate(own_client.post(URL, json=view).json())
    assert own_client.post(URL, json=view | {"name": "b"}).status_code == 409


def test_what_is_wrong_is_refused(own_client: httpx.Client) -> None:
    """400 with the fields, 404 for ids that are none, 403 for pages of other sites."""
    assert parameters_of(own_client.post(URL, json={"name": "a", "page": "Costs"})) == ["page"]
    assert own_client.delete(f"{URL}/x").status_code == 404
    assert own_client.delete(f"{URL}/7").status_code == 404
    assert own_client.delete(f"{URL}/7", headers={"Origin": "https://elsewhere.example"}).status_code == 403
