"""The CSV export over HTTP."""

from __future__ import annotations

import csv
import io

import httpx

from tests.api.conftest import ACME, DAYS


def test_without_a_body_everything_is_default(client: httpx.Client) -> None:
    """All rows of the lookback window in the default columns, as an attachment."""
    response = client.post(f"{ACME}/export")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == "attachment; filename=chargebacks.csv"
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert len(rows) == 15
    assert list(rows[0]) == [
        "timestamp",
        "resource_id",
        "product_category",
        "product_type",
        "identity_id",
        "cost_type",
        "amount",
        "allocation_method",
        "tags",
    ]


def test_columns_range_and_filters(client: httpx.Client) -> None:
    """What was asked, in the order it was asked."""
    body = {
        "columns": ["amount", "identity_id"],
        "start_date": f"{DAYS[0]}",
        "end_date": f"{DAYS[0]}",
        "filters": {"cost_type": "shared", "identity_id": "sa-2"},
    }
    assert client.post(f"{ACME}/export", json=body).text == "amount,identity_id\r\n1.25,sa-2\r\n"
