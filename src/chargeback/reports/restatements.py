"""Restatements: changes of calculated days, between two instants and since their first content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.money import checked_sum, difference, half_of_changes, total
from chargeback.reports.answers import RENDERED, Exact, Instant, PageOf, ResponseModel, Sum, places
from chargeback.store.control.day_revisions import BILL_CHANGED, FIRST, REPAIR, RETENTION, Revision, read_day_revisions
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


class RestatedDay(ResponseModel):
    """A day whose costs were calculated again with another result."""

    date: date
    first_calculated_at: Instant = Field(description="From when on the day had its first content.")
    calculated_at: Instant = Field(description="Since when it has its present amounts.")
    revisions: int = Field(description="How many times its content was replaced by another one.", examples=[1])
    causes: list[str] = Field(description="Why, each once, the earliest first.", examples=[["bill_changed"]])
    total_before: Exact | None = Field(description="The sum of its first content; null if it is not known.")
    total_after: Exact | None = Field(description="The sum of its present content; null if it is not known.")
    delta: Exact | None = Field(
        description="`total_after` - `total_before`. 0 where amounts moved between identities only, or came back."
    )
    moved: HalfAmount | None = Field(
        description="The sum of `moved` of these revisions: half of what changed for each identity; null if it is not "
        "known of one of them."
    )


class Restatements(PageOf[RestatedDay]):
    """Days whose costs were restated, ascending."""

    currency: str = Field(description="The currency of the bill.", examples=["USD"])


def restated_days(revisions: Iterable[Revision]) -> list[RestatedDay]:
    """Return the days that were restated, ascending, from the revisions of their costs by day and number.

    A revision restates a day if a figure changed that had been shown: the total, what an identity is charged, or the
    bill itself. Rows that were only stored again, or have the same amounts by another policy, restate nothing; neither
    does the end of the retention, after which a day has no rows, and gets a first revision if it is calculated again.

    Raises:
        SumTooLarge: an amount has more than 26 digits before the point.
    """
    contents: dict[date, list[Revision]] = {}
    for revision in revisions:
        if revision.cause in {FIRST, RETENTION}:
            contents[revision.tracking_date] = []
        if revision.cause != RETENTION:
            contents.setdefault(revision.tracking_date, []).append(revision)
    found = ((history, _restating(history)) for history in contents.values())
    return [_restated_day(history, restating) for history, restating in found if restating]


def _restating(history: Sequence[Revision]) -> list[Revision]:
    """Return the revisions that changed a figure of the content before."""
    found = []
    for before, after in pairwise(history):
        has_other_total = None not in (before.total, after.total) and before.total != after.total
        # What moved is not known of rows that were lost; a repair makes the same ones again.
        has_moved = after.cause != REPAIR if after.moved is None else bool(after.moved)
        if after.cause == BILL_CHANGED or has_other_total or has_moved:
            found.append(after)
    return found


def _restated_day(history: Sequence[Revision], restating: Sequence[Revision]) -> RestatedDay:
    before, after = history[0].total, history[-1].total
    moved = [each.moved for each in restating if each.moved is not None]
    return RestatedDay(
        date=history[0].tracking_date,
        first_calculated_at=history[0].calculated_at,
        calculated_at=restating[-1].calculated_at,
        revisions=len(restating),
        causes=list(dict.fromkeys(each.cause for each in restating)),
        total_before=before,
        total_after=after,
        delta=None if before is None or after is None else difference(after, before),
        moved=total(moved) if len(moved) == len(restating) else None,
    )


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
