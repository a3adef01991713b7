"""The assignments of a cost category, over HTTP: in aggregates, filters, files, its coverage, the tester and a dry
run."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from chargeback.api.routes.aggregate import AggregateAnswer
from chargeback.api.routes.chargebacks import ChargebackRow
from chargeback.ecosystems.confluent_cloud import ecosystem
from chargeback.ecosystems.contract import usage_resolver
from chargeback.errors import PluginError
from chargeback.model.inventory import Resource
from chargeback.model.usage import USAGE
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.categories.answers import AssignedAnswer, CoverageAnswer, DryRunAnswer
from chargeback.store.control.cost_categories import CategoryWrite, write_category
from chargeback.store.control.inventory import ensure_known
from chargeback.store.facts.tables import USAGE_TABLE
from chargeback.store.tenant import TenantStore
from tests.api import conftest
from tests.api.conftest import ACME, fill, known, parameters_of
from tests.api.routes.test_cost_categories import ONE, created, detail, put
from tests.contract.test_export import plain, records
from tests.support.clock import NOW
from tests.support.facts import replace_day, tenant_store
from tests.support.serving import client_of, services_for

CHARGEBACKS = f"{ACME}/chargebacks"
DAYS = {"start_date": "2026-01-01", "end_date": "2026-12-31"}


def aggregate(client: httpx.Client, *by: str, **params: Any) -> tuple[dict[tuple[str, ...], Decimal], httpx.Response]:
    """Return the sums of all rows by some columns."""
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


def test_what_was_stored_before_regexes_had_a_size(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Queries by a stored regex beyond the limit work, with a warning; writing it again is refused."""
    before, _ = aggregate(own_client, "identity_id")
    document = {"rules": [{"match": {"identity": {"regex": [r"^(?P<who>[\pL\d_-]{1,63})$"]}}, "assign": "${who}"}]}
    with own_store.control.write() as connection:
        write_category(connection, CategoryWrite("cost_center", json.dumps(document)), expected=None)
    sums, _ = aggregate(own_client, "category:cost_center")
    unallocated = before.pop(("UNALLOCATED",))
    assert sums == before | {("UNASSIGNED",): unallocated}
    found = own_client.get(ONE)
    assert [each["path"] for each in found.json()["warnings"]] == ["rules[0].match"]
    again = own_client.put(ONE, json={"document": document}, headers={"If-Match": found.headers["etag"]})
    assert parameters_of(again) == ["document.rules[0].match.identity.regex[0]"]


def test_a_rule_shows_in_the_next_answer(own_client: httpx.Client, largest: str) -> None:
    """Aggregate, coverage and tester agree before and after a rule for one identity is added."""
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
    """Rows before the first day keep their value."""
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


def test_a_value_belongs_to_another_one_from_a_day_on(own_client: httpx.Client, largest: str) -> None:
    """Sums by parent, filters, lists, the tester and statements use the parent on the day of the charge; a statement
    has finance's ids of the month's last day."""
    days = sorted(own_client.get(f"{CHARGEBACKS}/dates").json()["dates"])
    since = days[len(days) // 2]
    before, after = {"valid_to": since}, {"valid_from": since}
    payments = {
        "parent": [{"value": "retail", **before}, {"value": "trade", **after}],
        "gl": {"account": [{"value": "54100", **before}, {"value": "54200", **after}]},
    }
    rule = {"match": {"identity": [largest]}, "split": {"payments": "60", "orders": "40"}}
    created(own_client, {"values": {"payments": payments, "retail": {}, "trade": {}, "orders": {}}, "rules": [rule]})

    def _days(**filters: str) -> dict[str, dict[str, Decimal]]:
        asked = {**DAYS, "group_by": "category:cost_center@1", "time_bucket": "day", "identity_id": largest, **filters}
        found: dict[str, dict[str, Decimal]] = {}
        for each in own_client.get(f"{CHARGEBACKS}/aggregate", params=asked).json()["buckets"]:
            value = each["dimensions"]["category:cost_center@1"]
            found.setdefault(each["time_bucket"], {})[value] = Decimal(each["total_amount"])
        return found

    above = {day: "trade" if day >= since else "retail" for day in days}
    everything = _days()
    assert {day: set(values) for day, values in everything.items()} == {
        day: {above[day], "orders"} for day in everything
    }
    retail = _days(**{"category:cost_center": "retail"})
    assert retail == {day: {"retail": values["retail"]} for day, values in everything.items() if above[day] == "retail"}
    rows = own_client.get(CHARGEBACKS, params={**DAYS, "category:cost_center": "retail", "page_size": 1000}).json()
    assert rows["items"]
    assert max(row["timestamp"] for row in rows["items"]) < since
    not_retail = {"not.category:cost_center": "retail,orders,UNASSIGNED"}
    assert {day: set(values) for day, values in _days(**not_retail).items()} == {
        day: {"trade"} for day in everything if above[day] == "trade"
    }
    tried = {"identity_id": largest}
    paths = [
        own_client.get(f"{ONE}/resolve", params={**tried, "date": day}).json()["parts"] for day in (days[0], since)
    ]
    assert [parts[1]["path"] for parts in paths] == [["payments", "retail"], ["payments", "trade"]]
    month = own_client.get(f"{ACME}/statements", params={"by": "category:cost_center", "period": since[:7]}).json()
    (stated,) = (each["recipient"] for each in month["items"] if each["recipient"]["value"] == "payments")
    assert [step["value"] for step in stated["path"]] == ["payments", "trade"]
    assert stated["gl"] == {"account": "54200"}


def test_a_monthly_fee_is_handed_on(own_client: httpx.Client, largest: str) -> None:
    """Each day pays its part of the month, to within a millionth of a cent; the rest stays, and the total too."""
    fee = {"share": [{"from": "platform", "monthly": {"payments": "0.31"}}]}
    rules = [{"match": {"identity": [largest]}, "assign": "platform"}]
    created(own_client, {"rules": rules, **fee})
    asked = {**DAYS, "group_by": "category:cost_center", "time_bucket": "day", "identity_id": largest}
    answer = own_client.get(f"{CHARGEBACKS}/aggregate", params=asked).json()
    days: dict[str, dict[str, dict[str, Any]]] = {}
    for each in answer["buckets"]:
        days.setdefault(each["time_bucket"], {})[each["dimensions"]["category:cost_center"]] = each
    assert days
    for values in days.values():
        paid, platform = values["payments"], values["platform"]
        assert abs(Decimal(paid["total_amount"]) - Decimal("0.01")) < Decimal("0.00000001")
        assert Decimal(platform["shared_out"]) == Decimal(paid["shared_in"]) == Decimal(paid["total_amount"])
        assert Decimal(platform["shared_in"]) == 0
        assert Decimal(platform["total_amount"]) == Decimal(platform["direct_amount"]) - Decimal(platform["shared_out"])
    statements = own_client.get(
        f"{ACME}/statements", params={"by": "category:cost_center", "period": min(days)[:7]}
    ).json()
    (stated,) = (each for each in statements["items"] if each["recipient"]["value"] == "payments")
    one = own_client.get(
        f"{ACME}/statement",
        params={"by": "category:cost_center", "value": "payments", "period": min(days)[:7]},
    ).json()
    assert one["split"]["steps"] == [{"from": "platform", "by": "monthly"}]
    assert one["recipient"] == stated["recipient"]


def test_splits_in_lists_files_and_sums(own_client: httpx.Client, largest: str) -> None:
    """With a 60/40 split, lists show the parts of each row, files have one line per part, and all have the same sum."""
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
    """Filters of two categories both apply, in lists, sums and files; sums by both have the same total."""
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
    """The cost of a value is reallocated to others, which show it; the total stays."""
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
    """Costs, the flow and billing accept cost categories like tags."""
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
    """The response has what would move, and rules without effect."""
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
    """A 404 for an unknown category lists the categories that exist."""
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
    """A known category is accepted; an unknown one is refused."""
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
    """A response names its version and has the values of that version, even while the category is edited."""

    def _document(version: int) -> dict[str, Any]:
        return {"rules": [{"match": {"identity": [largest]}, "assign": f"v{version}"}]}

    together = threading.Barrier(2)

    def _edit(version: int, tag: str) -> str:
        together.wait(60)
        return put(own_client, _document(version), If_Match=tag).headers["etag"]

    tag = created(own_client, _document(1))
    with ThreadPoolExecutor(1) as editor:
        for version in range(2, 12):
            edited = editor.submit(_edit, version, tag)
            together.wait(60)
            assert _version_of_an_answer(own_client) in (version - 1, version)
            tag = edited.result()
            assert _version_of_an_answer(own_client) == version


def _version_of_an_answer(client: httpx.Client) -> int:
    """Return the version that a response names; its values must be of this version."""
    sums, response = aggregate(client, "category:cost_center")
    version = int(response.headers["X-Cost-Categories-Version"].removeprefix("cost_center="))
    assert set(sums) == {(f"v{version}",), ("UNASSIGNED",)}
    return version


#: The cost of sa-1 is reallocated, by measured usage, to other identities.
MEASURED_RULES = [
    {"match": {"identity": "sa-1"}, "assign": "platform"},
    {"match": {"identity": "sa-2"}, "assign": "orders"},
    {"match": {"identity": "UNALLOCATED"}, "assign": "search"},
]


@pytest.fixture
def measured_store(tmp_path: Path) -> Iterator[TenantStore]:
    """Storage of an ecosystem that stores the usage of statements under their names."""
    with tenant_store(tmp_path) as store:
        fill(store)
        known(store)
        yield replace(store, resolve_usage=usage_resolver(ecosystem))


@pytest.fixture
def measured(measured_store: TenantStore) -> Iterator[httpx.Client]:
    """A client of that storage, with the policies of the ecosystem."""
    services = services_for(measured_store)
    rules = AllocationRules(ecosystem.catalogue, ecosystem.catalogue)
    tenants = {name: replace(view, rules=rules) for name, view in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as client:
        yield client


def keep_usage(store: TenantStore, *rows: tuple[str, str, str, int]) -> None:
    """Store (measure, resource, subject, value) for the first day."""
    day = conftest.DAYS[0]
    records = [(day, measure, place, who, Decimal(value)) for measure, place, who, value in rows]
    columns = [pa.array(column, each.type) for column, each in zip(zip(*records, strict=True), USAGE, strict=True)]
    replace_day(store.facts, USAGE_TABLE, day, pa.Table.from_arrays(columns, schema=USAGE))


def shared_by(metric: str) -> dict[str, Any]:
    """Return a document in which one value is reallocated by a measure."""
    return {"rules": MEASURED_RULES, "share": [{"from": "platform", "to": "*", "by": f"usage({metric})"}]}


def test_days_without_measurements_hand_nothing_on(measured: httpx.Client, measured_store: TenantStore) -> None:
    """If nothing was measured on a day, its cost stays with the values that the rules assign, in every response."""
    document = shared_by("bytes_in")
    created(measured, document)
    sums, response = aggregate(measured, "category:cost_center")
    assert sums == {("platform",): Decimal("26.25"), ("orders",): Decimal("6.25"), ("search",): Decimal("17.5")}
    assert (response.json()["shared_in"], response.json()["shared_out"]) == ("0.00", "0.00")
    month = {"period": str(conftest.LAST)[:7]}
    for path, asked in (
        ("statements", {"by": "category:cost_center", **month}),
        ("statement", {"by": "category:cost_center", "value": "platform", **month}),
        (f"periods/{month['period']}/journal", {"by": "category:cost_center"}),
        ("cost-categories/cost_center/coverage", DAYS),
    ):
        answer = measured.get(f"{ACME}/{path}", params=asked)
        assert answer.status_code == 200, answer.text
    tried = measured.put(ONE, params={"dry_run": "true"}, json={"document": document})
    assert (tried.status_code, tried.json()["moved"]) == (200, [])
    keep_usage(measured_store, ("bytes_in", "lkc-1", "sa-2", 3), ("bytes_in", "lkc-1", "UNALLOCATED", 1))
    recalculated(measured_store)
    sums, _ = aggregate(measured, "category:cost_center")
    # 5.25 of the first day is split 3 to 1; the other days do not change.
    assert sums == {("platform",): Decimal(21), ("orders",): Decimal("10.1875"), ("search",): Decimal("18.8125")}


def recalculated(store: TenantStore) -> None:
    """Rewrite the days as they were, as a recalculation after new measurements does."""
    fill(store)


def test_what_is_stored_under_another_name(measured: httpx.Client, measured_store: TenantStore) -> None:
    """A document uses the name of a measure in policies; usage of a statement counts for its owner."""
    keep_usage(
        measured_store,
        ("bytes_in", "lkc-1", "UNALLOCATED", 9),
        ("flink_cfu_minutes_by_statement", "lfcp-1", "etl", 4),
    )
    with measured_store.control.write() as connection:
        statement = Resource("lfcp-1/etl", "flink_statement", "etl", parent_id="lfcp-1", owner_id="sa-2")
        ensure_known(connection, NOW, billed=[statement])
    created(measured, shared_by("flink_cfu_minutes"))
    sums, _ = aggregate(measured, "category:cost_center")
    assert sums == {("platform",): Decimal(21), ("orders",): Decimal("11.5"), ("search",): Decimal("17.5")}
    wrong = measured.put(f"{ONE}_2", json={"document": shared_by("flink_cfu_minutes_by_statement")})
    assert parameters_of(wrong) == ["document.share[0].by"]


@pytest.mark.parametrize("dry_run", ["false", "true"])
def test_measures_that_are_not_known(measured: httpx.Client, measured_store: TenantStore, dry_run: str) -> None:
    """Unknown measures are refused with a list of those in policies and storage."""
    keep_usage(measured_store, ("requests", "lkc-1", "sa-2", 1))
    refused = measured.put(ONE, params={"dry_run": dry_run}, json={"document": shared_by("byte_in")})
    assert parameters_of(refused) == ["document.share[0].by"]
    (problem,) = refused.json()["errors"]
    assert problem["message"] == (
        "unknown measure byte_in; did you mean bytes_in?; known are bytes_in, bytes_out, flink_cfu_minutes, requests"
    )
    assert put(measured, shared_by("requests")).status_code == 201


def test_a_plugin_that_does_not_know_the_owners(measured_store: TenantStore) -> None:
    """If the plugin cannot find the owners, the request fails and the log has the reason."""

    def _fail(*_: object) -> pa.Table:
        raise PluginError("the plugin has failed")

    keep_usage(measured_store, ("bytes_in", "lkc-1", "sa-2", 1))
    services = services_for(replace(measured_store, resolve_usage=_fail))
    rules = AllocationRules(ecosystem.catalogue, ecosystem.catalogue)
    tenants = {name: replace(view, rules=rules) for name, view in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as client:
        created(client, shared_by("bytes_in"))
        answer = client.get(f"{CHARGEBACKS}/aggregate", params={**DAYS, "group_by": "category:cost_center"})
    assert detail(answer, 503).startswith("The storage of the tenant is currently unavailable")


def test_values_with_commas(measured: httpx.Client) -> None:
    """A comma after a backslash is part of the value; several values are separated by commas or sent as repeated
    parameters."""
    rules = [
        {"match": {"identity": "sa-1"}, "assign": "Design, Print"},
        {"match": {"identity": "sa-2"}, "assign": r"CORP\orders"},
    ]
    created(measured, {"rules": rules})
    both = {("sa-1",): Decimal("26.25"), ("sa-2",): Decimal("6.25")}
    one, other = "Design\\, Print", r"CORP\orders"
    for wanted in (f"{one},{other}", [one, other], [other.replace("\\", "\\\\"), one]):
        sums, _ = aggregate(measured, "identity_id", **{"category:cost_center": wanted})
        assert sums == both
    rest, _ = aggregate(measured, "identity_id", **{"not.category:cost_center": one})
    assert set(rest) == {("sa-2",), ("UNALLOCATED",)}
    body = {**DAYS, "columns": ["identity_id", "amount"], "filters": {"category:cost_center": [one]}}
    lines = csv.DictReader(io.StringIO(measured.post(f"{ACME}/export", json=body).text))
    assert {line["identity_id"] for line in lines} == {"sa-1"}
