"""Ten questions about the demo organisation that an assistant can answer exactly with at most three calls each."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.assistants.conftest import Organisation
from tests.contract.records import Client, total
from tests.support.assistants import Assistant

ACME = "/api/v1/tenants/acme"
MOST_CALLS = 3


@pytest.fixture
def assistant(organisation: Organisation, whole: str) -> Iterator[Assistant]:
    """Yield an assistant; the test fails if it makes too many calls."""
    assistant = organisation.assistant("http", whole)
    yield assistant
    assert 0 < assistant.calls <= MOST_CALLS


@pytest.fixture(scope="session")
def last(rest: Client) -> str:
    """The last calculated day."""
    return str(rest.answer(ACME)["last_date"])


def costs(rest: Client, **asked: Any) -> Any:
    """Return the costs according to the API."""
    return rest.answer(f"{ACME}/costs", compare="none", top=50, **asked)


def test_what_did_we_spend(assistant: Assistant, rest: Client, last: str) -> None:
    """1. What did Kafka cost in the last seven days, and is that complete?"""
    answer = assistant.answer("query_costs", tenant="acme", period="7d")
    assert answer["total"]["amount"] == costs(rest, period="7d")["total"]["amount"]
    assert (answer["currency"], answer["data_through"], answer["end_date"]) == ("USD", last, last)
    assert answer["reconciled"] == "equal"


def test_who_spent_most(assistant: Assistant, rest: Client) -> None:
    """2. Which three service accounts cost most?"""
    answer = assistant.answer("query_costs", tenant="acme", period="7d", group_by=["identity_id"], limit=3)
    expected = costs(rest, period="7d", by="identity_id")["breakdowns"][0]["items"][:3]
    shown = [(row["identity_id"], row.get("identity_name"), row["amount"]) for row in answer["rows"]]
    assert shown == [(each["value"], each["name"], each["amount"]) for each in expected]
    shown_and_other = [*answer["rows"], answer["other"]]
    assert total(shown_and_other) == Decimal(answer["total"]["amount"])


def test_by_cost_center(assistant: Assistant, rest: Client) -> None:
    """3. What does each cost centre pay?"""
    about = assistant.answer("describe")
    (category,) = about["categories"]
    answer = assistant.answer("query_costs", tenant=about["tenant"], group_by=[category], period="7d", limit=50)
    (breakdown,) = costs(rest, period="7d", by=category)["breakdowns"]
    assert {row[category]: row["amount"] for row in answer["rows"]} == {
        each["value"]: each["amount"] for each in breakdown["items"]
    }


def test_one_service(assistant: Assistant, rest: Client) -> None:
    """4. What does a service cost, of whose name only a part is known?"""
    named = [each for each in rest.all_items(f"{ACME}/identities") if each["display_name"]]
    rows = rest.all_items(f"{ACME}/chargebacks", period="7d")
    charged = {row["identity_id"] for row in rows}
    identity = next(each for each in named if each["identity_id"] in charged and "sa-" in each["identity_id"])
    found = assistant.answer("search_entities", tenant="acme", query=identity["display_name"][:-1])
    (entity,) = [each for each in found["items"] if each["id"] == identity["identity_id"]]
    answer = assistant.answer(
        "query_costs", tenant="acme", period="7d", filters={f"{entity['kind']}_id": [entity["id"]]}
    )
    assert Decimal(answer["total"]["amount"]) == total([row for row in rows if row["identity_id"] == entity["id"]])


def test_how_it_developed(assistant: Assistant, rest: Client) -> None:
    """5. How did the cost of each product develop by week?"""
    answer = assistant.answer("query_costs", tenant="acme", time_bucket="week", group_by=["product_category"], limit=2)
    expected = rest.answer(
        f"{ACME}/costs", period="30d", by="product_category", top=2, time_bucket="week", compare="none"
    )
    (breakdown,) = expected["breakdowns"]
    assert answer["times"] == expected["times"]
    assert answer["total"]["amounts"] == expected["amounts"]
    assert [row["amounts"] for row in answer["rows"]] == [each["amounts"] for each in breakdown["items"]]
    assert answer["other"]["amounts"] == breakdown["other"]["amounts"]


def test_what_changed(assistant: Assistant, rest: Client) -> None:
    """6. What changed most compared with the days before, and why?"""
    answer = assistant.answer("compare_periods", tenant="acme", period="5d", limit=2)
    days = {name: answer[name] for name in ("start_date", "end_date")}
    expected = rest.answer(f"{ACME}/chargebacks/changes", **days, group_by="identity_id", limit=2)
    assert [row["sentence"] for row in answer["rows"]] == [each["sentence"] for each in expected["items"]]
    assert answer["total"]["delta"] == expected["totals"]["delta"]
    assert total([*answer["rows"], answer["other"]], "delta") == Decimal(answer["total"]["delta"])
    for row in answer["rows"]:
        assert sum(map(Decimal, row["effects"].values())) == Decimal(row["delta"])


def test_why_this_amount(assistant: Assistant, rest: Client, last: str) -> None:
    """7. Why does the most expensive service account pay that much on the last day?"""
    most = assistant.answer(
        "query_costs",
        tenant="acme",
        start_date=last,
        end_date=last,
        group_by=["identity_id"],
        filters={"not.identity_id": ["UNALLOCATED"]},
        limit=1,
    )
    identity = most["rows"][0]["identity_id"]
    answer = assistant.answer("explain_charge", tenant="acme", date=last, identity_id=identity)
    rows = rest.all_items(f"{ACME}/chargebacks", start_date=last, end_date=last, identity_id=identity)
    largest = max(rows, key=lambda row: Decimal(row["amount"]))
    assert answer["charge"]["amount"] == largest["amount"]
    assert answer["charges_on_this_day"] == len(rows)
    assert answer["recomputed"] == "same"
    key = {name: largest["metadata"][name] for name in ("line_id", "portion")}
    explained = rest.answer(f"{ACME}/chargebacks/explain", date=last, identity_id=identity, **key)
    assert answer["sentence"] == explained["sentence"]


def test_what_is_wasted(assistant: Assistant, rest: Client) -> None:
    """8. What costs money and is not used?"""
    answer = assistant.answer("list_findings", tenant="acme", limit=50)
    expected = rest.answer(f"{ACME}/findings", page_size=50)
    assert answer["total"] == expected["total"]
    assert [row["monthly_cost"] for row in answer["rows"]] == [
        each["monthly_cost"] for each in expected["items"][: len(answer["rows"])]
    ]


def test_what_lies_ahead(assistant: Assistant, rest: Client, last: str) -> None:
    """Anomalies, budgets and the forecast are those of the API."""
    stands_out = assistant.answer("anomalies", tenant="acme", period="30d", limit=5)
    found = rest.answer(f"{ACME}/anomalies", period="30d", limit=5)
    assert [each["sentence"] for each in stands_out["rows"]] == [each["sentence"] for each in found["items"]]
    assert (stands_out["judged_through"], stands_out["not_shown"]) == (found["judged_through"], found["more"])
    budgets = assistant.answer("budget_status", tenant="acme", month=last[:7])
    listed = rest.answer(f"{ACME}/budgets", month=last[:7])
    assert budgets["total"] == listed["total"]
    assert [(each["id"], each["to_date"], each["state"]) for each in budgets["rows"]] == [
        (each["id"], each["status"]["to_date"], each["status"]["state"]) for each in listed["items"]
    ]
    kafka = {"product_category": ["KAFKA"]}
    expected = rest.answer(f"{ACME}/costs", period="month", include="forecast", **kafka)["forecast"]
    assert assistant.answer("forecast", tenant="acme", filters=kafka)["forecast"] == expected


@pytest.mark.extensive
def test_what_finance_books(assistant: Assistant, rest: Client, last: str) -> None:
    """9. What does finance book for a month, and for the largest cost centre?"""
    asked = {"period": last[:7], "by": "category:cost_center"}
    listed = assistant.answer("get_statement", tenant="acme", **asked)
    expected = rest.answer(f"{ACME}/statements", **asked)
    assert listed["total"] == expected["total"]
    assert total(listed["statements"]) == Decimal(expected["total"]["amount"])
    largest = max(listed["statements"], key=lambda each: Decimal(each["amount"]))
    one = assistant.answer("get_statement", tenant="acme", **asked, value=largest["value"])
    assert (one["number"], one["rounded"]) == (largest["number"], largest["rounded"])
    assert total(one["lines"]) == Decimal(one["amount"])


def test_which_topics(assistant: Assistant, rest: Client) -> None:
    """10. Which topics cost most?"""
    answer = assistant.answer("query_costs", tenant="acme", dataset="topics", group_by=["topic_name"], period="7d")
    rows = rest.all_items(f"{ACME}/topic-attributions", period="7d")
    assert Decimal(answer["total"]["amount"]) == total(rows)
    for row in answer["rows"]:
        assert Decimal(row["amount"]) == total([each for each in rows if each["topic_name"] == row["topic_name"]])
