"""Budgets over HTTP: concurrent edits, sums that equal those of other endpoints, and which budgets a caller sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest

from chargeback.access.caller import Right
from chargeback.config.notifications import ChatSettings
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, parameters_of
from tests.support.callers import Callers, asked_by, caller
from tests.support.serving import client_of, services_for

BUDGETS = f"{ACME}/budgets"
ONE = f"{BUDGETS}/payments"
CATEGORY = {
    "values": {"payments": {"parent": "retail"}, "retail": {}, "orders": {}},
    "rules": [
        {"match": {"identity": "UNALLOCATED"}, "assign": "orders"},
        {"match": {"identity": "*"}, "assign": "payments"},
    ],
}


@pytest.fixture
def month(own_client: httpx.Client) -> str:
    """The month of the last calculated day."""
    return str(max(own_client.get(f"{ACME}/chargebacks/dates").json()["dates"])[:7])


def put(client: httpx.Client, path: str = ONE, /, **body: Any) -> httpx.Response:
    """Write a budget, replacing any that exists."""
    found = client.get(path)
    headers = {"If-Match": found.headers["ETag"]} if found.status_code == 200 else {}
    answer = client.put(path, json={"name": "Payments"} | body, headers=headers)
    assert answer.status_code in {200, 201}, answer.text
    return answer


def status(client: httpx.Client, path: str = ONE, **params: str) -> dict[str, Any]:
    """Return the status of a budget."""
    answer = client.get(f"{path}/status", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_it_is_written_read_and_removed(own_client: httpx.Client) -> None:
    """Each change makes a version and an entry in the audit log."""
    made = put(own_client, monthly="1000", thresholds=[{"on": "actual", "percent": "80"}])
    assert (made.status_code, made.json()["version"], made.json()["monthly"]) == (201, 1, "1000.00")
    same = put(own_client, monthly="1000.00", thresholds=[{"on": "actual", "percent": "80.0"}])
    assert (same.status_code, same.json()["version"]) == (200, 1), "it says the same"
    changed = put(own_client, amounts={"2026-02": "1200.50"}, reason="More traffic")
    assert (changed.status_code, changed.json()["version"], changed.json()["monthly"]) == (200, 2, None)
    (listed,) = own_client.get(BUDGETS).json()["items"]
    assert listed.pop("status") == status(own_client)
    assert listed == own_client.get(ONE).json() == changed.json()
    stale = own_client.put(ONE, json={"name": "P"}, headers={"If-Match": made.headers["ETag"]})
    assert (stale.status_code, "someone else was faster" in stale.json()["detail"].lower()) == (412, True)
    assert own_client.put(ONE, json={"name": "P"}).status_code == 428
    assert own_client.delete(ONE).status_code == 428
    gone = own_client.delete(ONE, params={"reason": "Done"}, headers={"If-Match": changed.headers["ETag"]})
    assert gone.status_code == 204
    assert [own_client.get(each).status_code for each in (ONE, f"{ONE}/status")] == [404, 404]
    assert own_client.get(BUDGETS).json()["items"] == []
    logged = [each["what"] for each in own_client.get(f"{ACME}/audit").json()["items"]]
    assert [each for each in logged if each.startswith("budget.")] == [
        "budget.removed",
        "budget.changed",
        "budget.created",
    ]
    assert put(own_client, monthly="1").json()["version"] == 4


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"monthly": "0"}, ["monthly"]),
        ({"monthly": "1,000"}, ["monthly"]),
        ({"amounts": {"2026-13": "1"}}, ["amounts.2026-13.[key]"]),
        ({"thresholds": [{"on": "actual", "percent": "0"}]}, ["thresholds[0].percent"]),
        ({"thresholds": [{"on": "later", "percent": "5"}]}, ["thresholds[0].on"]),
        ({"parent": "nobody"}, ["parent"]),
        ({"name": " "}, ["name"]),
        ({"limit": "5"}, ["limit"]),
    ],
)
def test_what_is_wrong_is_named(own_client: httpx.Client, body: dict[str, Any], places: list[str]) -> None:
    """The response has the path of each mistake; nothing is written."""
    answer = own_client.put(ONE, json={"name": "Payments"} | body)
    assert [each.partition(".[")[0] for each in parameters_of(answer)] == [each.partition(".[")[0] for each in places]
    assert own_client.get(ONE).status_code == 404


def test_a_scope_that_chooses_no_rows(own_client: httpx.Client) -> None:
    """A budget has the conditions of a scope."""
    answer = own_client.put(ONE, json={"name": "P", "scope": {"colour": ["red"]}})
    assert "rows cannot be chosen by colour" in answer.text
    assert parameters_of(answer) == ["scope"]
    empty = own_client.put(ONE, json={"name": "P", "scope": {"identity_id": []}})
    assert parameters_of(empty) == ["scope"]


def test_it_is_a_part_of_another_one(own_client: httpx.Client) -> None:
    """A parent budget must exist, cannot be removed while it has parts, and cannot be part of itself."""
    put(own_client, f"{BUDGETS}/all", monthly="9")
    put(own_client, parent="all", monthly="5")
    parent = own_client.get(f"{BUDGETS}/all").headers["ETag"]
    refused = own_client.delete(f"{BUDGETS}/all", headers={"If-Match": parent})
    assert (refused.status_code, "payments is a part of all" in refused.text) == (409, True)
    cycle = own_client.put(f"{BUDGETS}/all", json={"name": "All", "parent": "payments"}, headers={"If-Match": parent})
    assert parameters_of(cycle) == ["parent"]
    assert "all → payments → all" in cycle.text or "payments → all → payments" in cycle.text


def test_its_sums_are_those_of_every_page(own_client: httpx.Client, month: str) -> None:
    """The sum to date equals the aggregate exactly, in total and by identity or category value; it is compared with the
    budget for the same days."""
    own_client.put(f"{ACME}/cost-categories/cost_center", json={"document": CATEGORY})
    for scope in ({}, {"identity_id": ["UNALLOCATED"]}, {"category:cost_center": ["retail"]}):
        put(own_client, scope=scope, monthly="31", thresholds=[{"on": "actual", "percent": "0.01"}])
        found = status(own_client, month=month)
        params: dict[str, Any] = {"start_date": f"{month}-01", "end_date": found["data_through"], "time_bucket": "day"}
        params |= {name: values[0] for name, values in scope.items()}
        answer = own_client.get(f"{ACME}/chargebacks/aggregate", params=params).json()
        assert Decimal(found["to_date"]) == Decimal(answer["total_amount"]) > 0
        assert Decimal(found["budget_to_date"]) == found["days"]
        assert found["crossed"] == [{"on": "actual", "percent": "0.01"}]
        assert found["state"] == ("exceeded" if Decimal(found["to_date"]) > 31 else "warning")


def test_months_without_an_amount_or_days(own_client: httpx.Client, month: str) -> None:
    """The response says so if a month has no amount or no days; by default, it is about the month of the last
    calculated day."""
    put(own_client, amounts={"2030-01": "5"}, thresholds=[{"on": "actual", "percent": "1"}])
    found = status(own_client)
    assert (found["period_id"], found["budget"], found["state"], found["crossed"]) == (month, None, "no_budget", [])
    later = status(own_client, month="2030-01")
    assert (later["to_date"], later["days"], later["data_through"], later["missing_days"]) == ("0.00", 0, None, [])
    assert (later["budget"], later["budget_to_date"], later["forecast"], later["state"]) == ("5.00", "0.00", None, "ok")
    assert own_client.get(f"{ONE}/status", params={"month": "2026-1"}).status_code == 400


def test_a_change_shows_at_once(own_client: httpx.Client) -> None:
    """The ETag of a status changes when the budget changes, and only then."""
    put(own_client, monthly="100")
    first = own_client.get(f"{ONE}/status")
    again = own_client.get(f"{ONE}/status", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
    put(own_client, monthly="200")
    changed = own_client.get(f"{ONE}/status", headers={"If-None-Match": first.headers["ETag"]})
    assert (changed.status_code, changed.json()["budget"]) == (200, "200.00")
    listed = own_client.get(BUDGETS)
    put(own_client, monthly="300")
    assert own_client.get(BUDGETS, headers={"If-None-Match": listed.headers["ETag"]}).status_code == 200


def test_it_may_name_who_is_told(own_store: TenantStore) -> None:
    """The named sinks must exist; a caller with a scope does not see their names."""
    sinks = {"desk": ChatSettings.model_validate({"type": "slack", "url": "https://chat.example.com/x"})}
    services = services_for(own_store)
    tenants = {name: replace(view, sinks=sinks) for name, view in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as client:
        assert put(client, monthly="1", notify=["desk", "desk"]).json()["notify"] == ["desk"]
        refused = client.put(f"{BUDGETS}/other", json={"name": "O", "notify": ["nobody"]})
    assert (refused.status_code, parameters_of(refused)) == (400, ["notify"])


@pytest.fixture
def scoped(own_store: TenantStore) -> Iterator[httpx.Client]:
    """A client whose callers are named by a header."""
    scopes: dict[str, Any] = {
        "payments": {"category:cost_center": ["payments"]},
        "retail": {"category:cost_center": ["retail"]},
        "other": {"category:cost_center": ["orders"]},
        "narrow": {"category:cost_center": ["payments"], "product_category": ["KAFKA"]},
    }
    callers = Callers.of(
        [caller("admin", *Right), *(caller(name, Right.READ, scope=each) for name, each in scopes.items())]
    )
    with client_of(services_for(own_store, authenticate=callers)) as client:
        client.headers.update(asked_by("admin"))
        made = client.put(f"{ACME}/cost-categories/cost_center", json={"document": CATEGORY})
        assert made.status_code == 201, made.text
        yield client


@pytest.mark.parametrize(("name", "sees"), [("payments", True), ("retail", True), ("other", False), ("narrow", False)])
def test_only_who_sees_all_its_rows_sees_it(scoped: httpx.Client, name: str, sees: bool) -> None:
    """A caller who sees all rows of a budget gets the same figures; other callers get 404, and callers with a scope
    cannot write a budget."""
    put(scoped, f"{BUDGETS}/all", monthly="1000")
    put(scoped, scope={"category:cost_center": ["payments"]}, monthly="1000", parent="all", reason="As orders")
    whole = status(scoped)
    headers = asked_by(name)
    listed = [each["id"] for each in scoped.get(BUDGETS, headers=headers).json()["items"]]
    assert listed == (["payments"] if sees else [])
    found = scoped.get(f"{ONE}/status", headers=headers)
    assert found.status_code == (200 if sees else 404)
    assert not sees or found.json() == whole
    one = scoped.get(ONE, headers=headers)
    assert one.status_code == (200 if sees else 404)
    assert not sees or (one.json()["reason"], one.json()["parent"]) == (None, None)
    assert scoped.put(ONE, json={"name": "P"}, headers=headers).status_code == 403


_FILE = "id,name,parent,scope,thresholds,notify,monthly,2026-12\n"


def imported(client: httpx.Client, csv: str, **more: Any) -> httpx.Response:
    """Send a file of budgets."""
    return client.post(f"{BUDGETS}", json={"csv": csv, **more})


def test_a_file_comes_back_as_it_was(own_client: httpx.Client) -> None:
    """Export and import keep names like formulas, lists, thresholds and months; budgets missing from a file stay."""
    put(own_client, f"{BUDGETS}/other", monthly="7")
    csv = (
        f"{_FILE}all,All,,,actual 80; forecast 100,,1000.5,1500\n"
        'kafka,"=Kafka, mostly",all,"{""product_category"":[""KAFKA"",""CONNECT""]}",,,,200\n'
    )
    assert imported(own_client, csv, dry_run=True).json() == {
        "created": ["all", "kafka"],
        "changed": [],
        "unchanged": 0,
    }
    assert own_client.get(f"{BUDGETS}/all").status_code == 404
    assert imported(own_client, csv, reason="Plan of 2027").json()["created"] == ["all", "kafka"]
    found = own_client.get(f"{BUDGETS}/kafka").json()
    assert (found["name"], found["parent"], found["amounts"]) == ("=Kafka, mostly", "all", {"2026-12": "200.00"})
    assert found["scope"] == {"product_category": ["CONNECT", "KAFKA"]}
    assert (found["version"], found["reason"]) == (1, "Plan of 2027")
    file = own_client.get(f"{BUDGETS}.csv")
    assert file.headers["content-disposition"] == "attachment; filename=budgets.csv"
    assert imported(own_client, file.text).json() == {"created": [], "changed": [], "unchanged": 3}
    german = "id;name;monthly\r\nall;All;12,5\r\n"
    assert imported(own_client, german).json()["changed"] == ["all"]
    assert own_client.get(f"{BUDGETS}/all").json()["monthly"] == "12.50"


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        ("name,2026-13\na,1\n", ["line 1: '2026-13' is not a column", "line 1: the column id is missing"]),
        ("id,name,id\na,b,c\n", ["line 1: the column id occurs twice"]),
        (f"{_FILE}a,A\n", ["line 2: has 2 fields, and the head has 8"]),
        (f'{_FILE}a,"A\n', ["line 2: is not CSV"]),
        (f"{_FILE}a,A,,{{,,,,\n", ["line 2: scope: should be JSON"]),
        (f"{_FILE}a,A,,,sometimes 80,,0,\n", ["line 2: monthly:", "line 2: thresholds.0.on:"]),
        (f"{_FILE}a,A,,,,,1,\na,B,,,,,1,\n", ["line 3: id: a occurs twice"]),
        (
            f"{_FILE}A b,A,,,actual x,,abc,-1\n",
            [
                "line 2: 2026-12: should be an amount such as 1000",
                "line 2: id: should have small letters",
                "line 2: monthly: should be an amount such as 1000",
                "line 2: thresholds: should be such as actual 80",
            ],
        ),
        (f"{_FILE}a,A,b,,,,1,\nb,B,a,,,desk,1,\n", ["line 2: parent: the parents form a cycle", "line 3: parent"]),
        (f"{_FILE}a,A,nobody,,,,1,\n", ["line 2: parent: there is no budget nobody"]),
        (f"{_FILE}a,A,,,,chat,1,\n", ["line 2: notify: there is no sink chat"]),
    ],
)
def test_a_file_with_mistakes_changes_nothing(own_client: httpx.Client, csv: str, said: list[str]) -> None:
    """Each mistake is reported with its line."""
    refused = imported(own_client, csv)
    assert refused.status_code == 400, refused.text
    messages = sorted(each["message"] for each in refused.json()["errors"])
    assert [message for message, words in zip(messages, said, strict=True) if not message.startswith(words)] == []
    assert own_client.get(BUDGETS).json()["total"] == 0


def test_what_somebody_expects_counts_instead_of_the_forecast(own_client: httpx.Client, month: str) -> None:
    """An entered forecast replaces the calculated one for thresholds and the state; the response shows both, and
    importing a file of budgets keeps the entered one."""
    thresholds = [{"on": "forecast", "percent": "100"}]
    put(own_client, monthly="1000", thresholds=thresholds, expected={month: "1200.5"}, reason="Migration")
    found = status(own_client)
    assert (found["forecast"], found["calculated_forecast"], found["projected_over"]) == ("1200.50", None, "200.50")
    assert (found["state"], found["crossed"]) == ("warning", [{"on": "forecast", "percent": "100.00"}])
    assert imported(own_client, own_client.get(f"{BUDGETS}.csv").text).json()["unchanged"] == 1
    assert own_client.get(ONE).json()["expected"] == {month: "1200.50"}
    put(own_client, monthly="1000", thresholds=thresholds)
    assert status(own_client)["forecast"] is None
