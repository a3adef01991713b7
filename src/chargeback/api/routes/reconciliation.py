"""Reconciliation: the bill compared with the charges."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routing import Routes
from chargeback.api.selecting import MOST_TIMES, PeriodQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.reconciliation import ReconciledBy, ReconciliationAnswer, reconciliation
from chargeback.store.queries.aggregate import MAX_BUCKETS


class ReconciliationQuery(PeriodQuery):
    """Parameters of the reconciliation."""

    group_by: ReconciledBy = Field(
        default="day",
        description="The unit of each entry: a UTC day (`days`), or a month, product type, resource, or ecosystem of "
        "the bill (`buckets`).",
    )


router = Routes(prefix="/tenants/{tenant_name}/reconciliation", tags=["Reconciliation"])


@router.get(
    "",
    needs=Right.READ,
    whole=True,
    keep=True,
    also=lambda request, _: request.tenant.rules.catalogue.hash,
)
def show_reconciliation(request: Facts, params: Annotated[ReconciliationQuery, Query()]) -> ReconciliationAnswer:
    """Compare the bill exactly with the charges, by UTC day, month, product type or resource.

    Each entry, and the total, has the state of its worst day. `timezone` is ignored."""
    tenant = request.tenant
    reader = request.reader
    version = request.version
    period = params.chosen_period(tenant.lookback_days, version.control.last_calculated)
    if period.days > MOST_TIMES:
        wrong = f"should be at most {MOST_TIMES} days before the end"
        raise InvalidRequest([InvalidParameter("start_date", wrong)])
    days = DayRange(period.start, period.end + ONE_DAY)
    with tenant.store.control.read() as connection:
        found = reconciliation(
            reader,
            connection,
            tenant.rules.catalogue,
            days,
            params.group_by,
            currency=tenant.currency,
            has_topics=tenant.topic_attribution_status == "enabled",
        )
    if len(found.buckets) > MAX_BUCKETS:
        raise InvalidRequest([InvalidParameter("group_by", f"should make at most {MAX_BUCKETS:,} buckets")])
    return found
