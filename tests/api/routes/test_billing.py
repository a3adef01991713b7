"""Billing lines."""

from __future__ import annotations

import httpx

from chargeback.api.routes.billing import BillingLineItem
from chargeback.reports.answers import PageOf
from tests.api.conftest import ACME


def test_a_page_of_lines(client: httpx.Client) -> None:
    """The envelope has the counts; every line has exactly the documented fields."""
    body = client.get(f"{ACME}/billing", params={"page_size": 3, "page": 2}).json()
    assert (body["total"], body["page"], body["page_size"], body["pages"], len(body["items"])) == (10, 2, 3, 4, 3)
    PageOf[BillingLineItem].model_validate(body)


def test_filters(client: httpx.Client) -> None:
    """Filters apply; an unknown value returns an empty list."""
    assert client.get(f"{ACME}/billing", params={"resource_id": "lkc-2"}).json()["total"] == 5
    empty = client.get(f"{ACME}/billing", params={"product_type": "nope"}).json()
    assert (empty["items"], empty["total"], empty["pages"]) == ([], 0, 0)
