"""Findings that were snoozed, for a reason, until a day or for good.

Every change is recorded in the audit log, as made by ``who``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from chargeback.model.days import render_instant, utc_now
from chargeback.store.control.audit import API, FINDING_SNOOZED, FINDING_WOKEN, AuditEntry, record
from chargeback.store.control.schema import finding_snoozes


@dataclass(frozen=True)
class Snooze:
    """Why a finding is put off, and until which day (exclusive; None for good)."""

    finding_id: str
    reason: str
    until: date | None
    created_by: str
    created_at: datetime

    def holds_on(self, day: date) -> bool:
        """Return whether the finding is still put off on a day."""
        return self.until is None or day < self.until

    def as_json(self) -> dict[str, Any]:
        """Return it as the API and the audit log show it."""
        return {
            "reason": self.reason,
            "until": None if self.until is None else self.until.isoformat(),
            "created_by": self.created_by,
            "created_at": render_instant(self.created_at),
        }


def read_snoozes(connection: Connection) -> dict[str, Snooze]:
    """Return every snooze, by the id of its finding."""
    rows = connection.execute(select(finding_snoozes).order_by(finding_snoozes.c.finding_id))
    return {row.finding_id: Snooze(*row) for row in rows}


def put_snooze(
    connection: Connection, finding_id: str, reason: str, until: date | None, created_by: str, *, who: str = API
) -> Snooze:
    """Put a finding off, and return how; an earlier snooze of it is replaced."""
    before = _remove(connection, finding_id)
    snooze = Snooze(finding_id, reason, until, created_by, utc_now())
    connection.execute(insert(finding_snoozes).values(**vars(snooze)))
    after, earlier = snooze.as_json(), None if before is None else before.as_json()
    record(connection, who, [AuditEntry(FINDING_SNOOZED, f"finding/{finding_id}", earlier, after)])
    return snooze


def remove_snooze(connection: Connection, finding_id: str, *, who: str = API) -> bool:
    """Put a finding off no longer; return whether it was."""
    before = _remove(connection, finding_id)
    if before is None:
        return False
    record(connection, who, [AuditEntry(FINDING_WOKEN, f"finding/{finding_id}", before.as_json(), None)])
    return True


def _remove(connection: Connection, finding_id: str) -> Snooze | None:
    its = finding_snoozes.c.finding_id == finding_id
    row = connection.execute(select(finding_snoozes).where(its).with_for_update()).first()
    connection.execute(delete(finding_snoozes).where(its))
    return None if row is None else Snooze(*row)
