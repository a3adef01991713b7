"""Requested simulations and their results; each is kept for a week, up to a number of the newest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from chargeback.store.control.schema import simulations

RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"

#: How long a simulation is kept, and how many are.
KEPT: Final = timedelta(days=7)
MOST_KEPT: Final = 50
#: A calculation reports at least this often; after this time without a report, it counts as abandoned.
SILENCE: Final = timedelta(seconds=60)
_GONE: Final = "the process that calculated it has ended: ask for it again"


@dataclass(frozen=True, slots=True)
class KeptSimulation:
    """A simulation.

    Attributes:
        id: the digest of the request and of all inputs.
        asked: the request.
        done, days: how many of how many days are calculated.
        answer: the result as JSON; None before the end, and if it failed.
        error: why it failed.
    """

    id: str
    asked: Mapping[str, Any]
    asked_by: str
    asked_at: datetime
    state: str
    done: int
    days: int
    answer: str | None
    error: str | None


def add_simulation(
    connection: Connection, id_: str, asked: Mapping[str, Any], who: str, now: datetime
) -> KeptSimulation:
    """Add a simulation that begins, in the place of one of the same id that failed, and return it; forget those that
    are too old."""
    connection.execute(delete(simulations).where((simulations.c.id == id_) | (simulations.c.asked_at <= now - KEPT)))
    newest = select(simulations.c.id).order_by(simulations.c.asked_at.desc()).limit(MOST_KEPT - 1)
    connection.execute(
        delete(simulations).where(simulations.c.id.not_in([row.id for row in connection.execute(newest)]))
    )
    connection.execute(
        insert(simulations).values(
            id=id_, asked=json.dumps(asked), asked_by=who, asked_at=now, state=RUNNING, noted_at=now
        )
    )
    return KeptSimulation(id_, asked, who, now, RUNNING, 0, 0, None, None)


def note_simulation(connection: Connection, id_: str, now: datetime, done: int, days: int) -> None:
    """Note how far a simulation is."""
    connection.execute(update(simulations).where(simulations.c.id == id_).values(noted_at=now, done=done, days=days))


def end_simulation(connection: Connection, id_: str, days: int, *, answer: str | None, error: str | None) -> None:
    """Record what a simulation of ``days`` days has found, or why it failed."""
    ended = {"days": days, "answer": answer, "error": error}
    ended |= {"state": DONE, "done": days} if error is None else {"state": FAILED}
    connection.execute(update(simulations).where(simulations.c.id == id_).values(ended))


def find_simulation(connection: Connection, id_: str, now: datetime) -> KeptSimulation | None:
    """Return a simulation; None if there is none of the id, or not any more."""
    row = connection.execute(
        select(simulations).where(simulations.c.id == id_, simulations.c.asked_at > now - KEPT)
    ).first()
    return None if row is None else _kept(row, now)


def list_simulations(connection: Connection, now: datetime) -> list[KeptSimulation]:
    """Return all simulations, the newest first, without what they found."""
    its = simulations.c
    asked = select(*(each for each in its if each.name != "answer")).where(its.asked_at > now - KEPT)
    rows = connection.execute(asked.order_by(its.asked_at.desc(), its.id))
    return [_kept(row, now) for row in rows]


def _kept(row: Any, now: datetime) -> KeptSimulation:
    is_gone = row.state == RUNNING and row.noted_at < now - SILENCE
    return KeptSimulation(
        id=row.id,
        asked=json.loads(row.asked),
        asked_by=row.asked_by,
        asked_at=row.asked_at,
        state=FAILED if is_gone else row.state,
        done=row.done,
        days=row.days,
        answer=getattr(row, "answer", None),
        error=_GONE if is_gone else row.error,
    )
