"""The effects of changes of tags, cost categories or policies on closed months.

Changes of a closed month are posted later, as corrections. An edit that would cause them is refused unless it allows
them explicitly: usually the new value should begin in an open month.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from pydantic import Field
from sqlalchemy import Connection

from chargeback.errors import ReachesIntoClosed, UnknownCategory
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.money import difference
from chargeback.model.run_request import RunRequest
from chargeback.reports.answers import ResponseModel, Sum
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.wording import money_text
from chargeback.store.control.closings import Books
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.lookups import LookupCaches, read_categories
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.queries.tag_index import read_tags

_ZERO = Decimal(0)


class MovedAmount(ResponseModel):
    """The changed amount of a value in a month."""

    period_id: str = Field(examples=["2026-10"])
    by: str = Field(examples=["category:cost_center"])
    value: str | None = Field(examples=["payments"])
    before: Sum
    after: Sum
    delta: Sum


def moved_between(
    period_id: str, by: str, before: Mapping[str | None, Decimal], after: Mapping[str | None, Decimal]
) -> list[MovedAmount]:
    """Return the values whose amounts of a month differ."""
    return [
        MovedAmount(period_id=period_id, by=by, value=value, before=old, after=new, delta=difference(new, old))
        for value in sorted(before.keys() | after.keys(), key=lambda value: value or "")
        if (old := before.get(value, _ZERO)) != (new := after.get(value, _ZERO))
    ]


def moved_in_closed(
    tenant: TenantView, reader: TenantReader, caches: LookupCaches, books: Books, connection: Connection
) -> list[MovedAmount]:
    """Return the changes in closed months, except sealed ones, that are caused by the tags and cost categories written
    in a transaction; ``reader`` sees those before it.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    periods = books.unsealed()
    if not periods:
        return []
    whole = reader.unscoped()
    tags, index = read_tags(connection), read_categories(connection)
    changed = whole.with_entities(tags, caches.candidate(tenant.whole_store, index, tags))
    return [
        moved for by in tenant.closing.by for period in periods for moved in moved_in_month(whole, changed, period, by)
    ]


def check_reach(moved: Sequence[MovedAmount], books: Books, currency: str) -> None:
    """Refuse a change that moves amounts of closed months.

    Raises:
        ReachesIntoClosed: it does.
    """
    if not moved:
        return
    largest = max(moved, key=lambda each: each.delta.copy_abs())
    amount = money_text(largest.delta, currency)
    begins = books.closed[-1].period.next.start
    raise ReachesIntoClosed(
        f"the change moves amounts of closed months, such as {amount} of {largest.value} in {largest.period_id}: let "
        f"it begin on {begins} (valid_from), or send restate_closed with a reason, and it is posted as a correction",
        [each.model_dump(mode="json") for each in moved],
        currency=currency,
        begins=begins,
    )


def check_recalculation(books: Books, request: RunRequest, currency: str) -> None:
    """Refuse to calculate days of closed months again, which would use the present policies and metrics. The changes
    are only known afterwards.

    Raises:
        ReachesIntoClosed: the request does.
    """
    reached = [each.id for each in books.unsealed(request.start or date.min, request.end or date.max)]
    if not request.recalculate or not reached:
        return
    begins = books.closed[-1].period.next.start
    raise ReachesIntoClosed(
        f"the days of closed months ({', '.join(reached)}) would be calculated by the present policies: let the run "
        f"begin on {begins}, or send restate_closed with a reason, and what moves is posted as a correction",
        [],
        currency=currency,
        begins=begins,
    )


def moved_in_month(before: TenantReader, after: TenantReader, period: AccountingPeriod, by: str) -> list[MovedAmount]:
    """Return the values whose amounts of a month differ between two readers; none by a cost category that one of them
    does not have.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    try:
        old, new = (sums_by(each, CHARGEBACKS, Selection(period.window), (by,)) for each in (before, after))
    except UnknownCategory:
        return []  # nothing was booked by a category that did not exist, or no longer exists
    return moved_between(period.id, by, *({key: sums[key,] for (key,) in sums} for sums in (old, new)))
