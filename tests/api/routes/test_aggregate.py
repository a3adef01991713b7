"""Sums over HTTP."""

from __future__ import annotations

import httpx
import pytest

from chargeback.api.schemas.chargebacks import AggregateAnswer
from chargeback.store.queries import aggregate
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, LAST, known

URL = f"{ACME}/chargebacks/aggregate"


def test_by_identity_and_day_unless_asked_otherwise(client: httpx.Client) -> None:
    """Totals and buckets are decimal texts of the documented shape."""
    response = client.get(URL)
    body = response.json()
    AggregateAnswer.model_validate(body)
    assert "x-buckets-truncated" not in response.headers
    assert (body["total_amount"], body["usage_amount"], body["shared_amount"]) == ("50.00", "26.25", "23.75")
    assert (body["total_rows"], len(body["buckets"]), body["currency"]) == (15, 15, "USD")
    assert body["buckets"][-1] == {
        "dimensions": {"identity_id": "sa-2"},
        "time_bucket": LAST.isoformat(),
        "total_amount": "1.25",
        "usage_amount": "0.00",
        "shared_amount": "1.25",
        "row_count": 1,
    }


@pytest.mark.parametrize("unit", ["hour", "day", "week", "month"])
def test_every_column_and_unit(client: httpx.Client, unit: str) -> None:
    """Whatever the grouping, the total is the same."""
    for column in (*CHARGEBACKS.groups, "tag:team"):
        body = client.get(URL, params={"group_by": [column, "cost_type"], "time_bucket": unit}).json()
        assert body["total_amount"] == "50.00"
        assert set(body["buckets"][0]["dimensions"]) == {column, "cost_type"}


def test_truncated_buckets_are_announced(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header says that the buckets are not all; the totals are. A file without all of them is refused: it would
    look complete."""
    monkeypatch.setattr(aggregate, "MAX_BUCKETS", 4)
    response = client.get(URL, params={"page": 2})  # means nothing here, but is another question
    assert response.headers["x-buckets-truncated"] == "true"
    assert len(response.json()["buckets"]) == 3
    assert response.json()["total_amount"] == "50.00"
    file = client.get(f"{URL}.csv")
    assert file.status_code == 400
    assert [each["parameter"] for each in file.json()["errors"]] == ["group_by"]


def test_tags_group_and_filter(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Tags count as they are when asked."""
    known(own_store, resources=["lkc-1"], identities=["sa-1"])
    own_client.post(f"{ACME}/entities/identity/sa-1/tags", json={"tag_key": "team", "tag_value": "a"})
    own_client.post(f"{ACME}/entities/resource/lkc-1/tags", json={"tag_key": "team", "tag_value": "b"})
    month = {"group_by": "tag:team", "time_bucket": "month", "timezone": "UTC"}
    sums: dict[str, float] = {}
    for bucket in own_client.get(URL, params=month).json()["buckets"]:
        name = bucket["dimensions"]["tag:team"]
        sums[name] = sums.get(name, 0) + float(bucket["total_amount"])
    assert sums == {"a": 26.25, "b": 6.25, "UNTAGGED": 17.5}
    some = own_client.get(URL, params=month | {"tag:team": "b,UNTAGGED"}).json()
    assert some["total_amount"] == "23.75"
