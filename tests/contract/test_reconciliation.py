"""Bill and chargebacks side by side over HTTP, with the same sums as the lists and the aggregate."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, shown, total

AMOUNTS = ("billed", "charged", "difference", "unallocated", "pending", "by_topic")
GROUPS = ("day", "month", "product_type", "resource_id")


@pytest.mark.parametrize("group_by", GROUPS)
def test_every_group_sums_to_the_lists(client: Client, everything: Everything, group_by: str) -> None:
    """The total equals billing lines, chargebacks and topic attributions, and the entries sum to it."""
    path = f"{everything.base}/reconciliation"
    answer = client.answer(path, start_date=everything.days[0], end_date=everything.days[-1], group_by=group_by)
    whole = answer["total"]
    assert whole["billed"] == whole["charged"] == shown(total(everything.billing, "total_cost"))
    assert (whole["state"], whole["difference"], whole["pending"]) == ("equal", "0.00", "0.00")
    unallocated = [row for row in everything.chargebacks if row["identity_id"] == "UNALLOCATED"]
    assert whole["unallocated"] == shown(total(unallocated))
    assert whole["by_topic"] == shown(total(everything.topics))
    assert (whole["lines"], whole["rows"]) == (len(everything.billing), len(everything.chargebacks))
    assert (whole["policies"], whole["revision"]) == ("current", 1)
    entries = answer["days"] + answer["buckets"]
    assert (answer["buckets"] == []) == (group_by == "day") == (answer["days"] != [])
    for amount in AMOUNTS:
        assert whole[amount] == shown(sum((Decimal(each[amount]) for each in entries), Decimal(0)))
    assert whole["rows"] == sum(each["rows"] for each in entries)


@pytest.mark.parametrize(("group_by", "field"), [("product_type", "product_type"), ("resource_id", "resource_id")])
def test_entries_equal_the_aggregate(client: Client, everything: Everything, group_by: str, field: str) -> None:
    """For each value, the charged amount equals the aggregate and the billed amount equals its lines."""
    answer = client.answer(f"{everything.base}/reconciliation", group_by=group_by, period="10d")
    sums = client.answer(f"{everything.base}/chargebacks/aggregate", group_by=field, time_bucket="month", period="10d")
    charged: dict[str, Decimal] = {}
    for bucket in sums["buckets"]:
        value = bucket["dimensions"][field]
        charged[value] = charged.get(value, Decimal(0)) + Decimal(bucket["total_amount"])
    assert {each["value"]: each["charged"] for each in answer["buckets"]} == {
        value: shown(amount) for value, amount in charged.items()
    }
    days = everything.days[-10:]
    for each in answer["buckets"]:
        lines = [line for line in everything.billing if line[field] == each["value"] and line["timestamp"][:10] in days]
        assert each["billed"] == shown(total(lines, "total_cost"))
    if group_by == "resource_id":
        names = {each["resource_id"]: each["display_name"] for each in everything.resources}
        assert all(each["name"] == names[each["value"]] for each in answer["buckets"])


def test_days(client: Client, everything: Everything) -> None:
    """Each day has the fingerprint of its bill and its revision; too many days are refused."""
    answer = client.answer(f"{everything.base}/reconciliation", period="5d")
    assert [day["date"] for day in answer["days"]] == everything.days[-5:]
    for day in answer["days"]:
        assert day["fingerprint"]
        revisions = client.answer(f"{everything.base}/days/{day['date']}/revisions")["items"]
        newest = [each for each in revisions if each["dataset"] == "chargebacks"][-1]
        assert (day["revision"], day["calculated_at"], day["rows"], day["charged"]) == (
            newest["revision"],
            newest["calculated_at"],
            newest["rows"],
            newest["total"],
        )
    wrong = {"start_date": "2000-01-01", "end_date": "2010-01-01", "group_by": "tag:team"}
    assert complaints(client.get(f"{everything.base}/reconciliation", params=wrong)) == ["group_by"]
    del wrong["group_by"]
    assert complaints(client.get(f"{everything.base}/reconciliation", params=wrong)) == ["start_date"]
    assert client.answer("/api/v1/tenants/plain/reconciliation")["total"]["by_topic"] is None


@pytest.mark.parametrize("path", ["chargebacks/aggregate", "topic-attributions/aggregate"])
def test_sums_tell_whether_they_are_reconciled(client: Client, everything: Everything, path: str) -> None:
    """The header has the state of the reconciliation, in JSON and files, cached or not."""
    days = {"start_date": everything.days[0], "end_date": everything.days[-1]}
    state = client.answer(f"{everything.base}/reconciliation", **days)["total"]["state"]
    for form in ("", ".csv", "", ".csv"):
        response = client.get(f"{everything.base}/{path}{form}", params=days | {"timezone": "UTC"})
        assert response.headers["x-reconciled"] == state == "equal"


def test_a_file_of_the_bill(client: Client, everything: Everything) -> None:
    """If the listed bill is sent back as a file, nothing differs; if a line is missing, it is reported."""
    lines = [
        [line["timestamp"][:10], line["resource_id"], line["product_type"], line["total_cost"]]
        for line in everything.billing
    ]
    columns = {"date": "day", "entity": "resource", "product_type": "type", "amount": "cost"}

    def ask(some: list[list[str]]) -> Any:
        text = io.StringIO()
        csv.writer(text).writerows([["day", "resource", "type", "cost"], *some])
        days = {"start_date": everything.days[0], "end_date": everything.days[-1]}
        body = {"csv": text.getvalue(), "mapping": {"columns": columns}} | days
        response = client.post(f"{everything.base}/reconciliation/external", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    same = ask(lines)
    assert same["total"]["theirs"] == same["total"]["ours"] == shown(total(everything.billing, "total_cost"))
    assert {item["delta"] for item in same["items"]} == {"0.00"}
    largest = max(lines, key=lambda line: abs(Decimal(line[3])))
    other = ask([line for line in lines if line is not largest])
    assert (other["items"][0]["delta"], other["lines"]) == (largest[3], len(lines) - 1)
    assert (other["items"][0]["entity"], other["items"][0]["product_type"]) == (largest[1], largest[2])
