"""The bill beside what was charged for it."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.datasets import MOST_TIMES, PeriodQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import ONE_DAY, DayRange, render_instant
from chargeback.model.money import difference, render
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.reports.reconciliation import (
    DAY,
    RESOURCE_ID,
    ReconciledState,
    ReconciledSums,
    grouped_reconciliation,
    state_of,
    states_seen,
)
from chargeback.store.control.days import DayState
from chargeback.store.control.inventory_lists import RESOURCES
from chargeback.store.control.names import Named, names_of
from chargeback.store.queries.aggregate import MAX_BUCKETS

ReconciledBy = Literal["day", "month", "product_type", "resource_id"]
PolicyState = Literal["current", "superseded"]


class ReconciliationQuery(PeriodQuery):
    """Parameters of the reconciliation."""

    group_by: ReconciledBy = Field(
        default="day",
        description="What each entry is about: a UTC day (`days`), or a month, product type or resource (`buckets`).",
    )


class ReconciledAmounts(ResponseModel):
    """What was billed beside what was charged for it."""

    state: ReconciledState
    billed: Exact
    charged: Exact
    difference: Exact = Field(description="`charged` minus `billed`, exactly.")
    unallocated: Exact = Field(description="The part of `charged` that nobody could be charged for.")
    pending: Exact = Field(
        description="The part of `billed` whose days are not calculated yet, or not from their present bill."
    )
    by_topic: Exact | None = Field(description="What is attributed to topics; null where topics are not attributed.")
    lines: int = Field(description="Billing lines.")
    rows: int = Field(description="Chargeback rows.")
    revision: int | None = Field(
        description="Number of the day's revision, the highest one of several days; null if none is calculated.",
        examples=[1],
    )
    policies: PolicyState | None = Field(
        description="`superseded` if a day was calculated under other policies than those now configured for what is "
        "on its bill; else `current`. Null if no day is calculated, or an earlier version did it."
    )
    calculated_at: Instant | None = Field(description="Since when the day has that revision; the latest of several.")


class ReconciledDayItem(ReconciledAmounts):
    """One UTC day."""

    date: date
    topics: bool = Field(description="Whether its topics are attributed.")
    error: str | None
    fingerprint: str | None = Field(description="That of the bill from which the day was calculated.")
    gathered_at: Instant | None = Field(description="When its bill was last gathered.")


class ReconciledBucket(ReconciledAmounts):
    """One month, product type or resource. Its state is that of its worst day: `differs`, `pending`, `equal`,
    `none`."""

    value: str = Field(description="The month (`YYYY-MM`), product type or resource.", examples=["KAFKA_NUM_CKUS"])
    name: str | None = Field(description="The display name of a resource.", examples=["prod"])


class ReconciliationAnswer(ResponseModel):
    """The bill of some days beside what was charged for it. All entries sum to `total`."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    group_by: ReconciledBy
    total: ReconciledAmounts
    days: list[ReconciledDayItem] = Field(description="Grouped by day: every day of the period. Else empty.")
    buckets: list[ReconciledBucket] = Field(description="Grouped by anything else: every value. Else empty.")


router = Routes(prefix="/tenants/{tenant_name}/reconciliation", tags=["Reconciliation"])


@router.get(
    "",
    response_model=ReconciliationAnswer,
    needs=Right.READ,
    whole=True,
    keep=True,
    also=lambda request, _: request.tenant.rules.catalogue.hash,
)
def show_reconciliation(request: Facts, params: Annotated[ReconciliationQuery, Query()]) -> Response:
    """Compare the bill with what was charged for it, exactly: by UTC day, month, product type or resource.

    An entry has the state of its worst day, and so has the total. `timezone` is ignored."""
    tenant = request.tenant
    catalogue = tenant.rules.catalogue
    has_topics = tenant.topic_attribution_status == "enabled"
    reader = request.reader
    version = request.version
    period = params.chosen_period(tenant.lookback_days, version.control.last_calculated)
    if period.days > MOST_TIMES:
        wrong = f"should be at most {MOST_TIMES} days before the end"
        raise InvalidRequest([InvalidParameter("start_date", wrong)])
    days = DayRange(period.start, period.end + ONE_DAY)
    with tenant.store.control.read() as connection:
        states = states_seen(reader, connection)
        found = grouped_reconciliation(reader, connection, states, catalogue, days, params.group_by)
        if len(found.items) > MAX_BUCKETS:
            raise InvalidRequest([InvalidParameter("group_by", f"should make at most {MAX_BUCKETS:,} buckets")])
        ids = {item.value for item in found.items} if params.group_by == RESOURCE_ID else set()
        names = names_of(connection, RESOURCES, ids)
    by_day = params.group_by == DAY
    return json_response(
        {
            "start_date": period.start,
            "end_date": period.end,
            "currency": tenant.currency,
            "group_by": params.group_by,
            "total": _amounts(found.total, has_topics=has_topics),
            "days": [_day(item, states) | _amounts(item, has_topics=has_topics) for item in found.items]
            if by_day
            else [],
            "buckets": []
            if by_day
            else [_bucket(item, names) | _amounts(item, has_topics=has_topics) for item in found.items],
        }
    )


def _amounts(sums: ReconciledSums, *, has_topics: bool) -> dict[str, Any]:
    return {
        "state": state_of(sums),
        "billed": render(sums.billed),
        "charged": render(sums.charged),
        "difference": render(difference(sums.charged, sums.billed)),
        "unallocated": render(sums.unallocated),
        "pending": render(sums.pending),
        "by_topic": render(sums.by_topic) if has_topics else None,
        "lines": sums.lines,
        "rows": sums.rows,
        "revision": sums.revision,
        "policies": None if sums.is_superseded is None else "superseded" if sums.is_superseded else "current",
        "calculated_at": None if sums.calculated_at is None else render_instant(sums.calculated_at),
    }


def _day(sums: ReconciledSums, states: Mapping[date, DayState]) -> dict[str, Any]:
    day = date.fromisoformat(sums.value)
    state = states.get(day, DayState(day))
    return {
        "date": day,
        "topics": state.topics.is_current,
        "error": state.error,
        "fingerprint": state.chargebacks.fingerprint,
        "gathered_at": None if state.gathered_at is None else render_instant(state.gathered_at),
    }


def _bucket(sums: ReconciledSums, names: Mapping[str, Named]) -> dict[str, Any]:
    named = names.get(sums.value)
    return {"value": sums.value, "name": None if named is None else named.name}
