"""Adding, ending and reversing adjustments in open months."""

from __future__ import annotations

from sqlalchemy import Connection

from chargeback.errors import AdjustmentInvalid, PeriodRefused
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.cents import minor_places
from chargeback.model.days import Clock
from chargeback.reports.closing.sealing import Writing
from chargeback.store.control.adjustments import (
    Adjustment,
    NewAdjustment,
    add_adjustment,
    end_adjustment,
    find_adjustment,
    find_by_key,
    read_adjustments,
)
from chargeback.store.control.catalogue import touch
from chargeback.store.control.closings import Books, instant_of_closing, read_books


def check_adjustment(new: NewAdjustment, currency: str, *, exact: bool) -> None:
    """Check that an adjustment is consistent; without ``exact`` its amount must be in whole cents.

    Raises:
        AdjustmentInvalid: it is not.
    """
    problems = []
    places = minor_places(currency)
    if not exact and new.amount != round(new.amount, places):
        problems.append(("amount", f"should have at most {places} decimal places, unless it is exact"))
    if not new.amount:
        problems.append(("amount", "should not be zero"))
    if (new.kind == "reallocation") != (new.from_value is not None):
        problems.append(("from", "should be given for a reallocation, and for nothing else"))
    if new.from_value == new.value:
        problems.append(("from", "should not be the value that gets the amount"))
    if new.until is not None and new.until < new.period:
        problems.append(("until", "should not be before period"))
    if problems:
        raise AdjustmentInvalid(problems)


def adjust(writing: Writing, new: NewAdjustment, who: str, now: Clock) -> Adjustment:
    """Add an adjustment; a repeated key returns the same one.

    Raises:
        PeriodRefused: the month is closed.
        StorageError: the control database cannot be written.
    """
    with writing() as connection:
        if new.idempotency_key is not None and (known := find_by_key(connection, new.idempotency_key)) is not None:
            return known
        at = instant_of_closing(connection, now())
        _require_open(read_books(connection), new.period)
        touch(connection)
        return add_adjustment(connection, new, created_by=who, at=at, who=who)


def end(writing: Writing, number: int, who: str, now: Clock) -> bool:
    """Remove an adjustment from the months that are open; return whether there is one.

    Raises:
        PeriodRefused: all its months are closed.
        StorageError: the control database cannot be written.
    """
    with writing() as connection:
        at = instant_of_closing(connection, now())
        found = _present(connection, number)
        if found is None:
            return False
        first_open = read_books(connection).first_open
        last = None
        if first_open is not None and found.made.period < first_open:
            last = first_open.previous
            if found.made.until is not None and found.made.until <= last:
                raise PeriodRefused(f"{found.made.until.id} is closed: reverse the adjustment in an open month instead")
        touch(connection)
        end_adjustment(connection, found, last, at=at, who=who)
    return True


def reverse(
    writing: Writing, number: int, period: AccountingPeriod, reason: str, who: str, now: Clock
) -> Adjustment | None:
    """Reverse an adjustment in an open month; return the reversal, or None if there is no such adjustment.

    Raises:
        PeriodRefused: the month is closed, or the adjustment is reversed already.
        StorageError: the control database cannot be written.
    """
    with writing() as connection:
        at = instant_of_closing(connection, now())
        its = _present(connection, number)
        if its is None:
            return None
        _require_open(read_books(connection), period)
        if any(each.made.reverses == its.id and each.removed_at is None for each in read_adjustments(connection)):
            raise PeriodRefused(f"the adjustment {number} is reversed already")
        made = its.made
        back = NewAdjustment(
            period,
            period,
            made.grouping,
            made.value,
            made.from_value,
            made.amount.copy_negate(),
            made.kind,
            made.period,
            reason,
            made.reference,
            its.id,
        )
        touch(connection)
        return add_adjustment(connection, back, created_by=who, at=at, who=who)


def _require_open(books: Books, period: AccountingPeriod) -> None:
    if books.first_open is not None and period < books.first_open:
        raise PeriodRefused(f"{period.id} is closed: the first open month is {books.first_open.id}")


def _present(connection: Connection, number: int) -> Adjustment | None:
    found = find_adjustment(connection, number)
    return None if found is None or found.removed_at is not None else found
