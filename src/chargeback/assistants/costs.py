"""Costs by columns and over time, and what changed between two periods."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, dates, reconciled_in, sums, within_limit
from chargeback.assistants.api_client import ApiClient, ToolError
from chargeback.assistants.arguments import CompareArguments, CostsArguments
from chargeback.model.money import difference, render, total
from chargeback.reports.periods import Period

_DATASETS: Final = {"costs": "chargebacks", "topics": "topic-attributions"}
_MOST_TIMES: Final = 62
#: Pages show what is grouped by one column over time.
_OF_TOPICS: Final = "topics"


async def query_costs(api: ApiClient, arguments: CostsArguments) -> dict[str, Any]:
    """Return the costs of a period by up to three columns, or by one column over time."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    period = tenant.period(arguments)
    asked = {**dates(period), **arguments.filters, "currency": arguments.currency}
    if arguments.time_bucket is not None:
        return await _over_time(api, tenant, period, arguments)
    is_topics = arguments.dataset == _OF_TOPICS
    named = {} if is_topics else {"names": True}
    found, reconciled = await sums(
        api, tenant.name, {"group_by": arguments.group_by, **named, **asked}, _DATASETS[arguments.dataset]
    )
    buckets = sorted(found["buckets"], key=lambda each: Decimal(each["total_amount"]), reverse=True)
    names = found.get("names") or {}
    link = api.link(tenant.name, "topics" if is_topics else "costs", {**asked, "by": _first(arguments.group_by)})

    def _make(count: int) -> dict[str, Any]:
        rows, rest = buckets[:count], max(0, len(buckets) - count)
        shown = total(Decimal(each["total_amount"]) for each in rows)
        other = {"count": rest, "amount": render(difference(Decimal(found["total_amount"]), shown))}
        return {
            **tenant.heading(reconciled, link),
            "currency": found["currency"],
            **dates(period),
            "group_by": arguments.group_by,
            "rows": [{**_named(each["dimensions"], names), "amount": each["total_amount"]} for each in rows],
            "other": other if rest else None,
            "total": {"amount": found["total_amount"], "rows": found["total_rows"]},
        }

    return within_limit(min(arguments.limit, len(buckets)), _make)


async def _over_time(api: ApiClient, tenant: KnownTenant, period: Period, arguments: CostsArguments) -> dict[str, Any]:
    """Return the costs of the largest values of one column, by units of time.

    Raises:
        ToolError: there are too many units of time.
    """
    asked = {**dates(period), **arguments.filters, "currency": arguments.currency}
    by = arguments.group_by[0]

    async def _costs(top: int) -> dict[str, Any]:
        parameters = {**asked, "by": by, "top": top, "time_bucket": arguments.time_bucket, "compare": "none"}
        body: dict[str, Any] = (await api.get(tenant.name, "costs", parameters)).body
        return body

    found = await _costs(arguments.limit)
    times = found["times"]
    if len(times) > _MOST_TIMES:
        raise ToolError(f"That makes {len(times)} units of time, more than {_MOST_TIMES}: choose week or month.")
    reconciled = await reconciled_in(api, tenant.name, period)
    link = api.link(tenant.name, "costs", {**asked, "by": by})

    def _made(found: dict[str, Any]) -> dict[str, Any]:
        breakdown = found["breakdowns"][0]
        other = breakdown["other"]
        return {
            **tenant.heading(reconciled, link),
            "currency": found["currency"],
            **dates(period),
            "group_by": [by],
            "times": times,
            "rows": [
                {by: each["value"], **_present(name=each["name"]), "amount": each["amount"], "amounts": each["amounts"]}
                for each in breakdown["items"]
            ],
            "other": None if other is None else {name: other[name] for name in ("count", "amount", "amounts")},
            "total": {"amount": found["total"]["amount"], "rows": found["total"]["rows"], "amounts": found["amounts"]},
        }

    most = within_limit(len(found["breakdowns"][0]["items"]), lambda count: _first_rows(_made(found), count))
    kept = len(most["rows"])
    # Fewer values are asked for again, so that the others hold what is left out.
    return most if kept == len(found["breakdowns"][0]["items"]) else _made(await _costs(max(1, kept)))


def _first_rows(answer: dict[str, Any], count: int) -> dict[str, Any]:
    return answer | {"rows": answer["rows"][:count]}


async def compare_periods(api: ApiClient, arguments: CompareArguments) -> dict[str, Any]:
    """Return what changed between two periods, the largest changes first, with the effects that explain them."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    period = tenant.period(arguments)
    asked = {**dates(period), "compare": arguments.compare, **arguments.filters}
    parameters = {**asked, "group_by": arguments.group_by, "limit": arguments.limit}
    found: dict[str, Any] = (await api.get(tenant.name, "chargebacks/changes", parameters)).body
    reconciled = await reconciled_in(api, tenant.name, period)
    items = found["items"]
    link = api.link(tenant.name, "costs", {**asked, "by": _first(arguments.group_by)})

    def _make(count: int) -> dict[str, Any]:
        rows = [
            {**_named(each["dimensions"], found["names"]), **_change(each), "sentence": each["sentence"]}
            for each in items[:count]
        ]
        left = [each["delta"] for each in items[count:]] + ([found["other"]["delta"]] if found["other"] else [])
        more = len(items) - count + (found["other"]["count"] if found["other"] else 0)
        other = {"count": more, "delta": render(total(map(Decimal, left)))} if more else None
        return {
            **tenant.heading(reconciled, link),
            **dates(period),
            "days_with_costs": found["days_with_costs"],
            "compared_with": found["compared_with"],
            "rows": rows,
            "other": other,
            "total": {**_change(found["totals"]), "sentence": found["totals"]["sentence"]},
        }

    return within_limit(len(items), _make)


def _change(item: dict[str, Any]) -> dict[str, Any]:
    effects = {name: amount for name, amount in item["effects"].items() if Decimal(amount)}
    return {"before": item["before"], "after": item["after"], "delta": item["delta"], "effects": effects}


def _named(dimensions: dict[str, Any], names: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return the values of the columns, each id followed by its display name, if it has one."""
    row: dict[str, Any] = {}
    for column, value in dimensions.items():
        row[column] = value
        row |= _present(**{f"{column.removesuffix('_id')}_name": names.get(column, {}).get(value)})
    return row


def _present(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _first(columns: Sequence[str]) -> str | None:
    return next(iter(columns), None)
