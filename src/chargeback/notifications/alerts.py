"""Conditions as alerts of an Alertmanager.

It gets every condition that holds once a minute, and considers an alert ended that it has not got for some minutes: no
state has to be kept, and a restarted worker continues where the last one was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from chargeback.model.days import render_instant
from chargeback.notifications.message import message_of
from chargeback.store.control.conditions import AlertCondition

#: How often conditions are sent, and after how long without one an alert ends.
INTERVAL: Final = timedelta(seconds=60)
_OVER: Final = 4 * INTERVAL


def alerts_of(
    tenant: str, conditions: Sequence[AlertCondition], page_url: str | None, now: datetime
) -> list[dict[str, Any]]:
    """Return the alerts of what holds and has just ended, as ``POST /api/v2/alerts`` takes them."""
    return [_alert(tenant, each, page_url, now) for each in conditions]


def try_alert(tenant: str, sink: str, now: datetime) -> dict[str, Any]:
    """Return an alert that says that a sink works, and ends after a minute."""
    labels = {"alertname": "ChargebackTest", "tenant": tenant, "kind": "test", "sink": sink, "severity": "info"}
    annotations = {"summary": f"{tenant}: this alert says that {sink} can be reached."}
    ends = render_instant(now + INTERVAL)
    return {"labels": labels, "annotations": annotations, "startsAt": render_instant(now), "endsAt": ends}


def _alert(tenant: str, condition: AlertCondition, page_url: str | None, now: datetime) -> dict[str, Any]:
    message = message_of(tenant, condition.event, page_url)
    kind, _, name = message.subject.partition("/")
    # The labels say which alert it is: they are the same from its beginning to its end, and have neither amounts nor
    # dates.
    labels = {"tenant": tenant, "kind": kind} | _LABELS[kind](name, message.body)
    alert = {
        "labels": labels,
        "annotations": {"summary": message.sentence},
        "startsAt": render_instant(condition.since),
        "endsAt": render_instant(now + _OVER if condition.ended_at is None else condition.ended_at),
    }
    return alert if message.link is None else alert | {"generatorURL": message.link}


def _of_budget(name: str, body: Mapping[str, Any]) -> dict[str, str]:
    is_exceeded = body["on"] == "actual" and float(body["percent"]) >= 100
    return {
        "alertname": "ChargebackBudgetReached",
        "budget": name,
        "threshold": f"{body['on']} {body['percent']}",
        "severity": "critical" if is_exceeded else "warning",
    }


#: Whose costs stand out; what is null is left out.
_WHOSE: Final = ("identity_id", "category", "value", "product_category")


def _of_anomaly(_name: str, body: Mapping[str, Any]) -> dict[str, str]:
    return {
        "alertname": "ChargebackCostsStandOut",
        **{name: body[name] for name in _WHOSE if body.get(name) is not None},
        "direction": "down" if body["impact"].startswith("-") else "up",
        "severity": "warning",
    }


def _of_sink(name: str, _body: Mapping[str, Any]) -> dict[str, str]:
    return {"alertname": "ChargebackSinkDead", "sink": name, "severity": "warning"}


def _of_period(name: str, _body: Mapping[str, Any]) -> dict[str, str]:
    return {"alertname": "ChargebackMonthReady", "period": name, "severity": "info"}


def _of_shadow(name: str, _body: Mapping[str, Any]) -> dict[str, str]:
    return {"alertname": "ChargebackShadowReady", "shadow": name, "severity": "info"}


_LABELS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, str]]]] = {
    "budget": _of_budget,
    "anomaly": _of_anomaly,
    "sink": _of_sink,
    "period": _of_period,
    "shadow": _of_shadow,
}
