"""What finance books for a month."""

from __future__ import annotations

from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, reconciled_in, within_limit
from chargeback.assistants.api_client import ApiClient
from chargeback.assistants.arguments import StatementArguments
from chargeback.model.currency import parse_month
from chargeback.model.days import ONE_DAY, month_of
from chargeback.reports.periods import Period

_MOST: Final = 50
_HEADING: Final = ("by", "period", "days", "calculated_days", "status", "issued_at", "scope")
_OF_STATEMENT: Final = ("number", "recipient", "amount", "rounded", "verdict")
_RANKINGS: Final = ("identities", "resources", "topics")


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
    return {name: value for name, value in shown.items() if value is not None}


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


def _month(period: str) -> Period:
    month = month_of(parse_month(period))
    return Period(month.start, month.end - ONE_DAY)
