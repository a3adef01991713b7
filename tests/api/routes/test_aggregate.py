"""Sums over HTTP."""

from __future__ import annotations

import shutil

import httpx
import pytest

from chargeback.api.routes.aggregate import AggregateAnswer
from chargeback.model.days import ONE_DAY
from chargeback.store.control.days import save_day
from chargeback.store.facts.partial_files import PARTIALS
from chargeback.store.facts.tables import BILLING_TABLE
from chargeback.store.queries import aggregate
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, known
from tests.support.facts import Share, write_shares
from tests.support.serving import client_of, services_for

URL = f"{ACME}/chargebacks/aggregate"


def test_by_identity_and_day_unless_asked_otherwise(client: httpx.Client) -> None:
    """By default, sums are by identity and day; amounts are decimal strings."""
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
    """The total is the same for every grouping."""
    for column in (*CHARGEBACKS.groups, "tag:team"):
        body = client.get(URL, params={"group_by": [column, "cost_type"], "time_bucket": unit}).json()
        assert body["total_amount"] == "50.00"
        assert set(body["buckets"][0]["dimensions"]) == {column, "cost_type"}


def test_truncated_buckets_are_announced(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """When buckets are left out, a header says so and the totals still cover all rows; the file is refused, because it
    would look complete."""
    monkeypatch.setattr(aggregate, "MAX_BUCKETS", 4)
    response = client.get(URL, params={"page": 2})  # ignored here, but it makes another request
    assert response.headers["x-buckets-truncated"] == "true"
    assert len(response.json()["buckets"]) == 3
    assert response.json()["total_amount"] == "50.00"
    file = client.get(f"{URL}.csv")
    assert file.status_code == 400
    assert [each["parameter"] for each in file.json()["errors"]] == ["group_by"]


def test_tags_group_and_filter(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Sums are grouped and filtered by the current tags."""
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


def test_whether_the_days_are_reconciled(own_client: httpx.Client, own_store: TenantStore) -> None:
    """A header of every response, including cached ones and files, has the worst state of the days, regardless of
    filters; when the state changes, so does the ETag."""

    def ask(path: str = URL, **params: str) -> httpx.Response:
        window = {"start_date": str(DAYS[0]), "end_date": str(LAST), "identity_id": "sa-1"}
        return own_client.get(path, params=window | params)

    assert [ask().headers["x-reconciled"] for _ in range(2)] == ["equal", "equal"]
    assert ask(f"{URL}.csv").headers["x-reconciled"] == "equal"
    assert ask(start_date="2001-01-01", end_date="2001-02-01").headers["x-reconciled"] == "none"
    assert ask(end_date=str(LAST + ONE_DAY)).headers["x-reconciled"] == "pending"
    tag = ask().headers["etag"]
    write_shares(own_store.facts, [Share(DAYS[1], "sa-2", "10.000000000001")])
    different = own_client.get(ask().url, headers={"If-None-Match": tag})
    assert (different.status_code, different.headers["x-reconciled"]) == (200, "differs")
    assert ask(end_date=str(LAST + ONE_DAY)).headers["x-reconciled"] == "differs"
    assert ask(start_date=str(DAYS[2])).headers["x-reconciled"] == "equal"
    root = own_store.facts.root
    for folder in (*(root / BILLING_TABLE).glob("date=*"), root / PARTIALS):
        shutil.rmtree(folder)
    assert ask(start_date=str(DAYS[3])).headers["x-reconciled"] == "equal"
    with own_store.control.write() as connection:
        save_day(connection, LAST, error="so that nothing is cached")
    remembered = ask(start_date=str(DAYS[3]))
    assert (remembered.status_code, remembered.headers["x-reconciled"]) == (200, "equal")
    with client_of(services_for(own_store)) as fresh:
        unknown = fresh.get(ask().url.path, params={"start_date": str(DAYS[3]), "end_date": str(LAST)})
    assert (unknown.status_code, unknown.headers.get("x-reconciled")) == (200, None)
