"""Revisions of days, and responses as of an earlier instant."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.contract.records import Client, Everything, shown, total

LONG_AGO = "2000-01-01T00:00:00Z"
FAR_AHEAD = "2100-01-01T00:00:00Z"


@pytest.mark.parametrize("name", ["chargebacks", "billing", "topic-attributions"])
def test_lists_as_of_an_instant(client: Client, everything: Everything, name: str) -> None:
    """As of an instant after the last calculation, lists are as they are now; before the first one, they are empty.
    Links to explanations have the same instant."""
    path = f"{everything.base}/{name}"
    then = client.all_items(path, as_of=FAR_AHEAD)
    for row in then:
        if "explain" in row["metadata"]:
            link, is_dated, _ = row["metadata"]["explain"].partition("&as_of=")
            assert is_dated
            row["metadata"]["explain"] = link
    assert then == client.all_items(path)
    assert client.all_items(path, as_of=LONG_AGO) == []


def test_sums_files_and_dates_as_of_an_instant(client: Client, everything: Everything) -> None:
    """Aggregates, dates, exports and the reconciliation apply the instant as well."""
    base = everything.base
    for path in ("chargebacks/aggregate", "chargebacks/dates", "topic-attributions/dates"):
        assert client.answer(f"{base}/{path}", as_of=FAR_AHEAD) == client.answer(f"{base}/{path}")
    assert client.answer(f"{base}/chargebacks/aggregate", as_of=LONG_AGO)["total_amount"] == "0.00"
    assert client.answer(f"{base}/chargebacks/dates", as_of=LONG_AGO) == {"dates": []}
    whole = client.post(f"{base}/export", json={})
    assert client.post(f"{base}/export", json={"as_of": FAR_AHEAD}).content == whole.content
    assert client.post(f"{base}/export", json={"as_of": LONG_AGO}).text.count("\n") == 1
    assert client.get(f"{base}/chargebacks.csv", params={"as_of": LONG_AGO}).text.count("\n") == 1
    then = client.answer(f"{base}/reconciliation", period="7d", as_of=FAR_AHEAD)
    assert {day["state"] for day in then["days"]} == {"equal"}
    none = client.answer(f"{base}/reconciliation", as_of=LONG_AGO)
    assert [none["total"][name] for name in ("billed", "charged", "difference")] == ["0.00"] * 3


def test_revisions_of_a_day(client: Client, everything: Everything) -> None:
    """A day that was calculated once has one revision, with the rows and the sum of the day."""
    day = everything.days[-1]
    rows = [row for row in everything.chargebacks if row["timestamp"][:10] == day]
    answer = client.answer(f"{everything.base}/days/{day}/revisions")
    (first,) = [item for item in answer["items"] if item["dataset"] == "chargebacks"]
    assert (first["revision"], first["cause"], first["moved"]) == (1, "first", None)
    assert (first["rows"], first["total"], first["is_kept"]) == (len(rows), shown(total(rows)), True)
    assert client.answer(f"{everything.base}/days/2000-01-01/revisions") == {"date": "2000-01-01", "items": []}
    assert client.get(f"{everything.base}/days/0/revisions").status_code == 404


def test_days_that_were_restated(client: Client, everything: Everything) -> None:
    """Restated days agree with the revisions of each day."""
    path = f"{everything.base}/restatements"
    answer = client.answer(path, start_date=everything.days[0], end_date=everything.days[-1])
    assert answer["total"] == len(answer["items"])
    for item in answer["items"]:
        listed = client.answer(f"{everything.base}/days/{item['date']}/revisions")["items"]
        contents = [each for each in listed if each["dataset"] == "chargebacks"]
        assert (item["total_before"], item["total_after"]) == (contents[0]["total"], contents[-1]["total"])
        assert Decimal(item["delta"]) == Decimal(item["total_after"]) - Decimal(item["total_before"])
    assert client.answer(path, as_of=LONG_AGO)["items"] == []
    wrong = client.get(path, params={"period": "7d", "start_date": "2026-01-01", "page_size": 0, "by": "tag:team"})
    assert [each["parameter"] for each in wrong.json()["errors"]] == ["by", "page_size", "period"]


def test_what_changed_between_two_instants(client: Client, everything: Everything) -> None:
    """Since before the first calculation, everything changed; since the last one, nothing."""
    path = f"{everything.base}/chargebacks/diff"
    answer = client.answer(path, from_as_of=LONG_AGO, group_by="product_type", limit=2)
    assert (answer["total_before"], answer["total_after"]) == ("0.00", shown(total(everything.chargebacks)))
    listed = [*answer["items"], answer["other"]]
    assert sum(Decimal(item["delta"]) for item in listed) == Decimal(answer["delta"])
    assert [item["causes"] for item in answer["items"]] == [["first"]] * 2
    assert client.answer(path, from_as_of=FAR_AHEAD)["items"] == []
    late = client.get(path, params={"from_as_of": FAR_AHEAD, "as_of": LONG_AGO})
    assert [each["parameter"] for each in late.json()["errors"]] == ["from_as_of"]
    assert client.get(path).status_code == 400
