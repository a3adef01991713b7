"""What a cost category assigns, over HTTP: in aggregates, filters, files, its coverage, the tester and a dry run."""

from __future__ import annotations

import csv
import io
import threading
from decimal import Decimal
from typing import Any

import httpx
import pytest

from chargeback.api.schemas.category_answers import AssignedAnswer, CoverageAnswer, DryRunAnswer
from chargeback.api.schemas.chargebacks import AggregateAnswer, ChargebackRow
from tests.api.conftest import ACME
from tests.api.routes.test_cost_categories import ONE, created, detail, put
from tests.contract.test_export import plain, records

CHARGEBACKS = f"{ACME}/chargebacks"
DAYS = {"start_date": "2026-01-01", "end_date": "2026-12-31"}


def aggregate(client: httpx.Client, *by: str, **params: Any) -> tuple[dict[tuple[str, ...], Decimal], httpx.Response]:
    """The sums of everything by some columns."""
    asked = {**DAYS, "group_by": list(by), "time_bucket": "month", **params}
    response = client.get(f"{CHARGEBACKS}/aggregate", params=asked)
    assert response.status_code == 200, response.text
    AggregateAnswer.model_validate(response.json())
    sums: dict[tuple[str, ...], Decimal] = {}
    for bucket in response.json()["buckets"]:
        key = tuple(bucket["dimensions"].values())
        sums[key] = sums.get(key, Decimal(0)) + Decimal(bucket["total_amount"])
    return sums, response


@pytest.fixture
def largest(own_client: httpx.Client) -> str:
    """The identity with the largest cost."""
    sums, _ = aggregate(own_client, "identity_id")
    return max(sums, key=lambda each: sums[each])[0]


def test_a_rule_shows_in_the_next_answer(own_client: httpx.Client, largest: str) -> None:
    """From a rule for one identity: the aggregate, the coverage and the tester say the same, before and after."""
    by_identity, _ = aggregate(own_client, "identity_id")
    whole = sum(by_identity.values())
    tag = created(own_client, {"rules": []})
    sums, response = aggregate(own_client, "category:cost_center")
    assert sums == {("UNASSIGNED",): whole}
    assert response.headers["X-Cost-Categories-Version"] == "cost_center=1"
    coverage = own_client.get(f"{ONE}/coverage", params=DAYS).json()
    CoverageAnswer.model_validate(coverage)
    assert (coverage["assigned"], coverage["percent"]) == ("0.00", "0.00")
    assert coverage["top_unassigned"][0]["identity_id"] == largest
    rule = {"id": "first", "match": {"identity": [largest]}, "assign": "payments", "reason": "CHG-7"}
    assert put(own_client, {"rules": [rule]}, If_Match=tag).status_code == 200
    sums, response = aggregate(own_client, "category:cost_center")
    assert sums == {("payments",): by_identity[largest,], ("UNASSIGNED",): whole - by_identity[largest,]}
    assert response.headers["X-Cost-Categories-Version"] == "cost_center=2"
    for name in ("direct_amount", "total_amount"):
        assert Decimal(response.json()[name]) == whole
    coverage = own_client.get(f"{ONE}/coverage", params=DAYS).json()
    assert Decimal(coverage["assigned"]) == by_identity[largest,]
    assert {"id": "first", "index": 0, "reason": "CHG-7"} in [each["rule"] for each in coverage["by_rule"]]
    assert largest not in {each["identity_id"] for each in coverage["top_unassigned"]}
    tested = own_client.get(f"{ONE}/resolve", params={"identity_id": largest, "date": "2026-02-01"}).json()
    AssignedAnswer.model_validate(tested)
    assert (tested["value"], tested["rule"]["id"], tested["reason"], tested["lost"]) == (
        "payments",
        "first",
        "CHG-7",
        [],
    )
    others = own_client.get(f"{ONE}/resolve", params={"identity_id": "nobody"}).json()
    assert (others["value"], others["rule"], others["path"]) == ("UNASSIGNED", None, ["UNASSIGNED"])


def test_a_rule_begins_on_a_day(own_client: httpx.Client, largest: str) -> None:
    """Rows before it keep their value."""
    days = sorted(own_client.get(f"{CHARGEBACKS}/dates").json()["dates"])
    since = days[len(days) // 2]
    rule = {"match": {"identity": [largest]}, "assign": "payments", "valid_from": since}
    created(own_client, {"rules": [rule]})
    answer = own_client.get(
        f"{CHARGEBACKS}/aggregate",
        params={**DAYS, "group_by": "category:cost_center", "time_bucket": "day", "identity_id": largest},
    ).json()
    assert answer["buckets"]
    for bucket in answer["buckets"]:
        expected = "payments" if bucket["time_bucket"] >= since else "UNASSIGNED"
        assert bucket["dimensions"] == {"category:cost_center": expected}


def test_splits_in_lists_files_and_sums(own_client: httpx.Client, largest: str) -> None:
    """60/40: a list has the parts of each row, a file has a row for each, and all of them have one sum."""
    by_identity, _ = aggregate(own_client, "identity_id")
    split = {"payments": "60", "orders": "40"}
    values = {"payments": {"parent": "retail"}, "retail": {"name": "Retail"}, "orders": {}}
    created(own_client, {"values": values, "rules": [{"match": {"identity": [largest]}, "split": split}]})
    sums, _ = aggregate(own_client, "category:cost_center", identity_id=largest)
    assert set(sums) == {("payments",), ("orders",)}
    assert sum(sums.values()) == by_identity[largest,]
    above, _ = aggregate(own_client, "category:cost_center@1", identity_id=largest)
    assert above == {("retail",): sums["payments",], ("orders",): sums["orders",]}
    chosen, _ = aggregate(own_client, "identity_id", **{"category:cost_center": "retail"})
    assert chosen == {(largest,): sums["payments",]}
    rest, _ = aggregate(own_client, "identity_id", **{"not.category:cost_center": "retail,UNASSIGNED"})
    assert rest == {(largest,): sums["orders",]}
    rows = own_client.get(CHARGEBACKS, params={**DAYS, "category:cost_center": "retail", "page_size": 1000}).json()
    paid = Decimal(0)
    for row in rows["items"]:
        ChargebackRow.model_validate(row)
        orders, payments = row["categories"]["cost_center"]
        assert (orders["category_share"], payments["category_share"]) == ("0.4", "0.6")
        assert Decimal(orders["amount"]) + Decimal(payments["amount"]) == Decimal(row["amount"])
        paid += Decimal(payments["amount"])
    assert paid == sums["payments",]
    body = {
        **DAYS,
        "columns": ["identity_id", "amount", "category:cost_center", "category_share"],
        "filters": {"category:cost_center": "payments"},
    }
    file = own_client.post(f"{ACME}/export", json=body)
    assert file.headers["X-Cost-Categories-Version"] == "cost_center=1"
    lines = list(csv.DictReader(io.StringIO(file.text)))
    assert {(line["category:cost_center"], line["category_share"]) for line in lines} == {("payments", "0.6")}
    assert sum(Decimal(line["amount"]) for line in lines) == sums["payments",]
    for form in ("parquet", "jsonl"):
        file = own_client.post(f"{ACME}/export", json={**body, "format": form})
        assert file.headers["X-Cost-Categories-Version"] == "cost_center=1"
        found = records(file.content, form)
        assert [{name: plain(value) for name, value in each.items()} for each in found] == lines


def test_two_categories_at_once(own_client: httpx.Client, largest: str) -> None:
    """Their filters both hold, in a list, a sum and a file; the sums by both are those of everything."""
    by_identity, _ = aggregate(own_client, "identity_id")
    created(own_client, {"rules": [{"match": {"identity": [largest]}, "split": {"payments": "60", "orders": "40"}}]})
    stage = f"{ACME}/cost-categories/stage"
    created(own_client, {"rules": [{"match": {"product_type": "KAFKA*"}, "assign": "prod"}]}, url=stage)
    both, _ = aggregate(own_client, "category:cost_center", "category:stage")
    assert sum(both.values()) == sum(by_identity.values())
    wanted = {"category:cost_center": "payments", "category:stage": "prod"}
    sums, _ = aggregate(own_client, "category:cost_center", "category:stage", **wanted)
    assert sums == {("payments", "prod"): both["payments", "prod"]}
    rows = own_client.get(CHARGEBACKS, params={**DAYS, **wanted, "page_size": 1000})
    assert rows.status_code == 200, rows.text
    paid = [part for row in rows.json()["items"] for part in row["categories"]["cost_center"]]
    assert {row["identity_id"] for row in rows.json()["items"]} == {largest}
    assert sum(Decimal(part["amount"]) for part in paid if part["value"] == "payments") == both["payments", "prod"]
    body = {**DAYS, "columns": ["amount", "category:cost_center", "category:stage"], "filters": wanted}
    lines = list(csv.DictReader(io.StringIO(own_client.post(f"{ACME}/export", json=body).text)))
    assert sum(Decimal(line["amount"]) for line in lines) == both["payments", "prod"]
    assert len(lines) == rows.json()["total"]


def test_what_a_value_hands_on(own_client: httpx.Client, largest: str) -> None:
    """Its cost becomes that of the others, who show what came; the sum stays."""
    by_identity, _ = aggregate(own_client, "identity_id")
    rules = [{"match": {"identity": [largest]}, "assign": "platform"}, {"match": {"identity": "*"}, "assign": "orders"}]
    created(own_client, {"rules": rules, "share": [{"from": "platform", "to": "*", "by": "proportional"}]})
    _, response = aggregate(own_client, "category:cost_center", time_bucket="day")
    for bucket in response.json()["buckets"]:
        flows = {name: Decimal(bucket[name]) for name in ("direct_amount", "shared_in", "shared_out", "total_amount")}
        assert flows["total_amount"] == flows["direct_amount"] + flows["shared_in"] - flows["shared_out"]
    sums, _ = aggregate(own_client, "category:cost_center")
    assert sum(sums.values()) == sum(by_identity.values())
    assert Decimal(response.json()["shared_out"]) == Decimal(response.json()["shared_in"]) > 0


def test_costs_and_flow_take_categories(own_client: httpx.Client, largest: str) -> None:
    """As everything that takes tags."""
    created(own_client, {"rules": [{"match": {"identity": [largest]}, "assign": "payments"}]})
    asked = {**DAYS, "by": ["category:cost_center", "product_type"], "compare": "none"}
    costs = own_client.get(f"{ACME}/costs", params=asked)
    assert costs.status_code == 200, costs.text
    values = {item["value"] for item in costs.json()["breakdowns"][0]["items"]}
    assert "payments" in values
    flow = own_client.get(f"{ACME}/flow", params={**DAYS, "by": ["category:cost_center", "product_type"]})
    assert flow.status_code == 200, flow.text
    bills = own_client.get(f"{ACME}/billing", params={**DAYS, "category:cost_center": "payments"})
    assert bills.status_code == 200, bills.text


def test_a_dry_run_writes_nothing(own_client: httpx.Client, largest: str) -> None:
    """It tells what would move, and which rules do nothing."""
    tag = created(own_client, {"rules": [{"match": {"identity": [largest]}, "assign": "payments"}]})
    by_identity, _ = aggregate(own_client, "identity_id")
    rules = [
        {"id": "all", "match": {"identity": "*"}, "assign": "orders"},
        {"id": "late", "match": {"identity": [largest]}, "assign": "payments"},
        {"id": "never", "match": {"identity": ["nobody"]}, "assign": "payments"},
    ]
    answer = own_client.put(ONE, params={"period": "365d", "dry_run": "true"}, json={"document": {"rules": rules}})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    DryRunAnswer.model_validate(found)
    whole = sum(by_identity.values())
    assert Decimal(found["coverage_after"]["assigned"]) == whole
    assert Decimal(found["coverage_before"]["assigned"]) == by_identity[largest,]
    assert {(each["before"], each["after"]): Decimal(each["amount"]) for each in found["moved"]} == {
        ("payments", "orders"): by_identity[largest,],
        ("UNASSIGNED", "orders"): whole - by_identity[largest,],
    }
    moved = {each["identity_id"]: (each["before"], each["after"]) for each in found["items"]}
    assert moved[largest] == ("payments", "orders")
    assert [each["rule"]["id"] for each in found["shadowed"]] == ["late"]
    assert [each["rule"]["id"] for each in found["never_matching"]] == ["never"]
    differences = {each["value"]: Decimal(each["difference"]) for each in found["values"]}
    assert sum(differences.values()) == 0
    assert own_client.get(ONE).headers["etag"] == tag
    new = own_client.put(f"{ONE}_2", params={"dry_run": "true"}, json={"document": {"rules": rules}})
    assert new.json()["coverage_before"] is None
    assert own_client.get(f"{ONE}_2").status_code == 404


def test_what_is_not_there(own_client: httpx.Client) -> None:
    """The answer says which categories there are."""
    created(own_client)
    sentence = "There is no cost category 'centre'; there are cost_center."
    for params in ({"group_by": "category:centre"}, {"category:centre": "a"}):
        assert detail(own_client.get(f"{CHARGEBACKS}/aggregate", params=params), 404) == sentence
    assert detail(own_client.get(CHARGEBACKS, params={"category:centre": "a"}), 404) == sentence
    for path in ("coverage", "resolve"):
        missing = own_client.get(f"{ACME}/cost-categories/centre/{path}")
        assert detail(missing, 404) == "There is no cost category centre."


@pytest.mark.parametrize("path", ["chargebacks/diff", "graph", "flow"])
def test_other_readers_take_categories(own_client: httpx.Client, largest: str, path: str) -> None:
    """The unknown key is refused, the known one is not."""
    created(own_client, {"rules": [{"match": {"identity": [largest]}, "assign": "payments"}]})
    questions: dict[str, dict[str, Any]] = {
        "chargebacks/diff": {"from_as_of": "2026-01-01T00:00:00Z", "group_by": "category:{}"},
        "graph": {"category:{}": "payments"},
        "flow": {"by": ["category:{}", "category:{}@1"]},
    }

    def _ask(key: str) -> httpx.Response:
        filled = {
            name.format(key): [each.format(key) for each in value] if isinstance(value, list) else value.format(key)
            for name, value in questions[path].items()
        }
        return own_client.get(f"{ACME}/{path}", params={**DAYS, **filled})

    assert _ask("cost_center").status_code == 200, _ask("cost_center").text
    assert detail(_ask("centre"), 404).startswith("There is no cost category 'centre'; there are cost_center.")


def test_an_answer_belongs_to_one_version(own_client: httpx.Client, largest: str) -> None:
    """Which it names, while somebody edits: the values are those of that version."""

    def _document(version: int) -> dict[str, Any]:
        return {"rules": [{"match": {"identity": [largest]}, "assign": f"v{version}"}]}

    tag = created(own_client, _document(1))
    done = threading.Event()

    def _edit(tag: str = tag) -> None:
        for version in range(2, 12):
            tag = put(own_client, _document(version), If_Match=tag).headers["etag"]
        done.set()

    editor = threading.Thread(target=_edit)
    editor.start()
    seen: set[int] = set()
    while not done.is_set() or not seen:
        sums, response = aggregate(own_client, "category:cost_center")
        version = int(response.headers["X-Cost-Categories-Version"].removeprefix("cost_center="))
        assert set(sums) == {(f"v{version}",), ("UNASSIGNED",)}
        seen.add(version)
    editor.join()
    assert len(seen) > 1
