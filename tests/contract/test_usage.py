"""Measurements over HTTP: they agree with explanations and rows."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from tests.contract.records import Client, Everything, those


def test_rows_were_split_by_what_is_listed(client: Client, everything: Everything) -> None:
    """The usage of a row is the sum of the listed measurements of its identity on its resource."""
    sums: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    for item in client.all_items(f"{everything.base}/usage", start_date=everything.days[0]):
        if item["measure"] in {"bytes_in", "bytes_out"}:
            sums[(item["date"], item["resource_id"], item["subject"])] += Decimal(item["value"])
    rows = [
        row
        for row in those(everything.chargebacks, allocation_method="usage_ratio", product_type="KAFKA_NUM_CKUS")
        if row["identity_id"] != "UNALLOCATED"
    ]
    assert rows
    for row in rows:
        key = (row["timestamp"][:10], row["resource_id"], row["identity_id"])
        assert sums[key] == Decimal(row["metadata"]["identity_usage"])


def test_filters_order_and_pages(client: Client, everything: Everything) -> None:
    """Measurements can be filtered by measure, resource and subject, ordered by value, and read in pages."""
    path = f"{everything.base}/usage"
    everyone = client.all_items(path, period="3d")
    assert everyone == sorted(everyone, key=lambda item: item["date"])
    assert len({tuple(item.values()) for item in everyone}) == len(everyone)
    assert client.all_items(path, period="3d", page_size=7) == everyone
    one = everyone[0]
    for name in ("measure", "resource_id", "subject"):
        assert client.all_items(path, period="3d", **{name: one[name]}) == those(everyone, **{name: one[name]})
    largest = [Decimal(item["value"]) for item in client.all_items(path, sort_by="value", sort_order="desc")]
    assert largest == sorted(largest, reverse=True)
    assert client.all_items(path, period="3d", timezone="Asia/Tokyo") == everyone
    assert client.all_items(path, period="3d", as_of="2000-01-01T00:00:00Z") == []
    assert client.all_items(path, period="3d", as_of="2100-01-01T00:00:00Z") == everyone
