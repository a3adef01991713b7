"""The summary of topics over HTTP."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from chargeback.reports.topic_costs import TopicsSummary
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, LAST, parameters_of
from tests.support.serving import client_of, services_for
from tests.support.topics import TopicShare, write_topic_shares


def test_the_dearest_topics(own_store: TenantStore) -> None:
    """The response has the documented fields, the sum of the others, and ignored filters."""
    write_topic_shares(own_store.facts, [TopicShare(LAST, name, amount) for name, amount in (("a", "3"), ("b", "1"))])
    services = services_for(own_store)
    acme = replace(services.tenants["acme"], topic_attribution_status="enabled")
    with client_of(replace(services, tenants={"acme": acme})) as client:
        body = client.get(f"{ACME}/topics", params={"top": 1, "tag:team": "x", "compare": "none"}).json()
        TopicsSummary.model_validate(body)
        assert (body["total"], body["other"]) == ("4.00", {"count": 1, "amount": "1.00", "previous": None})
        assert (body["items"][0]["topic_name"], body["items"][0]["zombie"]) == ("a", False)
        assert body["ignored_filters"] == ["tag:team"]
        file = client.get(f"{ACME}/topics.csv", params={"top": 1, "compare": "none"})
        assert file.headers["content-disposition"] == "attachment; filename=topics.csv"
        assert [line.split(",")[2:] for line in file.text.splitlines()] == [
            ["topic_name", "amount", "previous", "bytes_in", "bytes_out", "zombie"],
            ["a", "3.00", "", "", "", "false"],
            ["b", "1.00", "", "", "", "false"],
        ]
        assert parameters_of(client.get(f"{ACME}/topics", params={"top": 0, "topic_name": "a"})) == [
            "top",
            "topic_name",
        ]


@pytest.mark.parametrize("path", ["topics", "topic-attributions.csv"])
def test_topics_must_be_attributed(client: httpx.Client, path: str) -> None:
    """If topics are not attributed, the response says how to enable it."""
    answer = client.get(f"{ACME}/{path}")
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:chargeback:topic-attribution-unavailable")
