"""Tools of an assistant for anomalies, findings, budgets, forecasts and statements."""

from __future__ import annotations

from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, dates, present, reconciled_in, within_limit
from chargeback.assistants.api_client import ApiClient
from chargeback.assistants.arguments import (
    AnomaliesArguments,
    BudgetsArguments,
    FindingsArguments,
    ForecastArguments,
    PeriodArguments,
    StatementArguments,
)
from chargeback.model.currency import parse_month
from chargeback.model.days import ONE_DAY, month_of
from chargeback.reports.periods import CalendarPeriod

_MOST: Final = 50
_HEADING: Final = ("by", "period", "days", "calculated_days", "status", "issued_at", "scope")
_OF_STATEMENT: Final = ("number", "recipient", "amount", "rounded", "verdict")
_RANKINGS: Final = ("identities", "resources", "topics")

_SHOWN: Final = (
    "kind",
    "owner",
    "since",
    "last_active",
    "monthly_cost",
    "avoidable_cost",
    "why",
    "confidence",
    "action",
)

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


async def get_statement(api: ApiClient, arguments: StatementArguments) -> dict[str, Any]:
    """Return the statement of one value for a month, or the list of all statements of the month."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    asked = {"period": arguments.period, "by": arguments.by, "value": arguments.value}
    one = arguments.value is not None
    found: dict[str, Any] = (await api.get(tenant.name, "statement" if one else "statements", asked)).body
    reconciled = await reconciled_in(api, tenant.name, _month(arguments.period))
    page = "statement" if one else "costs"
    heading = tenant.heading(reconciled, api.link(tenant.name, page, asked)) | {
        name: found[name] for name in _HEADING if found[name] is not None
    }
    if one:
        return within_limit(_MOST, lambda count: heading | _statement(found, count))
    items = found["items"]
    return within_limit(
        min(_MOST, len(items)),
        lambda count: {
            **heading,
            "statements": [_listed(each) for each in items[:count]],
            "not_shown": len(items) - count,
            "total": found["total"],
            "tie_out": found["tie_out"],
        },
    )


def _listed(item: dict[str, Any]) -> dict[str, Any]:
    recipient = item["recipient"]
    shown = {"value": recipient["value"], "name": recipient["name"], "number": item["number"]}
    shown |= {name: item[name] for name in ("amount", "rounded", "previous", "delta", "verdict")}
    return present(shown)


def _statement(found: dict[str, Any], count: int) -> dict[str, Any]:
    lines = found["lines"]
    return {
        **{name: found[name] for name in _OF_STATEMENT if found[name] is not None},
        "previous": found["previous"],
        "lines": lines[:count],
        "lines_not_shown": max(0, len(lines) - count),
        **{name: _top(found[name], count) for name in _RANKINGS if found[name] is not None},
        "tie_out": found["tie_out"],
    }


def _top(ranking: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the largest of a ranking; the others have a sum only where the API has left them out, too."""
    items = ranking["items"]
    return {"largest": items[:count], "not_shown": max(0, len(items) - count), "other": ranking["other"]}


def _month(period: str) -> CalendarPeriod:
    month = month_of(parse_month(period))
    return CalendarPeriod(month.start, month.end - ONE_DAY)


async def list_findings(api: ApiClient, arguments: FindingsArguments) -> dict[str, Any]:
    """Return open findings, the most expensive first."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    found = (await api.get(tenant.name, "findings", {"kind": arguments.kind, "page_size": arguments.limit})).body
    reconciled = None
    if tenant.data_through is not None:
        reconciled = await reconciled_in(api, tenant.name, tenant.period(PeriodArguments(tenant=tenant.name)))
    items = found["items"]
    return within_limit(
        len(items),
        lambda count: {
            **tenant.heading(reconciled, api.link(tenant.name, "findings")),
            "rows": [_row(each) for each in items[:count]],
            "total": found["total"],
            "not_shown": found["total"] - min(count, len(items)),
        },
    )


def _row(item: dict[str, Any]) -> dict[str, Any]:
    return {"subject": present(item["subject"])} | {name: item[name] for name in _SHOWN if item[name] is not None}


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
