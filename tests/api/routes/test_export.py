"""The export over HTTP."""

from __future__ import annotations

import csv
import io
import json

import httpx
import pyarrow.parquet as pq

from chargeback.model.money import render
from tests.api.conftest import ACME, DAYS, parameters_of


def test_without_a_body_everything_is_default(client: httpx.Client) -> None:
    """By default, all rows of the lookback window are exported in the default columns."""
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
    """The file has the requested columns in the requested order."""
    body = {
        "columns": ["amount", "identity_id"],
        "start_date": f"{DAYS[0]}",
        "end_date": f"{DAYS[0]}",
        "filters": {"cost_type": "shared", "identity_id": "sa-2"},
    }
    assert client.post(f"{ACME}/export", json=body).text == "amount,identity_id\r\n1.25,sa-2\r\n"


def test_formats(client: httpx.Client) -> None:
    """Each format has its media type, its file suffix and the same rows as CSV; an unknown format is refused."""
    body = {"columns": ["timestamp", "identity_id", "amount"]}
    rows = list(csv.DictReader(io.StringIO(client.post(f"{ACME}/export", json=body).text)))
    parquet = client.post(f"{ACME}/export", json={**body, "format": "parquet"})
    assert parquet.headers["content-type"] == "application/vnd.apache.parquet"
    assert parquet.headers["content-disposition"] == "attachment; filename=chargebacks.parquet"
    table = pq.read_table(io.BytesIO(parquet.content))
    assert [render(amount) for amount in table.column("amount").to_pylist()] == [row["amount"] for row in rows]
    lines = client.post(f"{ACME}/export", json={**body, "format": "jsonl"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert lines.headers["content-disposition"] == "attachment; filename=chargebacks.jsonl"
    assert [json.loads(line) for line in lines.text.splitlines()] == rows != []
    refused = client.post(f"{ACME}/export", json={"format": "xlsx"})
    assert (refused.status_code, parameters_of(refused)) == (400, ["format"])
