"""Costs by columns and over time, what changed between two periods, and why an identity is charged an amount."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, dates, present, reconciled_in, sums, within_limit
from chargeback.assistants.api_client import ApiClient, ToolError
from chargeback.assistants.arguments import CompareArguments, CostsArguments, ExplainArguments
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import difference, render, total
from chargeback.reports.periods import CalendarPeriod

_DATASETS: Final = {"costs": "chargebacks", "topics": "topic-attributions"}
_MOST_TIMES: Final = 62
#: Pages show what is grouped by one column over time.
_OF_TOPICS: Final = "topics"

_MOST_CONTENDERS: Final = 10
_MOST_OTHERS: Final = 5
_MOST_ALIKE: Final = 3
_OF_ROW: Final = (
    "resource_id",
    "product_type",
    "cost_type",
    "amount",
    "allocation_method",
    "allocation_detail",
    "identity_usage",
    "total_usage",
)
_OF_LINE: Final = ("resource_name", "quantity", "unit", "unit_price", "total_cost", "description")


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


async def _over_time(
    api: ApiClient, tenant: KnownTenant, period: CalendarPeriod, arguments: CostsArguments
) -> dict[str, Any]:
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
                {
                    by: each["value"],
                    **present({"name": each["name"]}),
                    "amount": each["amount"],
                    "amounts": each["amounts"],
                }
                for each in breakdown["items"]
            ],
            "other": None if other is None else {name: other[name] for name in ("count", "amount", "amounts")},
            "total": {"amount": found["total"]["amount"], "rows": found["total"]["rows"], "amounts": found["amounts"]},
        }

    answer = _made(found)
    most = within_limit(len(answer["rows"]), lambda count: answer | {"rows": answer["rows"][:count]})
    kept = len(most["rows"])
    # Fewer values are requested again, so that the others hold what is left out.
    return most if kept == len(answer["rows"]) else _made(await _costs(max(1, kept)))


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
        row |= present({f"{column.removesuffix('_id')}_name": names.get(column, {}).get(value)})
    return row


def _first(columns: Sequence[str]) -> str | None:
    return next(iter(columns), None)


async def explain_charge(api: ApiClient, arguments: ExplainArguments) -> dict[str, Any]:
    """Explain what an identity is charged for a billing line: the one that is named, or that of its largest charge.

    Raises:
        ToolError: there is no such charge.
    """
    tenant = await KnownTenant.of(api, arguments.tenant)
    day = {"start_date": arguments.date, "end_date": arguments.date}
    whose = {"identity_id": arguments.identity_id}
    key: dict[str, Any] = {"date": arguments.date, "line_id": arguments.line_id, **whose}
    others: list[dict[str, Any]] = []
    charges = 1
    if arguments.line_id is None:
        filters = {"resource_id": arguments.resource_id, "product_type": arguments.product_type, **whose}
        order = {"sort_by": "amount", "sort_order": "desc", "page_size": _MOST_OTHERS + 1}
        found = (await api.get(tenant.name, "chargebacks", {**day, **filters, **order})).body
        if not found["items"]:
            await _check_exists(api, tenant.name, "identities", "identity_id", arguments.identity_id)
            if arguments.resource_id is not None:
                await _check_exists(api, tenant.name, "resources", "resource_id", arguments.resource_id)
            raise ToolError(
                f"{arguments.identity_id} has no such charge on {arguments.date}; data is there through "
                f"{tenant.data_through}."
            )
        largest, *rest = found["items"]
        charges = found["total"]
        key |= {name: largest["metadata"][name] for name in ("line_id", "portion")}
        others = [
            {"line_id": each["metadata"]["line_id"]}
            | {name: each[name] for name in ("resource_id", "product_type", "cost_type", "amount")}
            for each in rest
        ]
    body: dict[str, Any] = (
        await api.get(tenant.name, "chargebacks/explain", {**key, "page_size": _MOST_CONTENDERS})
    ).body
    reconciled = await reconciled_in(api, tenant.name, CalendarPeriod(arguments.date, arguments.date))
    link = api.link(tenant.name, "rows", {**day, **whose, "line_id": key["line_id"]})

    def _make(count: int) -> dict[str, Any]:
        return {
            **tenant.heading(reconciled, link),
            "date": arguments.date.isoformat(),
            "identity_id": arguments.identity_id,
            "identity_name": body["identity_name"],
            "line_id": body["line_id"],
            "sentence": body["sentence"],
            "charge": _some(body["row"], _OF_ROW),
            "visible": body["visible"],
            "why_nothing": body["why_nothing"],
            "line": _some(body["line"], _OF_LINE),
            "methods": [{name: each[name] for name in ("method", "applied", "why_not")} for each in body["methods"]],
            "evidence": _evidence(body["evidence"], count),
            "evidence_missing": body["evidence_missing"],
            "recomputed": body["recomputed"],
            "charges_on_this_day": charges,
            "next_largest_charges": others[:count],
        }

    return within_limit(_MOST_CONTENDERS, _make)


async def _check_exists(api: ApiClient, tenant: str, path: str, column: str, id_: str) -> None:
    """Check that the inventory has an id.

    Raises:
        ToolError: the caller sees no such item; the message lists those with that name.
    """
    found = (await api.get(tenant, path, {"search": id_, "page_size": _MOST_ALIKE})).body["items"]
    if id_ == UNALLOCATED or any(each[column] == id_ for each in found):
        return
    named = [f"{each[column]} ({each['display_name']})" for each in found if each["display_name"]]
    alike = f" Did you mean {' or '.join(named)}?" if named else ""
    raise ToolError(f"There is no {column} {id_!r} that you can see.{alike}")


def _some(values: dict[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    return None if values is None else {name: values[name] for name in names if values[name] is not None}


def _evidence(evidence: dict[str, Any] | None, count: int) -> dict[str, Any] | None:
    if evidence is None:
        return None
    contenders = evidence["contenders"][:count]
    return {
        "measure": evidence["measure"],
        "total": evidence["total"],
        "contenders": contenders,
        "contenders_total": evidence["contenders_total"],
    }
