"""Findings agree with the lists and the measurements, and can be snoozed."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.problems import complaints, kind_of
from tests.contract.records import Client, Everything, Record, shown, total

ALL: dict[str, Any] = {"min_days": 1, "state": "all", "page_size": 1000}


@pytest.fixture
def found(client: Client, everything: Everything) -> list[Record]:
    """Every finding of acme."""
    answer = client.answer(f"{everything.base}/findings", **ALL)
    items: list[Record] = answer["items"]
    assert answer["total"] == len(items) > 0
    return items


def test_what_topics_cost(found: list[Record], everything: Everything) -> None:
    """The cost of a topic is that of its rows; deleting it saves the cost of its stored bytes."""
    topics = [each for each in found if each["kind"].startswith("topic_")]
    assert topics
    for each in topics:
        rows = [
            row
            for row in everything.topics
            if f"{row['cluster_resource_id']}:topic:{row['topic_name']}" == each["subject"]["id"]
        ]
        assert each["monthly_cost"] == shown(total(rows))
        stored = [row for row in rows if row["attribution_method"] == "retained_bytes_ratio"]
        assert each["avoidable_cost"] == shown(total(stored))
        saves = "none" if not total(stored) else "partial" if total(stored) < total(rows) else "full"
        assert each["avoidable"] == saves
        evidence = each["evidence"]
        assert evidence["measured_days"] + evidence["unmeasured_days"] <= len({row["timestamp"] for row in rows})


def test_kinds(found: list[Record], client: Client, everything: Everything) -> None:
    """A topic that is never read was written, and one without traffic was neither; findings can be filtered by kind."""
    for each in found:
        into, out = (Decimal(each["evidence"][name] or 0) for name in ("bytes_in", "bytes_out"))
        match each["kind"]:
            case "topic_without_traffic":
                assert into == out == 0
            case "topic_never_read":
                assert into > out == 0
            case "topic_never_written":
                assert out > into == 0
    kind = found[0]["kind"]
    alone = client.answer(f"{everything.base}/findings", **ALL, kind=kind)["items"]
    assert alone == [each for each in found if each["kind"] == kind]


def test_days_that_were_not_measured_prove_nothing(found: list[Record], client: Client, everything: Everything) -> None:
    """If more measured days are required than there are, nothing is found."""
    most = max(each["evidence"]["measured_days"] for each in found)
    assert most < len(everything.days)  # a day of the demo waits for its metrics
    assert client.answer(f"{everything.base}/findings", min_days=most + 1)["items"] == []


@pytest.fixture
def finding(found: list[Record], client: Client, everything: Everything) -> Iterator[str]:
    """The path of the snooze of a finding, which is removed after the test."""
    path = f"{everything.base}/findings/{found[0]['id']}/snooze"
    yield path
    client.delete(path)


def test_snoozing(finding: str, client: Client, everything: Everything) -> None:
    """A snoozed finding is only in the list of snoozed ones, with its reason; the ETag of the list changes."""
    path, identifier = f"{everything.base}/findings", finding.split("/")[-2]
    before = client.get(path, params={"min_days": 1})
    body = {"reason": "Kept for the audit", "until": "2026-03-01", "created_by": "ann"}
    snooze = client.put(finding, json=body)
    assert snooze.status_code == 200
    after = client.get(path, params={"min_days": 1})
    assert before.headers["etag"] != after.headers["etag"]
    assert identifier not in [each["id"] for each in after.json()["items"]]
    (snoozed,) = client.answer(path, min_days=1, state="snoozed")["items"]
    assert (snoozed["id"], snoozed["snooze"]["reason"]) == (identifier, "Kept for the audit")
    assert after.json()["snoozed"] == 1
    (entry,) = client.answer(f"{everything.base}/audit", what="finding.snoozed", page_size=1)["items"]
    assert (entry["target"], entry["after"]["until"]) == (f"finding/{identifier}", "2026-03-01")
    assert client.delete(finding).status_code == 204
    assert client.answer(path, min_days=1)["items"] == before.json()["items"]


def test_a_snooze_that_is_over(finding: str, client: Client, everything: Everything) -> None:
    """On the last day of a snooze, the finding is open again."""
    assert client.put(finding, json={"reason": "Until today", "until": "2026-01-31"}).status_code == 200
    assert client.answer(f"{everything.base}/findings", min_days=1)["snoozed"] == 0


def test_what_is_refused(finding: str, client: Client, everything: Everything) -> None:
    """A snooze needs a reason and an existing finding; invalid parameters are named."""
    assert complaints(client.put(finding, json={"until": "soon"})) == ["reason", "until"]
    nothing = f"{everything.base}/findings/0123456789abcdef/snooze"
    assert kind_of(client.put(nothing, json={"reason": "x"}), 404) == "not-found"
    assert kind_of(client.delete(finding), 404) == "not-found"
    asked = {"kind": "idle_connector", "min_days": "0", "state": "gone"}
    assert complaints(client.get(f"{everything.base}/findings", params=asked)) == ["kind", "min_days", "state"]


def test_a_tenant_without_topics(client: Client) -> None:
    """Without topics, the response is an empty list."""
    answer = client.answer("/api/v1/tenants/plain/findings")
    assert (answer["items"], answer["total"]) == ([], 0)
