"""What changed between two ranges of days, and why."""

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import Day, day_if_valid
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routes.aggregate import display_names
from chargeback.api.routing import Routes
from chargeback.api.schemas.chargebacks import CostColumns
from chargeback.api.schemas.datasets import ComparingQuery, GroupedQuery, groups_of
from chargeback.api.tenant_requests import Facts
from chargeback.model.money import render
from chargeback.reports.answers import ComparedWith, Exact, ResponseModel, Sum
from chargeback.reports.changes import Change, ChangeEffects, changes, names_of_changes, together
from chargeback.reports.periods import OTHER_PERIOD, Period
from chargeback.reports.wording import Names
from chargeback.store.queries.datasets import CHARGEBACKS

MOST_CHANGES = 1000

#: The ends of the two ranges: all of them, or none.
_RANGES = ("from_start", "from_end", "to_start", "to_end")
#: What names the two ranges otherwise.
_NAMED = ("period", "start_date", "end_date", "compare")
_END = "last day, inclusive, in `timezone`."


class ChangesQuery(CostColumns, ComparingQuery, GroupedQuery):
    """Parameters of what changed: a period and the one it is compared with, or any two ranges."""

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
                Period.between(start, end)
            except ValueError as error:
                problems.append(InvalidParameter(last, str(error)))
        return problems

    def _periods(self, lookback_days: int, last: date | None) -> tuple[Period, Period | None]:
        if self.from_start is None or self.from_end is None or self.to_start is None or self.to_end is None:
            return super()._periods(lookback_days, last)
        return Period(self.to_start, self.to_end), Period(self.from_start, self.from_end)


class ChangedAmounts(ResponseModel):
    """Amounts of both ranges, and why they differ."""

    before: Sum
    after: Sum
    delta: Sum = Field(description="After minus before.")
    per_day_before: Exact | None = Field(
        description="Per day with costs, rounded to twelve places; null if there are none."
    )
    per_day_after: Exact | None
    effects: ChangeEffects
    sentence: str = Field(
        description="What changed and why, in words: the largest reason for each effect, and who pays most of it.",
        examples=[
            "+412.10 USD: +380.02 above all because larger quantities of KAFKA_NETWORK_WRITE on orders-prod were "
            "billed, for which payments pays 310.00 more (+350.02); +32.08 because the price of KAFKA_NUM_CKUS on "
            "orders-prod rose."
        ],
    )


class ChangedItem(ChangedAmounts):
    """One combination of values."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])


class ChangedRest(ChangedAmounts):
    """The combinations that are not listed, together."""

    count: int


class ChangesAnswer(ResponseModel):
    """What changed between two ranges. Items and `other` sum to the totals, and these are those of the aggregates."""

    start_date: date = Field(description="First day of the later range.")
    end_date: date
    timezone: str = Field(examples=["UTC"])
    days_with_costs: int = Field(description="UTC days of the later range that have costs, whatever the filters.")
    compared_with: ComparedWith = Field(description="The earlier range.")
    currency: str = Field(examples=["USD"])
    items: list[ChangedItem] = Field(description="The largest changes first.")
    other: ChangedRest | None = Field(description="The changes beyond `limit`, together.")
    totals: ChangedAmounts
    names: dict[str, dict[str, str]] = Field(
        description="The display names of the listed ids, by column. Ids without a name are left out.",
        examples=[{"identity_id": {"sa-123abc": "orders-service"}}],
    )


router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Changes"])


@router.get("/changes", response_model=ChangesAnswer, needs=Right.READ, keep=True)
def explain_changes(request: Facts, params: Annotated[ChangesQuery, Query()]) -> Response:
    """Compare two ranges of days: the largest changes first, each as a sum of effects and in a sentence.

    The default is the 30 days up to the last calculated day, compared with as many days before. Effects sum to the
    difference exactly. Page parameters are ignored.
    """
    tenant = request.tenant
    reader = request.reader
    version = request.version
    asked = params.comparison(tenant.lookback_days, version.control.last_calculated)
    if asked.compared is None or asked.previous is None:
        raise InvalidRequest([InvalidParameter("compare", "should lie within the years 1970 to 2998")])
    found = changes(reader, asked.selection, asked.previous, params.group_by)

    shown, rest = found.items[: params.limit], found.items[params.limit :]
    other, totals = together(rest), together(found.items)
    with tenant.store.control.read() as connection:
        names = names_of_changes(connection, [*shown, other, totals], tenant.currency)

    def _amounts(change: Change) -> dict[str, Any]:
        return _changed(change, found.days, tenant.currency, names)

    items = [{"dimensions": dict(zip(params.group_by, item.key, strict=True))} | _amounts(item) for item in shown]
    return json_response(
        {
            "start_date": asked.period.start,
            "end_date": asked.period.end,
            "timezone": params.timezone,
            "days_with_costs": found.days[1],
            "compared_with": {
                "start_date": asked.compared.start,
                "end_date": asked.compared.end,
                "days_with_costs": found.days[0],
            },
            "currency": tenant.currency,
            "items": items,
            "other": {"count": len(rest)} | _amounts(other) if rest else None,
            "totals": _amounts(totals),
            "names": display_names(tenant, params.group_by, items),
        }
    )


def _changed(change: Change, days: tuple[int, int], currency: str, names: Names) -> dict[str, Any]:
    before, after = change.per_day(days)
    return {
        "before": render(change.before),
        "after": render(change.after),
        "delta": render(change.delta),
        "per_day_before": None if before is None else render(before),
        "per_day_after": None if after is None else render(after),
        "effects": {name: render(amount) for name, amount in change.effects.items()},
        "sentence": change.sentence(currency, names),
    }
