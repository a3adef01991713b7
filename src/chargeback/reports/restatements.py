"""Restatements: changes of the same days between two instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.money import checked_sum, difference, half_of_changes, total
from chargeback.reports.answers import RENDERED, ResponseModel, Sum, places
from chargeback.store.control.day_revisions import read_day_revisions
from chargeback.store.control.days import DayDataset
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import KeyValues, daily_sums_by, sums_by

_ZERO = Decimal(0)


#: Half of an amount, which may have a digit more.
HalfAmount = Annotated[Decimal, RENDERED, places(25)]


class RestatedItem(ResponseModel):
    """The charges of one combination of values before and after."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])
    before: Sum
    after: Sum
    delta: Sum
    causes: list[str] = Field(description="Why its days changed.", examples=[["bill_changed"]])


class RestatedRest(ResponseModel):
    """The sum of the changes that are not listed."""

    count: int
    before: Sum
    after: Sum
    delta: Sum


class Difference(ResponseModel):
    """The changes between two instants, the largest first."""

    currency: str = Field(examples=["USD"])
    total_before: Sum
    total_after: Sum
    delta: Sum
    moved: HalfAmount = Field(description="Half of the sum of all changes, each without its sign.")
    items: list[RestatedItem]
    other: RestatedRest | None = Field(description="The sum of the changes beyond `limit`.")


def restatement(
    before: TenantReader,
    after: TenantReader,
    selection: Selection,
    by: Sequence[str],
    causes: Mapping[date, Sequence[str]],
    *,
    currency: str,
    limit: int,
) -> Difference:
    """Return the changes of the selected rows between two instants, by columns or tags: at most ``limit`` changes, and
    the sum of the rest. ``causes`` has those of the revisions of each day between the instants, see
    :func:`causes_between`; all other days have not changed, and are only counted.

    Raises:
        HistoryGone: the earlier rows are no longer kept.
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
    changed = sorted(
        (key for key, delta in deltas.items() if delta),
        key=lambda key: (deltas[key].copy_abs().copy_negate(), [value or "" for value in key]),
    )
    listed, rest = changed[:limit], changed[limit:]
    total_after, total_delta = total(whole.values()), total(deltas.values())
    return Difference(
        currency=currency,
        total_before=difference(total_after, total_delta),
        total_after=total_after,
        delta=total_delta,
        moved=checked_sum(half_of_changes(deltas.values())),
        items=[
            RestatedItem(
                dimensions=dict(zip(by, key, strict=True)),
                before=difference(whole.get(key, _ZERO), deltas[key]),
                after=whole.get(key, _ZERO),
                delta=deltas[key],
                causes=sorted(reasons[key]),
            )
            for key in listed
        ],
        other=_together(whole, deltas, rest) if rest else None,
    )


def _together(
    whole: Mapping[KeyValues, Decimal], deltas: Mapping[KeyValues, Decimal], keys: Sequence[KeyValues]
) -> RestatedRest:
    after, delta = total(whole.get(key, _ZERO) for key in keys), total(deltas[key] for key in keys)
    return RestatedRest(count=len(keys), before=difference(after, delta), after=after, delta=delta)


def causes_between(connection: Connection, start: datetime, end: datetime | None) -> dict[date, list[str]]:
    """Return the causes of the revisions of each day after ``start`` and up to ``end``, by default up to now."""
    found: dict[date, list[str]] = {}
    for revision in read_day_revisions(connection, DayDataset.CHARGEBACKS):
        if start < revision.calculated_at and (end is None or revision.calculated_at <= end):
            found.setdefault(revision.tracking_date, []).append(revision.cause)
    return found
