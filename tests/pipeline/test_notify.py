"""Events reach every sink once, in order, whatever fails in between."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from chargeback.categories.parsing import parse_category
from chargeback.config.notifications import MailSettings, MaintenanceSettings, WebhookSettings
from chargeback.notifications.senders import SendResult
from chargeback.pipeline import notify
from chargeback.pipeline.notify import BACKOFF, DeliveryMetrics, Notifier
from chargeback.reports.categories.editing import save_categories
from chargeback.store.control.deliveries import retry_dead, sink_states
from chargeback.store.control.events import Event, add_events, read_events
from tests.support.clock import NOW
from tests.support.receiver import SECRET, Answer, Received, Receiver
from tests.support.sources import Laboratory

BUDGET: dict[str, Any] = {
    **{"name": "X", "period_id": "2026-11", "on": "actual", "percent": "80", "amount": "1000.00", "to_date": "812.00"},
    **{"expected": None, "currency": "USD"},
}


class Desk:
    """A tenant, its receivers, and a clock that can be moved forward."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.laboratory = laboratory
        self.now = NOW
        self.registry = CollectorRegistry()
        self.metrics = DeliveryMetrics(self.registry)

    def clock(self) -> datetime:
        """Return the time."""
        return self.now

    def sinks(self, **addresses: str) -> None:
        """Configure webhooks by name."""
        found = {
            name: WebhookSettings.model_validate(
                {"type": "webhook", "url": url, "secrets": [SECRET], "allow_private": True}
            )
            for name, url in addresses.items()
        }
        self.laboratory.configure(notifications=found)

    def happen(self, number: int, subject: str = "shadow/a") -> None:
        """Record an event."""
        with self.laboratory.store.control.write() as connection:
            add_events(connection, [Event("shadow.ready", subject, {"days": number}, f"{subject} {number}")], self.now)

    def deliver(self) -> None:
        """Send the messages that are due."""
        tenant, store = self.laboratory.tenant, self.laboratory.store
        Notifier(tenant, store, "https://x/ui", self.metrics, self.clock).deliver(threading.Event())

    def count(self, sink: str, outcome: str) -> float:
        """Return the number of attempts with this outcome."""
        labels = {"tenant": "acme", "sink": sink, "outcome": outcome}
        return self.registry.get_sample_value("chargeback_deliveries_total", labels) or 0


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Yield a tenant without days."""
    with Laboratory(tmp_path) as laboratory:
        yield Desk(laboratory)


def days_of(receiver: Receiver) -> list[int]:
    """Return the numbers of the events that a receiver got."""
    bodies = (notify_body(each) for each in receiver.received)
    return [body["data"]["body"]["days"] for body in bodies if "days" in body["data"]["body"]]


def notify_body(received: Received) -> Any:
    """Return the body of a message."""
    return json.loads(received.body)


def test_a_sink_is_told_what_happens_after_it_is_there(desk: Desk) -> None:
    """A sink gets each event after its registration once, in order; a new name begins with its own first event."""
    desk.happen(1)
    with Receiver() as receiver, Receiver() as other:
        desk.sinks(first=receiver.url)
        desk.deliver()
        desk.happen(2)
        desk.happen(3)
        desk.deliver()
        desk.deliver()
        assert days_of(receiver) == [2, 3]
        desk.sinks(second=other.url)
        desk.deliver()
        desk.happen(4)
        desk.deliver()
    assert (days_of(receiver), days_of(other)) == ([2, 3], [4])
    assert desk.count("first", "delivered") == 2


def test_what_fails_is_tried_again_later_and_in_order(desk: Desk) -> None:
    """A failed message is retried before others of its subject; other subjects are not delayed."""
    with Receiver() as receiver:
        desk.sinks(chat=receiver.url)
        desk.deliver()
        receiver.answer = lambda received, _: Answer(500 if '"shadow/a"' in received.body else 204)
        desk.happen(1)
        desk.happen(2)
        desk.happen(3, "shadow/b")
        desk.deliver()
        assert days_of(receiver) == [1, 3]
        desk.now += timedelta(seconds=BACKOFF[0] * 1.2)
        receiver.answer = lambda _received, _before: Answer()
        desk.deliver()
    assert days_of(receiver) == [1, 3, 1, 2]
    ids = [each.headers["webhook-id"] for each in receiver.received]
    assert ids[0] == ids[2]
    assert len(set(ids)) == 3
    assert desk.count("chat", "failed") == 1
    with desk.laboratory.store.control.read() as connection:
        state = sink_states(connection)["chat"]
    assert (state.pending, state.delivered, state.dead) == (0, 3, 0)


def test_after_three_days_a_message_is_given_up_and_others_hear_of_it(desk: Desk) -> None:
    """After three days a message is given up, other sinks get an event, and the message can be sent again."""
    with Receiver() as receiver, Receiver() as other:
        desk.sinks(chat=receiver.url, desk=other.url)
        desk.deliver()
        receiver.answer = lambda _received, _before: Answer(503)
        desk.happen(1)
        desk.deliver()
        began = desk.now
        for seconds in BACKOFF:
            desk.now += timedelta(seconds=seconds * 1.11)
            desk.deliver()
        assert len(receiver.received) == len(BACKOFF) + 1
        assert timedelta(hours=75) < timedelta(seconds=sum(BACKOFF)) < desk.now - began
        desk.deliver()
        assert [notify_body(each)["type"] for each in other.received] == ["shadow.ready", "sink.dead"]
        assert desk.count("chat", "dead") == 1
        with desk.laboratory.store.control.write() as connection:
            assert retry_dead(connection, "chat", desk.now) == 1
        receiver.answer = lambda _received, _before: Answer()
        desk.deliver()
    assert days_of(receiver) == [1] * (len(BACKOFF) + 2)
    assert desk.count("chat", "delivered") == 1


def test_who_wants_no_more_is_not_asked_again(desk: Desk) -> None:
    """A response of 410 is final, and ``Retry-After`` is respected."""
    with Receiver() as receiver:
        desk.sinks(chat=receiver.url)
        desk.deliver()
        receiver.answer = lambda _received, before: Answer(429, {"Retry-After": "600"}) if before == 0 else Answer(410)
        desk.happen(1)
        desk.deliver()
        desk.now += timedelta(seconds=300)
        desk.deliver()
        assert len(receiver.received) == 1
        desk.now += timedelta(seconds=301)
        desk.deliver()
        desk.now += timedelta(days=9)
        desk.deliver()
    assert len(receiver.received) == 2
    assert desk.count("chat", "dead") == 1


def test_an_event_may_name_who_is_told(desk: Desk) -> None:
    """An event that names its sinks is sent to no others."""
    with Receiver() as receiver, Receiver() as other:
        desk.sinks(chat=receiver.url, desk=other.url)
        desk.deliver()
        with desk.laboratory.store.control.write() as connection:
            named = [Event("shadow.ready", "shadow/a", {"days": n, "notify": who}, f"{n}") for n, who in WHO]
            add_events(connection, named, desk.now)
        desk.deliver()
    assert (days_of(receiver), days_of(other)) == ([1, 3], [2, 3])


WHO: list[tuple[int, list[str]]] = [(1, ["chat"]), (2, ["desk"]), (3, [])]


class KilledError(BaseException):
    """Raised where the process is killed."""


def test_a_hundred_kills(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the process is killed, every event arrives and is recorded once; a repetition has the id of the
    first."""
    with Receiver() as receiver:
        desk.sinks(chat=receiver.url)
        desk.deliver()
        places = ("claim", "send", "finish", "add_deliveries", "after send", "after finish")
        for number in range(100):
            desk.happen(number, f"shadow/{number % 7}")
            place = places[number % len(places)]
            name = place.removeprefix("after ")
            real = getattr(notify, name)

            def dying(*args: object, real: object = real, place: str = place, **more: object) -> object:
                if place.startswith("after "):
                    real(*args, **more)  # type: ignore[operator]
                raise KilledError

            monkeypatch.setattr(notify, name, dying)
            with pytest.raises(KilledError):
                desk.deliver()
            monkeypatch.setattr(notify, name, real)
            desk.now += timedelta(seconds=61)
        desk.deliver()
    with desk.laboratory.store.control.read() as connection:
        state = sink_states(connection)["chat"]
        assert len(read_events(connection, after=0, kind=None, limit=1000)) == 100
    assert (state.pending, state.delivered, state.dead) == (0, 100, 0)
    assert set(days_of(receiver)) == set(range(100))
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 100
    for subject in range(7):
        firsts = list(dict.fromkeys(each for each in days_of(receiver) if each % 7 == subject))
        assert firsts == sorted(firsts)


def test_two_workers_send_a_message_once(desk: Desk) -> None:
    """A message is sent only by the worker that claims it."""
    with Receiver() as receiver:
        desk.sinks(chat=receiver.url)
        desk.deliver()
        for number in range(10):
            desk.happen(number, f"shadow/{number}")
        receiver.answer = lambda _received, _before: Answer(seconds=0.02)
        threads = [threading.Thread(target=desk.deliver) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert Counter(days_of(receiver)) == Counter(range(10))


def test_during_maintenance_nothing_is_told(desk: Desk) -> None:
    """Events during maintenance are sent after it, in order."""
    window = MaintenanceSettings(start=NOW, end=NOW + timedelta(hours=2), reason="Move of the mail server")
    with Receiver() as receiver:
        desk.sinks(first=receiver.url)
        desk.deliver()
        desk.laboratory.configure(maintenance=(window,))
        desk.happen(1)
        desk.deliver()
        desk.happen(2)
        desk.now = NOW + timedelta(hours=1, minutes=59)
        desk.deliver()
        assert days_of(receiver) == []
        desk.now = NOW + timedelta(hours=2)
        desk.deliver()
        assert days_of(receiver) == [1, 2]
    with pytest.raises(ValueError, match="end should be after start"):
        MaintenanceSettings(start=NOW, end=NOW, reason="None")


def test_mails_go_to_the_contacts_of_who_they_are_about(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail about a value with contacts goes to them; all other mails go to the configured recipients."""
    values = {"payments": {"contacts": ["#chat", "lead@example.com", "two@example.com"]}, "search": {}}
    document = parse_category("team", {"rules": [], "values": values})
    sent: list[list[str]] = []

    def _sent(sink: MailSettings, *_: object) -> SendResult:
        sent.append(sink.to)
        return SendResult()

    monkeypatch.setattr(notify, "send", _sent)
    mail = {"type": "smtp", "host": "x", "sender": "c@example.com", "to": ["all@example.com"], "contacts": "team"}
    mail |= {"kinds": ["budget.crossed", "shadow.ready"]}
    desk.laboratory.configure(notifications={"mail": MailSettings.model_validate(mail)})
    desk.deliver()
    with desk.laboratory.store.control.write() as connection:
        save_categories(connection, [document], who="ann")
        for number, belongs_to in enumerate([{"team": "payments"}, {"team": "search"}, {"site": "north"}, {}]):
            body = BUDGET | {"belongs_to": belongs_to}
            add_events(connection, [Event("budget.crossed", "budget/x", body, f"{number}")], NOW)
        add_events(connection, [Event("shadow.ready", "shadow/a", {"days": 1}, "shadow")], NOW)
    for _ in range(4):  # messages of one subject are sent in order
        desk.deliver()
    assert sent.count(["lead@example.com", "two@example.com"]) == 1
    assert sent.count(["all@example.com"]) == 4


def test_who_has_a_scope_is_told_that_statements_are_issued(desk: Desk) -> None:
    """A sink with a scope gets a message without numbers, and none about a month that is ready."""
    with Receiver() as receiver:
        desk.sinks(mine=receiver.url)
        whole = desk.laboratory.tenant.settings.notifications["mine"]
        desk.laboratory.configure(notifications={"mine": whole.model_copy(update={"scope": {"identity_id": ["sa-a"]}})})
        desk.deliver()
        with desk.laboratory.store.control.write() as connection:
            body = {"period_id": "2026-10", "owners": ["*"]}
            add_events(connection, [Event("statement.issued", "statement/2026-10", body, "issued")], NOW)
            add_events(connection, [Event("period.ready", "period/2026-11", {"days": 30}, "ready")], NOW)
        desk.deliver()
        assert [notify_body(each)["type"] for each in receiver.received] == ["statement.issued"]
