"""What changed between two moments: the same days, as they were served then and as they were served later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Connection

from chargeback.model.money import checked_sum, difference, half_of_changes, total
from chargeback.store.control.day_revisions import read_day_revisions
from chargeback.store.control.days import DayDataset
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import KeyValues, daily_sums_by, sums_by

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Restated:
    """What one combination of values was charged before and after, and why it changed: the causes of the revisions of
    the days on which it did."""

    key: KeyValues
    before: Decimal
    after: Decimal
    causes: tuple[str, ...]

    @property
    def delta(self) -> Decimal:
        """The amount after minus the amount before."""
        return difference(self.after, self.before)


@dataclass(frozen=True, slots=True)
class Restatement:
    """The difference between two moments: totals of everything that was selected, and what changed, by the size of the
    change. ``moved`` is half of all changes of amounts: what went from one to another."""

    items: tuple[Restated, ...]
    before: Decimal
    after: Decimal

    @property
    def moved(self) -> Decimal:
        """Half of the sum of all changes, each without its sign."""
        return checked_sum(half_of_changes(item.delta for item in self.items))


def restatement(
    before: TenantReader,
    after: TenantReader,
    selection: Selection,
    by: Sequence[str],
    causes: Mapping[date, Sequence[str]],
) -> Restatement:
    """Return what changed of the selected rows between two moments, by columns or tags. ``causes`` has those of the
    revisions of each day between them, see :func:`causes_between`: all other days are the same, and only counted.

    Raises:
        HistoryGone: what was served then is no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    then = daily_sums_by(before, CHARGEBACKS, selection, by, causes)
    later = daily_sums_by(after, CHARGEBACKS, selection, by, causes)
    deltas: dict[KeyValues, Decimal] = {}
    reasons: dict[KeyValues, set[str]] = {}
    for day, key in then.keys() | later.keys():
        delta = difference(later.get((day, key), _ZERO), then.get((day, key), _ZERO))
        if delta:
            deltas[key] = total([deltas.get(key, _ZERO), delta])
            reasons.setdefault(key, set()).update(causes[day])
    whole = sums_by(after, CHARGEBACKS, selection, by)
    items = [
        Restated(key, difference(whole.get(key, _ZERO), delta), whole.get(key, _ZERO), tuple(sorted(reasons[key])))
        for key, delta in deltas.items()
        if delta
    ]
    items.sort(key=lambda item: (item.delta.copy_abs().copy_negate(), [value or "" for value in item.key]))
    total_after = total(whole.values())
    return Restatement(tuple(items), difference(total_after, total(deltas.values())), total_after)


def causes_between(connection: Connection, start: datetime, end: datetime | None) -> dict[date, list[str]]:
    """Return the causes of the revisions of each day after ``start`` and up to ``end``, by default up to now."""
    found: dict[date, list[str]] = {}
    for revision in read_day_revisions(connection, DayDataset.CHARGEBACKS):
        if start < revision.calculated_at and (end is None or revision.calculated_at <= end):
            found.setdefault(revision.tracking_date, []).append(revision.cause)
    return found
