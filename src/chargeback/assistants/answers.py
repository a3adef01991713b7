"""Common parts of all results: their limit in length, and what they say about the tenant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from pydantic_core import to_json

from chargeback.assistants.api_client import ApiClient, Parameters, ToolError
from chargeback.assistants.arguments import PeriodArguments
from chargeback.reports.periods import CalendarPeriod, named_period

#: The limit of a result, in characters of JSON: some 4,000 tokens, as ids and digits are three characters a token.
MOST_CHARACTERS: Final = 12_000
#: The header of sums that says whether the tenant was charged what was billed.
_RECONCILED: Final = "x-reconciled"


@dataclass(frozen=True)
class KnownTenant:
    """What the API says of a tenant."""

    name: str
    currency: str
    data_through: date | None
    overview: dict[str, Any]

    @classmethod
    async def of(cls, api: ApiClient, name: str) -> KnownTenant:
        """Request a tenant.

        Raises:
            ToolError: there is none for this caller.
        """
        found: dict[str, Any] = (await api.get(name, "")).body
        last = found["last_date"]
        return cls(name, found["currency"], None if last is None else date.fromisoformat(last), found)

    def period(self, arguments: PeriodArguments) -> CalendarPeriod:
        """Return the days that are meant.

        Raises:
            ToolError: nothing is calculated yet.
        """
        if arguments.start_date is not None and arguments.end_date is not None:
            return CalendarPeriod(arguments.start_date, arguments.end_date)
        if self.data_through is None:
            raise ToolError(f"Nothing is calculated in tenant {self.name} yet.")
        return named_period(arguments.period, self.data_through)

    def heading(self, reconciled: str | None, link: str) -> dict[str, Any]:
        """Return what every result about a tenant contains."""
        through = None if self.data_through is None else self.data_through.isoformat()
        return {
            "tenant": self.name,
            "currency": self.currency,
            "data_through": through,
            "reconciled": reconciled,
            "link": link,
        }


def dates(period: CalendarPeriod) -> dict[str, str]:
    """Return a period as parameters, and as results have it."""
    return {"start_date": period.start.isoformat(), "end_date": period.end.isoformat()}


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without those that are null."""
    return {name: value for name, value in values.items() if value is not None}


async def sums(
    api: ApiClient, tenant: str, parameters: Parameters, dataset: str = "chargebacks"
) -> tuple[dict[str, Any], str | None]:
    """Return the sums of a whole period by columns, and whether its days are reconciled; that is None for callers who
    see a part of the bill."""
    answer = await api.get(tenant, f"{dataset}/aggregate", {"time_bucket": "all", **parameters})
    return answer.body, answer.headers.get(_RECONCILED)


async def reconciled_in(api: ApiClient, tenant: str, period: CalendarPeriod) -> str | None:
    """Return whether the days of a period are reconciled."""
    _, state = await sums(api, tenant, {"group_by": "product_category", **dates(period)})
    return state


def within_limit(most: int, make: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Return the result that ``make`` makes with as many entries as fit, at most ``most``."""
    count = most
    while True:
        answer = make(count)
        length = len(to_json(answer))
        if length <= MOST_CHARACTERS or not count:
            return answer
        count = min(count - 1, count * MOST_CHARACTERS // length)
