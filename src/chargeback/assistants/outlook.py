"""What stands out, what budgets allow, and what the month will have cost."""

from __future__ import annotations

from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, dates, reconciled_in, within_limit
from chargeback.assistants.api_client import ApiClient
from chargeback.assistants.arguments import AnomaliesArguments, BudgetsArguments, ForecastArguments, PeriodArguments

_STORY: Final = (
    "identity_id",
    "category",
    "value",
    "product_category",
    "direction",
    "state",
    "first_date",
    "last_date",
    "impact",
    "sentence",
)
_BUDGET: Final = (
    *("id", "name", "state", "budget", "to_date", "budget_to_date", "data_through", "forecast", "projected_over"),
    "crossed",
)


async def list_anomalies(api: ApiClient, arguments: AnomaliesArguments) -> dict[str, Any]:
    """Return the days of a period that stand out, the largest impact first."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    days = dates(tenant.period(arguments))
    found = (await api.get(tenant.name, "anomalies", {**days, "limit": arguments.limit})).body
    reconciled = await reconciled_in(api, tenant.name, tenant.period(arguments))
    items, names = found["items"], found["names"]

    def _row(item: dict[str, Any]) -> dict[str, Any]:
        name = names.get(item["identity_id"])
        return {key: item[key] for key in _STORY} | ({} if name is None else {"display_name": name})

    return within_limit(
        len(items),
        lambda count: {
            **tenant.heading(reconciled, api.link(tenant.name, "costs", days)),
            **days,
            "judged_through": found["judged_through"],
            "not_judged": len(found["not_judged"]),
            "rows": [_row(each) for each in items[:count]],
            "not_shown": len(items) - count + found["more"],
        },
    )


async def budget_status(api: ApiClient, arguments: BudgetsArguments) -> dict[str, Any]:
    """Return how far the budgets of a month are."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    found = (await api.get(tenant.name, "budgets", {"month": arguments.month, "page_size": arguments.limit})).body
    items, reconciled = found["items"], None
    if tenant.data_through is not None:
        reconciled = await reconciled_in(api, tenant.name, tenant.period(PeriodArguments(tenant=tenant.name)))
    return within_limit(
        len(items),
        lambda count: {
            **tenant.heading(reconciled, api.link(tenant.name, "budgets")),
            "period_id": items[0]["status"]["period_id"] if items else arguments.month,
            "rows": [{key: each["status"][key] for key in _BUDGET} for each in items[:count]],
            "total": found["total"],
            "not_shown": found["total"] - count,
        },
    )


async def forecast(api: ApiClient, arguments: ForecastArguments) -> dict[str, Any]:
    """Return what the month of the last calculated day is expected to cost at its end."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    period = tenant.period(PeriodArguments(tenant=tenant.name, period="month"))
    asked = {**dates(period), **arguments.filters, "by": "product_category", "top": 1, "compare": "none"}
    found = (await api.get(tenant.name, "costs", {**asked, "include": "forecast"})).body
    reconciled = await reconciled_in(api, tenant.name, period)
    return {
        **tenant.heading(reconciled, api.link(tenant.name, "costs", {"period": "month", **arguments.filters})),
        "forecast": found["forecast"],
    }
