"""Receivers of notifications, and test messages to them, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from chargeback.config.notifications import AlertmanagerSettings, SinkSettings, WebhookSettings
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.receiver import SECRET, Answer, Receiver
from tests.support.serving import client_of, services_for


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server that receives messages."""
    with Receiver() as opened:
        yield opened


@pytest.fixture
def client(own_store: TenantStore, receiver: Receiver) -> Iterator[httpx.Client]:
    """A client of a tenant with a webhook and an Alertmanager, both at the address of the receiver."""
    place = {"url": receiver.url, "allow_private": True}
    sinks: dict[str, SinkSettings] = {
        "hook": WebhookSettings.model_validate({"type": "webhook", "secrets": [SECRET], **place}),
        "alerts": AlertmanagerSettings.model_validate({"type": "alertmanager", "kinds": ["sink.dead"], **place}),
    }
    services = services_for(own_store)
    tenants = {name: replace(view, sinks=sinks) for name, view in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as opened:
        yield opened


def test_each_is_listed_and_tried(client: httpx.Client, receiver: Receiver) -> None:
    """Each sink is listed without its address and secrets, and a test sends a message to it, or an alert that ends by
    itself."""
    listed = client.get(f"{ACME}/notifications")
    assert [(each["name"], each["type"], each["kinds"]) for each in listed.json()["items"]] == [
        ("alerts", "alertmanager", ["sink.dead"]),
        ("hook", "webhook", None),
    ]
    assert receiver.url not in listed.text
    assert SECRET not in listed.text
    for name in ("hook", "alerts"):
        assert client.post(f"{ACME}/notifications/{name}/test").json() == {"delivered": True, "error": None}
    message, alerts = (json.loads(each.body) for each in receiver.received)
    assert message["type"] == "test"
    (alert,) = alerts
    assert alert["labels"] == {
        **{"alertname": "ChargebackTest", "tenant": "acme", "kind": "test", "sink": "alerts", "severity": "info"},
    }
    assert alert["endsAt"] > alert["startsAt"]


def test_what_went_wrong_is_told(client: httpx.Client, receiver: Receiver) -> None:
    """The error contains the receiver's response; an unknown sink is a 404."""
    receiver.answer = lambda _received, _before: Answer(500, text="broken")
    for name in ("hook", "alerts"):
        answer = client.post(f"{ACME}/notifications/{name}/test").json()
        assert answer == {"delivered": False, "error": "the receiver answered 500: broken"}
    assert client.post(f"{ACME}/notifications/nobody/test").status_code == 404
    assert client.post(f"{ACME}/notifications/alerts/retry").json() == {"retried": 0}
