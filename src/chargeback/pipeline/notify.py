"""Sends the events of a tenant to its sinks, until each is delivered or given up."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from threading import Event as Flag
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from chargeback.config import Tenant
from chargeback.config.notifications import AlertmanagerSettings, EventSink, MailSettings
from chargeback.model.days import Clock
from chargeback.notifications.alerts import INTERVAL, alerts_of
from chargeback.notifications.message import message_of
from chargeback.notifications.senders import ATTEMPT_SECONDS, SendResult, send, send_alerts
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.conditions import read_conditions
from chargeback.store.control.deliveries import (
    DEAD,
    DELIVERED,
    PENDING,
    Delivery,
    add_deliveries,
    claim,
    due_deliveries,
    finish,
    forget_sinks,
    has_news,
    is_for,
    oldest_pending,
    subject_of,
)
from chargeback.store.control.events import BELONGS_TO, SINK_DEAD, Event, add_events
from chargeback.store.queries.lookups import read_categories
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

#: How long to wait after each failed attempt, in seconds, 75 hours in total; then the message is given up.
BACKOFF: Final = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
#: At most this part is added at random, so that many messages are not sent at the same moment.
_JITTER: Final = 0.1
#: How long no other process sends a message that is being sent.
_CLAIMED: Final = timedelta(seconds=4 * ATTEMPT_SECONDS)
#: How many messages are read at a time.
_BATCH: Final = 100


class DeliveryMetrics:
    """The metrics of deliveries, in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempts = Counter(
            "chargeback_deliveries",
            "Attempts to deliver a message to a sink, by outcome.",
            ("tenant", "sink", "outcome"),
            registry=registry,
        )
        self.oldest = Gauge(
            "chargeback_outbox_oldest_seconds",
            "Age of the oldest event that is not delivered to a sink.",
            ("tenant", "sink"),
            registry=registry,
        )


class Notifier:
    """Sends the events of one tenant to its sinks. Several processes may do so at the same time."""

    def __init__(
        self, tenant: Tenant, store: TenantStore, page_url: str | None, metrics: DeliveryMetrics, clock: Clock
    ) -> None:
        self._name = tenant.name
        sinks = tenant.settings.notifications
        self._sinks: Mapping[str, EventSink] = {
            name: each for name, each in sinks.items() if not isinstance(each, AlertmanagerSettings)
        }
        self._managers = {name: each for name, each in sinks.items() if isinstance(each, AlertmanagerSettings)}
        self._maintenance = tenant.settings.maintenance
        self._alerted: datetime | None = None
        self._store = store
        self._page_url = page_url
        self._metrics = metrics
        self._clock = clock
        for name in sinks:
            if name in self._sinks:
                metrics.oldest.labels(tenant.name, name)
            for outcome in (DELIVERED, DEAD, "failed"):
                metrics.attempts.labels(tenant.name, name, outcome)

    def deliver(self, stop: Flag) -> None:
        """Send the messages that are due, until ``stop`` is set; send nothing during maintenance.

        Raises:
            StorageError: the control database cannot be used.
        """
        control = self._store.control
        with control.read() as connection:
            is_behind = has_news(connection, self._sinks)
        if is_behind:
            with control.write() as connection:
                lock_tenant(connection)
                forget_sinks(connection, list(self._sinks))
                for name, sink in self._sinks.items():
                    is_owner = sink.scope is not None
                    add_deliveries(connection, name, sink.accepts, self._clock(), is_owner=is_owner)
        for name, sink in self._sinks.items():
            while not stop.is_set() and not self._is_quiet():
                with control.read() as connection:
                    due = due_deliveries(connection, name, self._clock(), _BATCH)
                if not due:
                    break
                for each in due:
                    if stop.is_set() or self._is_quiet():
                        break
                    self._attempt(sink, each)
        with control.read() as connection:
            waiting = oldest_pending(connection)
        now = self._clock()
        for name in self._sinks:
            age = (now - waiting.get(name, now)).total_seconds()
            self._metrics.oldest.labels(self._name, name).set(age)

    def alert(self) -> None:
        """Send the conditions that hold to the Alertmanagers, once a minute.

        Raises:
            StorageError: the control database cannot be used.
        """
        now = self._clock()
        if not self._managers or self._is_quiet() or (self._alerted is not None and now - self._alerted < INTERVAL):
            return
        self._alerted = now
        with self._store.control.read() as connection:
            conditions = read_conditions(connection, now)
        for name, manager in self._managers.items():
            is_owner = manager.scope is not None
            sent = [
                each
                for each in conditions
                if manager.accepts(each.event["kind"]) and is_for(each.event["body"], name, is_owner=is_owner)
            ]
            if not sent:
                continue
            error = send_alerts(manager, alerts_of(self._name, sent, self._page_url, now)).error
            if error is not None:
                log.warning("tenant %s: alerts could not be sent to %s: %s", self._name, name, error)
            self._metrics.attempts.labels(self._name, name, DELIVERED if error is None else "failed").inc()

    def _is_quiet(self) -> bool:
        return any(self._clock() in each for each in self._maintenance)

    def _addressed(self, sink: EventSink, body: Mapping[str, Any]) -> EventSink:
        """Return a sink whose mails go to the contacts of the value that an event is about, if it is configured so and
        there are any."""
        if not isinstance(sink, MailSettings) or sink.contacts is None:
            return sink
        value = body.get(BELONGS_TO, {}).get(sink.contacts)
        if value is None:
            return sink
        with self._store.control.read() as connection:
            categories = read_categories(connection).by_key
        if sink.contacts not in categories:
            return sink
        known = categories[sink.contacts].category.register.get(value)
        contacts = [each for each in known.contacts if "@" in each] if known else []
        return sink.model_copy(update={"to": contacts}) if contacts else sink

    def _attempt(self, sink: EventSink, delivery: Delivery) -> None:
        with self._store.control.write() as connection:
            if not claim(connection, delivery, self._clock() + _CLAIMED):
                return
        now = self._clock()
        message = message_of(self._name, delivery.event, self._page_url)
        outcome = send(self._addressed(sink, delivery.event["body"]), message, now)
        state, next_at = _after(outcome, delivery.attempts + 1, now)
        with self._store.control.write(durable=True) as connection:
            finish(connection, delivery, state, outcome.error, next_at)
            if state == DEAD:
                body = {"error": outcome.error, "kind": message.kind, "subject": message.subject}
                once = f"{SINK_DEAD} {delivery.sink} {now.date()}"  # once a day, even if many messages fail
                add_events(connection, [Event(SINK_DEAD, subject_of(delivery.sink), body, once)], now)
        self._metrics.attempts.labels(self._name, delivery.sink, "failed" if state == PENDING else state).inc()
        if state == DEAD:
            log.error(
                "tenant %s: %s could not be delivered to %s, and is given up: %s",
                *(self._name, message.kind, delivery.sink, outcome.error),
            )
        elif state == PENDING:
            log.warning(
                "tenant %s: %s could not be delivered to %s; the next attempt is at %s: %s",
                *(self._name, message.kind, delivery.sink, f"{next_at:%Y-%m-%d %H:%M} UTC", outcome.error),
            )


def _after(outcome: SendResult, attempts: int, now: datetime) -> tuple[str, datetime]:
    """Return the state of a delivery after this number of attempts, and when the next attempt is due."""
    if outcome.error is None:
        return DELIVERED, now
    if outcome.is_final or attempts > len(BACKOFF):
        return DEAD, now
    usual = BACKOFF[attempts - 1] * (1 + random.uniform(0, _JITTER))  # noqa: S311 - no secret
    return PENDING, now + timedelta(seconds=max(usual, min(outcome.wait, BACKOFF[-1])))
