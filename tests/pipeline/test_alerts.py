"""Conditions are sent to a real Alertmanager until they end, by any worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import update

from chargeback.config.notifications import AlertmanagerSettings
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import Budget, Threshold
from chargeback.model.days import ONE_DAY, DayRange, utc_now
from chargeback.notifications.alerts import INTERVAL, alerts_of, try_alert
from chargeback.notifications.senders import send_alerts
from chargeback.pipeline.notify import DeliveryMetrics, Notifier
from chargeback.store.control import conditions as stored
from chargeback.store.control import schema
from chargeback.store.control.anomalies import KnownAnomaly, MarkedDays, add_mark, save_anomalies
from chargeback.store.control.budgets import read_budget, write_budget
from chargeback.store.control.conditions import AlertCondition, read_conditions
from chargeback.store.control.events import Event, add_events
from chargeback.store.control.shadows import ShadowDay, save_shadow_day
from tests.support.alertmanager import alerts_at, running_alertmanager
from tests.support.receiver import Answer, Receiver
from tests.support.sources import DAY, Laboratory

DAYS = DayRange(DAY - 3 * ONE_DAY, DAY + ONE_DAY)
STORY = "0123456789abcdef"


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant with four days of 100 for two identities."""
    with Laboratory(tmp_path / "laboratory", days=4) as opened:
        opened.share(DAYS)
        yield opened


@pytest.fixture(scope="module")
def alertmanager() -> Iterator[str]:
    """Yield the address of a running Alertmanager."""
    with running_alertmanager() as address:
        yield address


def budget(laboratory: Laboratory, monthly: str) -> None:
    """Write a budget for all costs, which are 400 so far."""
    found = Budget("all", "All", {}, None, {}, Decimal(monthly), (Threshold("actual", Decimal(80)),))
    with laboratory.store.control.write() as connection:
        before = read_budget(connection, "all")
        write_budget(connection, "all", found, expected=None if before is None else before.version, who="test")


def story(laboratory: Laboratory, kind: str, *, impact: str = "100.00", state: str = "open") -> None:
    """Record an anomaly or a change of it."""
    body = {
        **{"identity_id": "sa-a", "product_category": "KAFKA", "first_date": f"{DAY}", "last_date": f"{DAY}"},
        **{"impact": impact, "sentence": "sa-a was charged more", "more": 0, "currency": "USD"},
        **{"category": None, "value": None, "belongs_to": {}},
    }
    if kind == "withdrawn":
        body = {"first_date": f"{DAY}", "currency": "USD"}
    now = utc_now()
    with laboratory.store.control.write() as connection:
        add_events(connection, [Event(f"anomaly.{kind}", f"anomaly/{STORY}", body, f"{kind} {now}")], now)
        save_anomalies(connection, [KnownAnomaly(STORY, DAY, state, float(impact), 1.0, now)], 1, DAY)


def conditions(laboratory: Laboratory, now: datetime | None = None) -> list[AlertCondition]:
    """Return the conditions that hold now."""
    with laboratory.store.control.read() as connection:
        return read_conditions(connection, utc_now() if now is None else now)


def told(laboratory: Laboratory, alertmanager: str) -> list[dict[str, Any]]:
    """Return the active alerts of the Alertmanager after a new worker has sent the conditions."""
    settings = AlertmanagerSettings.model_validate({"type": "alertmanager", "url": alertmanager, "allow_private": True})
    laboratory.configure(notifications={"alerts": settings})
    with laboratory.store.control.write() as connection:
        connection.execute(update(schema.events).where(schema.events.c.kind.like("budget%")).values(at=utc_now()))
    registry = CollectorRegistry()
    metrics = DeliveryMetrics(registry)
    worker = Notifier(laboratory.tenant, laboratory.store, "https://x/ui", metrics, utc_now)
    worker.deliver(threading.Event())
    worker.alert()
    worker.alert()
    labels = {"tenant": "acme", "sink": "alerts", "outcome": "delivered"}
    assert registry.get_sample_value("chargeback_deliveries_total", labels) in {0, 1}
    return [each for each in alerts_at(alertmanager) if each["endsAt"] > utc_now().isoformat()]


def test_from_its_beginning_to_its_end(laboratory: Laboratory, alertmanager: str) -> None:
    """An alert keeps its labels from beginning to end, only its text has amounts, and its link leads to the page."""
    budget(laboratory, "450")
    laboratory.run()
    story(laboratory, "opened")
    reached, stands_out = told(laboratory, alertmanager)
    assert reached["labels"] == {
        **{"alertname": "ChargebackBudgetReached", "tenant": "acme", "kind": "budget", "budget": "all"},
        **{"threshold": "actual 80", "severity": "warning"},
    }
    assert "400.00 USD of 450.00 USD" in reached["annotations"]["summary"]
    assert reached["generatorURL"] == f"https://x/ui/acme/budgets?period={DAY:%Y-%m}"
    assert stands_out["labels"] == {
        **{"alertname": "ChargebackCostsStandOut", "tenant": "acme", "kind": "anomaly", "identity_id": "sa-a"},
        **{"product_category": "KAFKA", "direction": "up", "severity": "warning"},
    }
    assert stands_out["generatorURL"] == f"https://x/ui/acme/anomalies?start_date={DAY}&end_date={DAY}"

    story(laboratory, "grew", impact="300.00")
    again = told(laboratory, alertmanager)[1]
    assert (again["labels"], again["startsAt"]) == (stands_out["labels"], stands_out["startsAt"])
    assert "300.00 USD" in again["annotations"]["summary"]

    story(laboratory, "resolved", state="resolved")
    assert [each["labels"]["kind"] for each in told(laboratory, alertmanager)] == ["budget"]
    assert [each.ended_at is not None for each in conditions(laboratory)] == [False, True]
    assert len(conditions(laboratory, utc_now() + timedelta(minutes=16))) == 1


def test_what_holds_no_more_is_told_no_more(laboratory: Laboratory) -> None:
    """An alert ends when its budget is raised, or when a user marks its days."""
    budget(laboratory, "450")
    laboratory.run()
    story(laboratory, "opened")
    now = laboratory.clock()
    assert len(conditions(laboratory, now)) == 2
    budget(laboratory, "4500")
    laboratory.run()
    assert [each.event["subject"] for each in conditions(laboratory, now)] == [f"anomaly/{STORY}"]
    with laboratory.store.control.write() as connection:
        add_mark(connection, MarkedDays("", "sa-a", None, "planned", DAY, DAY, "Load test", "ann"))
    assert conditions(laboratory, now) == []


def test_months_and_shadows_wait_for_somebody(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A month is a condition while it can be closed, a shadow from enough complete days until its end."""
    books = Mock(first_open=AccountingPeriod(DAY.replace(day=1)))
    monkeypatch.setattr(stored, "read_books", lambda _: books)
    now = utc_now()
    with laboratory.store.control.write() as connection:
        save_shadow_day(connection, "next", ShadowDay(DAY, 1, "hash", Decimal(1), Decimal(0)))
        ready = Event("period.ready", f"period/{DAY:%Y-%m}", {"days": 31}, "ready")
        add_events(connection, [ready, Event("shadow.ready", "shadow/next", {"days": 30}, "shadow")], now)
    found = alerts_of("acme", conditions(laboratory), None, now)
    assert [each["labels"] for each in found] == [
        {"alertname": "ChargebackMonthReady", "tenant": "acme", "kind": "period", "period": f"{DAY:%Y-%m}"}
        | {"severity": "info"},
        {"alertname": "ChargebackShadowReady", "tenant": "acme", "kind": "shadow", "shadow": "next"}
        | {"severity": "info"},
    ]
    books.first_open = books.first_open.next
    with laboratory.store.control.write() as connection:
        add_events(connection, [Event("shadow.ended", "shadow/next", {"end": f"{DAY}"}, "ended")], now)
    (ended,) = conditions(laboratory)
    assert (ended.event["subject"], ended.ended_at) == ("shadow/next", now)


def test_what_comes_back_begins_anew(laboratory: Laboratory) -> None:
    """An anomaly that returns is a new condition without an end."""
    story(laboratory, "opened")
    story(laboratory, "withdrawn", state="withdrawn")
    assert conditions(laboratory)[0].ended_at is not None
    story(laboratory, "opened")
    (again,) = conditions(laboratory)
    assert again.ended_at is None
    assert again.since == again.event["at"]


def test_one_that_is_not_there_is_tried_again(laboratory: Laboratory) -> None:
    """A failed request is retried after a minute, with the token, and every attempt is counted."""
    story(laboratory, "opened")
    now = utc_now()
    with Receiver(lambda _received, before: Answer(500 if not before else 200)) as receiver:
        settings = {"type": "alertmanager", "url": receiver.url, "token": "secret", "allow_private": True}
        laboratory.configure(notifications={"alerts": AlertmanagerSettings.model_validate(settings)})
        registry = CollectorRegistry()
        moments = [now, now, now + INTERVAL, now + INTERVAL * 1.5]
        clock = iter(moments)
        worker = Notifier(laboratory.tenant, laboratory.store, None, DeliveryMetrics(registry), lambda: next(clock))
        for _ in moments:
            worker.alert()
    assert [each.headers["authorization"] for each in receiver.received] == ["Bearer secret"] * 2
    for outcome in ("failed", "delivered"):
        labels = {"tenant": "acme", "sink": "alerts", "outcome": outcome}
        assert registry.get_sample_value("chargeback_deliveries_total", labels) == 1


def test_an_alert_to_try_it(alertmanager: str) -> None:
    """A test alert arrives, and ends after a minute."""
    settings = {"type": "alertmanager", "url": alertmanager, "allow_private": True}
    alert = try_alert("acme", "desk", utc_now())
    assert send_alerts(AlertmanagerSettings.model_validate(settings), [alert]).error is None
    assert alert["labels"] in [each["labels"] for each in alerts_at(alertmanager)]
