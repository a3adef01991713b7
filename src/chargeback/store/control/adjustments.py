"""Adjustments: amounts that people add to a value of a grouping by hand, or move to it from another one.

One that is removed stays known: books of an earlier instant have the adjustments of then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from sqlalchemy import Connection, Row, insert, select, update

from chargeback.model.accounting import AccountingPeriod
from chargeback.store.control.audit import ADJUSTMENT_ADDED, ADJUSTMENT_REMOVED, API, AuditEntry, record
from chargeback.store.control.schema import adjustments

AdjustmentKind = Literal["reallocation", "fee", "credit", "rounding"]
KINDS: Final = get_args(AdjustmentKind)


@dataclass(frozen=True, slots=True)
class NewAdjustment:
    """An adjustment to make.

    Attributes:
        period: the first month that has it.
        until: the last one; None without an end.
        grouping: the grouping that the value belongs to: ``identity_id``, ``tag:<key>`` or ``category:<key>``.
        value: who gets the amount.
        from_value: who gives it; None if it is added.
        amount: in the currency of the bill.
        applies_to: the month that it is about, if that is another one.
        reverses: the number of the adjustment that it reverses.
    """

    period: AccountingPeriod
    until: AccountingPeriod | None
    grouping: str
    value: str
    from_value: str | None
    amount: Decimal
    kind: AdjustmentKind
    applies_to: AccountingPeriod | None
    reason: str
    reference: str | None
    reverses: int | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One that was made: its number, who made it and when, and who removed it and when."""

    id: int
    made: NewAdjustment
    created_by: str
    created_at: datetime
    removed_by: str | None = None
    removed_at: datetime | None = None

    def is_known(self, at: datetime | None) -> bool:
        """Return whether it was there at an instant; None means now."""
        if at is None:
            return self.removed_at is None
        return self.created_at <= at and (self.removed_at is None or self.removed_at > at)

    def is_in(self, period: AccountingPeriod) -> bool:
        """Return whether a month has it."""
        return self.made.period <= period and (self.made.until is None or period <= self.made.until)

    def as_json(self) -> dict[str, Any]:
        """Return what receipts and the audit log say of it."""
        its = self.made
        return {
            "id": self.id,
            "period_id": its.period.id,
            "until": None if its.until is None else its.until.id,
            "by": its.grouping,
            "value": its.value,
            "from": its.from_value,
            "amount": f"{its.amount:f}",
            "kind": its.kind,
            "applies_to": None if its.applies_to is None else its.applies_to.id,
            "reason": its.reason,
            "reference": its.reference,
            "reverses": its.reverses,
        }


def read_adjustments(connection: Connection) -> list[Adjustment]:
    """Return all adjustments, removed ones as well, the first one first."""
    return [_adjustment(row) for row in connection.execute(select(adjustments).order_by(adjustments.c.id))]


def adjustments_of(found: Sequence[Adjustment], period: AccountingPeriod, at: datetime | None) -> list[Adjustment]:
    """Return those that a month has, as they were known at an instant; None means now."""
    return [each for each in found if each.is_in(period) and each.is_known(at)]


def find_adjustment(connection: Connection, number: int) -> Adjustment | None:
    """Return the adjustment with a number; None if there is none."""
    row = connection.execute(select(adjustments).where(adjustments.c.id == number)).first()
    return None if row is None else _adjustment(row)


def find_by_key(connection: Connection, idempotency_key: str) -> Adjustment | None:
    """Return the adjustment that a request with this key has made."""
    row = connection.execute(select(adjustments).where(adjustments.c.idempotency_key == idempotency_key)).first()
    return None if row is None else _adjustment(row)


def add_adjustment(
    connection: Connection, new: NewAdjustment, *, created_by: str, at: datetime, who: str = API
) -> Adjustment:
    """Record an adjustment, and return it."""
    values = {
        "period": new.period.id,
        "until": None if new.until is None else new.until.id,
        "grouping": new.grouping,
        "value": new.value,
        "from_value": new.from_value,
        "amount": f"{new.amount:f}",
        "kind": new.kind,
        "applies_to": None if new.applies_to is None else new.applies_to.id,
        "reason": new.reason,
        "reference": new.reference,
        "reverses": new.reverses,
        "idempotency_key": new.idempotency_key,
        "created_by": created_by,
        "created_at": at,
    }
    number = connection.execute(insert(adjustments).values(**values).returning(adjustments.c.id)).scalar_one()
    added = Adjustment(number, new, created_by, at)
    record(connection, who, [AuditEntry(ADJUSTMENT_ADDED, f"adjustment/{number}", None, added.as_json())])
    return added


def end_adjustment(
    connection: Connection, found: Adjustment, last: AccountingPeriod | None, *, at: datetime, who: str = API
) -> None:
    """Let a month be the last one that has an adjustment; None removes it from all of them."""
    its = adjustments.c
    change = update(adjustments).where(its.id == found.id)
    if last is None:
        connection.execute(change.values(removed_by=who, removed_at=at))
    else:
        connection.execute(change.values(until=last.id))
    record(connection, who, [AuditEntry(ADJUSTMENT_REMOVED, f"adjustment/{found.id}", found.as_json(), None)])


def _adjustment(row: Row[Any]) -> Adjustment:
    made = NewAdjustment(
        AccountingPeriod.named(row.period),
        None if row.until is None else AccountingPeriod.named(row.until),
        row.grouping,
        row.value,
        row.from_value,
        Decimal(row.amount),
        row.kind,
        None if row.applies_to is None else AccountingPeriod.named(row.applies_to),
        row.reason,
        row.reference,
        row.reverses,
        row.idempotency_key,
    )
    return Adjustment(row.id, made, row.created_by, row.created_at, row.removed_by, row.removed_at)
