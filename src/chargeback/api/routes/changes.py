"""Changes of costs between two ranges of days, and their reasons."""

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field, StringConstraints

from chargeback.access.caller import Right
from chargeback.api.parameters import Day, day_if_valid
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.routing import Routes
from chargeback.api.selecting import ComparingQuery, CostColumns, GroupedQuery, groups_of
from chargeback.api.tenant_requests import Facts
from chargeback.reports.changes import ChangesAnswer, explained_changes
from chargeback.reports.periods import OTHER_PERIOD, CalendarPeriod
from chargeback.store.queries.datasets import CHARGEBACKS

MOST_CHANGES = 1000

#: The ends of the two ranges: all of them, or none.
_RANGES = ("from_start", "from_end", "to_start", "to_end")
#: The parameters that these replace.
_NAMED = ("period", "start_date", "end_date", "compare")
_END = "last day, inclusive, in `timezone`."


class ChangesQuery(CostColumns, ComparingQuery, GroupedQuery):
    """Parameters of a comparison: a period and the one it is compared with, or any two ranges."""

    excluded: CostColumns = CostColumns()
    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    compare: Annotated[str, StringConstraints(pattern=OTHER_PERIOD)] = Field(
        default="previous",
        description="The earlier period: `previous` (as many days before), `year` (the same dates a year before), or "
        "two dates, `2026-09-01..2026-09-30`.",
        examples=["previous"],
    )
    from_start: Day | None = Field(
        default=None,
        description="Instead of a period and `compare`, the first day of the earlier range; needs `from_end`, "
        "`to_start` and `to_end`.",
    )
    from_end: Day | None = Field(default=None, description=f"The earlier range's {_END}")
    to_start: Day | None = Field(default=None, description="The later range's first day.")
    to_end: Day | None = Field(default=None, description=f"The later range's {_END}")
    limit: int = Field(default=100, ge=1, le=MOST_CHANGES, description="How many changes, the largest first.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that two ranges are complete, in order, and not given together with a period."""
        problems = super().cross_checks(raw, now)
        if not raw.keys() & set(_RANGES):
            return problems
        problems += [InvalidParameter(name, "is needed, too") for name in _RANGES if name not in raw]
        problems += [
            InvalidParameter(name, "should not be given together with two ranges") for name in _NAMED if name in raw
        ]
        for first, last in (_RANGES[:2], _RANGES[2:]):
            start, end = day_if_valid(raw.get(first)), day_if_valid(raw.get(last))
            if start is None or end is None:
                continue
            try:
                CalendarPeriod.between(start, end)
            except ValueError as error:
                problems.append(InvalidParameter(last, str(error)))
        return problems

    def _periods(self, lookback_days: int, last: date | None) -> tuple[CalendarPeriod, CalendarPeriod | None]:
        if self.from_start is None or self.from_end is None or self.to_start is None or self.to_end is None:
            return super()._periods(lookback_days, last)
        return CalendarPeriod(self.to_start, self.to_end), CalendarPeriod(self.from_start, self.from_end)


router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Changes"])


@router.get("/changes", needs=Right.READ, keep=True)
def explain_changes(request: Facts, params: Annotated[ChangesQuery, Query()]) -> ChangesAnswer:
    """Compare two ranges of days: the largest changes first, each as a sum of effects and in a sentence.

    The default is the 30 days up to the last calculated day, compared with as many days before. Effects sum to the
    difference exactly. Page parameters are ignored.
    """
    tenant = request.tenant
    comparison = params.comparison(tenant.lookback_days, request.version.control.last_calculated)
    reader = request.reader
    with tenant.store.control.read() as connection:
        found = explained_changes(
            reader,
            connection,
            comparison,
            params.group_by,
            timezone=params.timezone,
            currency=tenant.currency,
            limit=params.limit,
        )
    if found is None:
        raise InvalidRequest([InvalidParameter("compare", "should lie within the years 1970 to 2998")])
    return found
