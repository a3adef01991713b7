"""Anomalies over HTTP."""

from __future__ import annotations

from chargeback.reports.anomalies import AnomaliesAnswer
from tests.contract.records import Client

BASE = "/api/v1/tenants/acme/anomalies"
OF_SCRATCH = "/api/v1/tenants/scratch/anomalies"
CATEGORY = "/api/v1/tenants/scratch/cost-categories/team"


def test_the_answer_is_documented(client: Client) -> None:
    """With too few days there are no anomalies, and days that cannot be judged have their reasons."""
    found = client.answer(BASE, period="7d")
    AnomaliesAnswer.model_validate(found)
    assert (found["items"], found["more"]) == ([], 0)
    assert found["series"] > 0
    assert client.get(BASE, params={"limit": 0}).status_code == 400
    assert client.get(BASE, params={"include": "everything"}).status_code == 400


def test_the_life_of_a_mark(client: Client) -> None:
    """A mark for future days is created, listed, recorded in the audit log, and removed; errors name the invalid
    field."""
    before = client.answer(f"{BASE}/marks")["total"]
    body = {
        **{"identity_id": "UNALLOCATED", "status": "planned", "start_date": "2027-01-01", "end_date": "2027-01-07"},
        **{"note": "Load test", "created_by": "alice"},
    }
    made = client.post(f"{BASE}/marks", json=body)
    assert made.status_code == 201
    listed = client.get(f"{BASE}/marks")
    assert listed.json()["items"][0] == made.json()
    assert body.items() <= made.json().items()
    place = f"{BASE}/marks/{made.json()['id']}"
    assert client.delete(place).status_code == 204
    assert client.delete(place).status_code == 404
    assert client.answer(f"{BASE}/marks")["total"] == before
    kinds = [each["what"] for each in client.answer("/api/v1/tenants/acme/audit", page_size=2)["items"]]
    assert kinds == ["anomaly.unmarked", "anomaly.marked"]


def test_marks_that_cannot_be(client: Client) -> None:
    """Unknown identities, invalid or too long ranges of days, and marks without a note are refused."""
    body = {"identity_id": "UNALLOCATED", "status": "planned", "note": "Why"}
    body |= {"start_date": "2027-01-02", "end_date": "2027-01-02"}
    assert client.post(f"{BASE}/marks", json=body | {"identity_id": "sa-nobody"}).status_code == 404
    for wrong in ({"end_date": "2027-01-01"}, {"end_date": "2028-02-01"}, {"note": ""}, {"status": "fine"}):
        refused = client.post(f"{BASE}/marks", json=body | wrong)
        assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (400, next(iter(wrong)))


def test_marks_of_values(scratch: Client) -> None:
    """A mark may be for an existing value of a cost category, but not for an identity at the same time."""
    body = {"status": "expected", "note": "Why", "start_date": "2027-01-02", "end_date": "2027-01-02"}
    value = {"category": "team", "value": "payments"}
    category = scratch.put(
        CATEGORY,
        json={"document": {"rules": []}, "reason": "CHG-42"},
        headers={"If-None-Match": "*"},
    )
    assert category.status_code == 201
    made = scratch.post(f"{OF_SCRATCH}/marks", json=body | value)
    assert (made.status_code, made.json()["identity_id"]) == (201, None)
    assert value.items() <= made.json().items()
    assert scratch.delete(f"{OF_SCRATCH}/marks/{made.json()['id']}").status_code == 204
    assert scratch.post(f"{OF_SCRATCH}/marks", json=body | value | {"category": "gone"}).status_code == 404
    for wrong in ({}, value | {"identity_id": "UNALLOCATED"}, {"category": "team"}, {"value": "payments"}):
        assert scratch.post(f"{OF_SCRATCH}/marks", json=body | wrong).status_code == 400
    assert scratch.answer(OF_SCRATCH, period="7d", category="team")["items"] == []
    assert scratch.get(OF_SCRATCH, params={"category": "gone"}).status_code == 404
    assert scratch.delete(CATEGORY, headers={"If-Match": category.headers["etag"]}).status_code == 204
