"""Cost categories: every change has an author, and none is lost."""

from __future__ import annotations

from typing import Any

import httpx

from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client

BASE = "/api/v1/tenants/scratch/cost-categories"
PATH = f"{BASE}/contract"


def put(client: Client, document: Any, **headers: str) -> httpx.Response:
    """Write a document."""
    return client.put(PATH, json={"document": document, "reason": "CHG-42"}, headers=headers)


def test_the_life_of_a_category(scratch: Client) -> None:
    """A category is created, read, listed, changed by two clients, and removed; its history remains."""
    made = put(scratch, {"rules": []}, **{"If-None-Match": "*"})
    assert made.status_code == 201
    assert scratch.answer(PATH) == made.json()
    seen = {"If-Match": scratch.get(PATH).headers["etag"]}
    first = put(scratch, {"rules": [{"match": {"topic": "pay.*"}, "assign": "payments"}]}, **seen)
    assert first.status_code == 200
    second = put(scratch, {"rules": [{"match": {"topic": "pay.*"}, "assign": "orders"}]}, **seen)
    assert kind_of(second, 412) == "precondition-failed"
    assert detail_of(second, 412).startswith("Someone else was faster: api changed contract at ")
    assert kind_of(put(scratch, {}), 428) == "precondition-required"
    assert kind_of(scratch.delete(PATH), 428) == "precondition-required"
    gone = scratch.delete(PATH, headers={"If-Match": first.headers["etag"]})
    assert (gone.status_code, gone.content) == (204, b"")
    assert kind_of(scratch.get(PATH), 404) == "not-found"
    versions = scratch.all_items(f"{PATH}/history", page_size=2)
    numbers = [each["version"] for each in versions]
    assert numbers == sorted(numbers, reverse=True)
    assert [each["removed"] for each in versions[:3]] == [True, False, False]
    assert scratch.answer(PATH, version=numbers[1]) == first.json()


def test_what_is_refused(scratch: Client) -> None:
    """A 400 names every problem of a document or a file."""
    wrong = {"rules": [{"assign": "a"}], "share": [{"from": "a", "to": "a", "by": "even"}], "valeus": {}}
    assert complaints(put(scratch, wrong))[:2] == ["document.rules[0].match", "document.share[0].to"]
    file = {"csv": "entity_type,entity_id,value\nuser,sa-1,\n"}
    assert complaints(scratch.put(f"{PATH}/rules.csv", json=file)) == ["csv", "csv"]
    assert complaints(scratch.put(PATH, json={"document": {}, "reasons": "x"})) == ["reasons"]
    assert kind_of(scratch.get(PATH, params={"version": 2**31 - 1}), 404) == "not-found"
