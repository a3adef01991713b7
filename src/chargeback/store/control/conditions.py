"""Conditions that hold now and need attention: budgets that are reached, anomalies, sinks without deliveries, months
that can be closed, shadows that are ready.

All of them follow from recorded data: the event that began them, and the latest findings. It is not recorded which of
them were reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Self

from sqlalchemy import Connection, select

from chargeback.model.budgets import Threshold
from chargeback.store.control.anomalies import WITHDRAWN, AnomalyMark, newest_mark, read_anomalies, read_marks
from chargeback.store.control.budgets import crossed_thresholds
from chargeback.store.control.closings import read_books
from chargeback.store.control.deliveries import sink_states, subject_of
from chargeback.store.control.events import (
    ANOMALY_GREW,
    ANOMALY_OPENED,
    ANOMALY_RESOLVED,
    ANOMALY_WITHDRAWN,
    BUDGET_CLEARED,
    BUDGET_CROSSED,
    PERIOD_CLOSED,
    PERIOD_READY,
    SHADOW_ENDED,
    SHADOW_READY,
    SINK_DEAD,
)
from chargeback.store.control.schema import events
from chargeback.store.control.shadows import shadow_names

#: What begins a condition, or says more of it, and what ends it.
_BEGINS: Final = (BUDGET_CROSSED, ANOMALY_OPENED, ANOMALY_GREW, SINK_DEAD, PERIOD_READY, SHADOW_READY)
_ENDS: Final = (BUDGET_CLEARED, ANOMALY_RESOLVED, ANOMALY_WITHDRAWN, PERIOD_CLOSED, SHADOW_ENDED)
#: What has begun longer ago is over, or known.
_LONGEST: Final = timedelta(days=45)
#: For how long it is said that something is over.
_ENDED: Final = timedelta(minutes=15)


_Key = tuple[str, ...]


@dataclass(frozen=True)
class AlertCondition:
    """Something that holds since an instant, with the last event of it; ``ended_at`` is None while it holds."""

    event: Mapping[str, Any]
    since: datetime
    ended_at: datetime | None = None


def read_conditions(connection: Connection, now: datetime) -> list[AlertCondition]:
    """Return what holds, and what has ended a moment ago, in the order of its beginning."""
    its = events.c
    query = select(its.kind, its.subject, its.at, its.body, its.dedupe_key)
    query = query.where(its.at > now - _LONGEST, its.kind.in_([*_BEGINS, *_ENDS])).order_by(its.id)
    found: dict[_Key, AlertCondition] = {}
    for each in map(dict, connection.execute(query).mappings()):
        key, before = _key(each), found.get(_key(each))
        if each["kind"] in _ENDS:
            if before is not None and before.ended_at is None:
                found[key] = AlertCondition(before.event, before.since, each["at"])
        else:
            since = each["at"] if before is None or before.ended_at is not None else before.since
            found[key] = AlertCondition(each, since)
    holds = _Holding.read(connection, {_kind(key) for key, each in found.items() if each.ended_at is None})
    return [
        each
        for key, each in found.items()
        if (holds.still(key, each) if each.ended_at is None else each.ended_at > now - _ENDED)
    ]


def _key(event: Mapping[str, Any]) -> _Key:
    body = event["body"]
    if event["subject"].startswith("budget/"):
        return (event["subject"], body["period_id"], Threshold(body["on"], Decimal(body["percent"])).key)
    return (event["subject"],)


def _kind(key: _Key) -> str:
    return key[0].partition("/")[0]


def _reached_budgets(connection: Connection) -> Set[_Key]:
    return {(f"budget/{each[0]}", *each[1:]) for each in crossed_thresholds(connection)}


def _known_stories(connection: Connection) -> Set[_Key]:
    return {(f"anomaly/{each.id}",) for each in read_anomalies(connection).values() if each.state != WITHDRAWN}


def _dead_sinks(connection: Connection) -> Set[_Key]:
    return {(subject_of(name),) for name, state in sink_states(connection).items() if state.dead}


def _month_to_close(connection: Connection) -> Set[_Key]:
    next_to_close = read_books(connection).first_open
    return set() if next_to_close is None else {(f"period/{next_to_close.id}",)}


def _shadows(connection: Connection) -> Set[_Key]:
    return {(f"shadow/{name}",) for name in shadow_names(connection)}


_HOLDS: Final[Mapping[str, Callable[[Connection], Set[_Key]]]] = {
    "anomaly": _known_stories,
    "budget": _reached_budgets,
    "period": _month_to_close,
    "shadow": _shadows,
    "sink": _dead_sinks,
}
#: What conditions are about.
CONDITIONS: Final = tuple(_HOLDS)


@dataclass(frozen=True)
class _Holding:
    """The keys of the conditions that hold by the latest findings, and the marks that people set."""

    keys: Set[_Key]
    marks: Sequence[AnomalyMark]

    @classmethod
    def read(cls, connection: Connection, kinds: Set[str]) -> Self:
        """Return what is recorded of some kinds of conditions."""
        keys = {key for kind in kinds for key in _HOLDS[kind](connection)}
        return cls(keys, read_marks(connection) if "anomaly" in kinds else [])

    def still(self, key: _Key, condition: AlertCondition) -> bool:
        """Return whether a condition that nothing has ended holds: its days are not put aside, either."""
        if key not in self.keys:
            return False
        body = condition.event["body"]
        if "product_category" not in body:
            return True
        first = date.fromisoformat(body["first_date"])
        category, who = body.get("category") or "", body.get("value") or body["identity_id"]
        mark = newest_mark(self.marks, first, who, body["product_category"] or "", category)
        return mark is None or not mark.is_usual
