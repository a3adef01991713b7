"""Simulations over HTTP, in real processes, on calculated days."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import yaml

from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client, Everything
from tests.support.clock import TODAY
from tests.support.serving import wait_until

BASE = "/api/v1/tenants/acme/simulations"
FIRST, LAST = TODAY - timedelta(days=9), TODAY - timedelta(days=8)
DAYS = {"start_date": str(FIRST), "end_date": str(LAST)}
EVENLY = {"KAFKA_NUM_CKUS": {"portions": [{"share": "1", "try": ["even(active)", "unallocated"]}]}}


def ended(client: Client, **asked: object) -> Any:
    """Start a simulation and return it when it is done or has failed."""
    response = client.post(BASE, json=DAYS | asked)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == f"{BASE}/{response.json()['id']}"
    wait_until(lambda: client.answer(response.headers["location"])["state"] != "running", 60)
    return client.answer(response.headers["location"])


@pytest.mark.extensive
def test_who_would_pay_what(client: Client) -> None:
    """The simulated charges have the same sum; an equal request returns the same simulation."""
    found = ended(client, policies=EVENLY)
    assert (found["state"], found["error"], found["done"], found["days"]) == ("done", None, 2, 2)
    answer = found["answer"]
    assert (answer["verdict"], answer["group_by"]) == ("complete", ["identity_id"])
    deltas = [Decimal(each["delta"]) for each in answer["items"]]
    assert sum(deltas) == 0
    assert sum(map(abs, deltas)) / 2 == Decimal(answer["moved"]) > 0
    again = client.post(BASE, json=DAYS | {"policies": dict(EVENLY), "group_by": ["identity_id"]})
    assert (again.json()["id"], again.json()["state"], again.json()["asked_at"]) == (
        found["id"],
        "done",
        found["asked_at"],
    )
    listed = client.answer(BASE)
    assert found["id"] in [each["id"] for each in listed["items"]]
    assert all("answer" not in each for each in listed["items"])
    rows = list(csv.DictReader(io.StringIO(client.get(f"{BASE}/{found['id']}/items.csv").text)))
    assert [row["delta"] for row in rows] == [each["delta"] for each in answer["items"]]
    assert ended(client, policies=yaml.safe_dump(EVENLY))["id"] == found["id"], "the same as a text"
    by_team = ended(client, policies=EVENLY, group_by=["tag:team"])
    assert by_team["id"] != found["id"]
    assert by_team["answer"]["billed"] == answer["billed"]


@pytest.mark.extensive
def test_other_tags_and_cost_categories(client: Client) -> None:
    """Changed tags and cost categories move costs between groups, in addition to policies; nothing is lost or
    stored."""
    charged = client.answer(
        f"{BASE.removesuffix('/simulations')}/chargebacks/aggregate", **DAYS, group_by="identity_id"
    )
    identity = max(charged["buckets"], key=lambda each: Decimal(each["total_amount"]))["dimensions"]["identity_id"]
    tag = {"entity_type": "identity", "entity_id": identity, "tag_key": "team", "tag_value": "elsewhere"}
    found = ended(client, tags=[tag], group_by=["tag:team"])["answer"]
    deltas = {each["dimensions"]["tag:team"]: Decimal(each["delta"]) for each in found["items"]}
    assert deltas["elsewhere"] > 0 == sum(deltas.values())
    causes = {name: Decimal(amount) for name, amount in found["by_cause"].items()}
    assert {name for name, amount in causes.items() if amount} == {"tag"}
    assert causes["tag"] == Decimal(found["moved"])
    document = {"default": "rest", "rules": [{"match": {"identity": [identity]}, "assign": "mine"}]}
    asked = {"cost_categories": {"trial": document}, "group_by": ["category:trial"]}
    both = ended(client, policies=EVENLY, **asked)["answer"]
    after = {each["dimensions"]["category:trial"]: Decimal(each["after"]) for each in both["items"]}
    assert after["mine"] + after["rest"] == Decimal(both["billed"])
    assert Decimal(both["by_cause"]["category"]) > 0 == Decimal(both["by_cause"]["tag"])
    assert ended(client, **asked)["answer"]["by_cause"]["portion"] == "0.00"
    assert client.get(f"{BASE.removesuffix('/simulations')}/cost-categories/trial").status_code == 404


@pytest.mark.extensive
def test_some_of_the_policies_alone(client: Client) -> None:
    """With a selection, only the selected policies change; examples explain a line before and after."""
    policies = EVENLY | {"KAFKA_NETWORK_READ": {"portions": [{"share": "1", "try": ["even(period)"]}]}}
    found = ended(client, policies=policies, isolate=["KAFKA_NUM_CKUS"])["answer"]
    assert [each["product_type"] for each in found["policies"]] == ["KAFKA_NUM_CKUS"]
    assert found["items"] == ended(client, policies=EVENLY)["answer"]["items"]
    for example in found["examples"]:
        before, after = example["before"], example["after"]
        assert before["identity_id"] == after["identity_id"] == example["identity_id"]
        assert before["recomputed"] == after["recomputed"] == "same"
        amounts = [Decimal(each["row"]["amount"]) if each["row"] else Decimal(0) for each in (before, after)]
        assert amounts[0] != amounts[1]
    changes = [Decimal(each["delta"]) for each in found["items"]]
    assert len(found["examples"]) == (max(changes) > 0) + (min(changes) < 0)


@pytest.mark.extensive
def test_what_has_no_evidence(client: Client) -> None:
    """A simulation without evidence fails with a reason, and has no file."""
    long_ago = {"start_date": "2020-01-01", "end_date": "2020-01-02"}
    found = ended(client, policies={}, **long_ago)
    assert (found["state"], found["answer"]) == ("failed", None)
    assert found["error"] == "no day of the range can be simulated: nothing was billed"
    assert kind_of(client.get(f"{BASE}/{found['id']}/items.csv"), 409) == "conflict"


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, ["policies"]),
        ({"policies": "even"}, ["policies"]),
        ({"policies": "{even"}, ["policies"]),
        ({"policies": "[" * 60 + "]" * 60}, ["policies"]),
        ({"policies": "A: &a [*a]"}, ["policies"]),
        ({"policies": {"KAFKA_BASE": {"portions": []}}}, ["policies"]),
        ({"policies": {}, "start_date": "2026-02-02", "end_date": "2026-02-01"}, ["start_date"]),
        ({"policies": {}, "start_date": "2020-01-01"}, ["start_date"]),
        ({"policies": {}, "group_by": ["colour"]}, ["group_by"]),
        ({"policies": {}, "force": True}, ["force"]),
        ({"policies": None, "tags": []}, ["policies"]),
        ({"cost_categories": {"c": {"rules": 7}}}, ["cost_categories"]),
        ({"tags": [{"entity_type": "topic", "entity_id": "t", "tag_key": "a"}]}, ["tag"]),
    ],
)
def test_what_cannot_be_tried(client: Client, asked: dict[str, object], named: list[str]) -> None:
    """All mistakes are reported together, and nothing is started."""
    before = client.answer(BASE)["total"]
    told = {re.split(r"[\[.:]", each)[0] for each in complaints(client.post(BASE, json=DAYS | asked))}
    assert told == set(named)
    assert client.answer(BASE)["total"] == before


def test_what_is_not_there(client: Client, everything: Everything) -> None:
    """A simulation exists only for its own tenant."""
    known = everything.ids["simulation_id"]
    assert client.get(f"{BASE}/{known}").status_code == 200
    for missing in (f"{BASE}/{'0' * 64}", BASE.replace("acme", "scratch") + f"/{known}"):
        assert "no simulation" in detail_of(client.get(missing), 404)
        assert kind_of(client.get(f"{missing}/items.csv"), 404) == "not-found"
