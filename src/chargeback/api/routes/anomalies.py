"""What stands out in the costs of a period."""

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import Query
from pydantic import Field

from chargeback.access.rights import Right
from chargeback.api.routing import Routes
from chargeback.api.selecting import UsualPeriodQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.anomalies import Floors
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.anomalies import AnomaliesAnswer, Asked, anomalies
from chargeback.reports.names import names_of_identities
from chargeback.reports.reconciliation import states_seen
from chargeback.store.control.revisions import read_revisions


class AnomaliesQuery(UsualPeriodQuery):
    """Which days are meant, and what has to be exceeded."""

    min_amount: Annotated[float, Field(ge=0, le=1e12)] = Field(
        default=1, description="By how much a day has to differ at least, in the currency of the bill."
    )
    min_percent: Annotated[float, Field(ge=0, le=1e6)] = Field(
        default=20, description="By how much it has to differ at least, in percent of what is expected."
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = Field(default=100, description="How many are listed at most.")


router = Routes(prefix="/tenants/{tenant_name}/anomalies", tags=["Anomalies"])


@router.get("", needs=Right.READ)
def show_anomalies(request: Facts, params: Annotated[AnomaliesQuery, Query()]) -> AnomaliesAnswer:
    """List the days of a period on which the costs of an identity for a product group stand out, the largest impact
    first. What has a quantity is compared at its latest price, so that prices stand out of nothing; credits and what is
    billed on three days of a month or less are left out. The numbers are estimates."""
    tenant = request.tenant
    with request.reading() as connection:
        states = states_seen(request.reader, connection)
        last = read_revisions(connection).last_calculated
    period = params.chosen_period(tenant.lookback_days, last)

    def _named(identities: Collection[str]) -> Mapping[str, str]:
        with request.reading() as connection:
            return names_of_identities(connection, identities)

    asked = Asked(
        DayRange(period.start, period.end + ONE_DAY),
        Floors(params.min_amount, params.min_percent / 100),
        params.limit,
    )
    return anomalies(request.reader, states, asked, tenant.currency, _named)
