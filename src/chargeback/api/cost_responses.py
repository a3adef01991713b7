"""Reports of costs as the API shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from chargeback.model.days import render_instant
from chargeback.model.money import difference, render, total
from chargeback.reports.costs import CostReport, CostRequest
from chargeback.reports.forecast import Forecast
from chargeback.reports.names import NAMED_COLUMNS, NamesByKind
from chargeback.reports.reconciliation import ReconciledDay
from chargeback.reports.topic_costs import TopicCost, TopicCosts
from chargeback.store.control.inventory_lists import RESOURCES
from chargeback.store.control.names import Named
from chargeback.store.queries.costs import Breakdown, Item, Totals

#: The columns of the breakdowns as a table.
BREAKDOWN_COLUMNS: Final = ("by", "value", "name", "kind", "others", "amount", "previous", "usage", "rows")

_ZERO = Decimal(0)


def cost_response(report: CostReport, request: CostRequest) -> dict[str, Any]:
    """Return the body of ``GET …/costs``, but for what is the tenant's own."""
    costs, compared = report.costs, request.compared
    series = [costs.series.get(label) for label in report.times]
    return {
        "start_date": request.period.start,
        "end_date": request.period.end,
        "timezone": request.zone.key,
        "compared_with": None
        if compared is None
        else {
            "start_date": compared.start,
            "end_date": compared.end,
            "days_with_costs": report.compared_days_with_costs,
        },
        "days_with_costs": report.days_with_costs,
        "times": report.times,
        "amounts": [render(total(amounts or ())) for amounts in series],
        "previous_amounts": [None if amount is None else render(amount) for amount in report.previous],
        "total": _total(costs.totals, has_previous=compared is not None),
        "breakdowns": [
            _breakdown(each, report.names, request, series if each.by == request.series else ())
            for each in costs.breakdowns
        ],
        "issues": [
            {
                "reason": issue.reason,
                "unallocated": issue.unallocated,
                "amount": render(issue.amount),
                "rows": issue.rows,
                "resources": issue.resources,
            }
            for issue in costs.issues
        ]
        if "issues" in request.parts
        else None,
        "days": None if report.days is None else [day_response(day) for day in report.days],
        "forecast": _forecast(report.forecast),
        "topics": None
        if report.topics is None
        else topics_response(report.topics, report.names[RESOURCES], has_previous=compared is not None)
        | {"ignored_filters": report.ignored_filters},
    }


def day_response(day: ReconciledDay) -> dict[str, Any]:
    """Return one day's reconciliation."""
    return {
        "date": day.day,
        "state": day.state,
        "billed": render(day.billed),
        "charged": render(day.charged),
        "difference": render(day.difference),
        "topics": day.topics,
        "error": day.error,
    }


def topics_response(topics: TopicCosts, clusters: Mapping[str, Named], *, has_previous: bool) -> dict[str, Any]:
    """Return the topics with the largest costs and the rest of them."""
    return {
        "total": render(topics.total),
        "items": [_topic(item, clusters, has_previous=has_previous) for item in topics.items],
        "other": None
        if topics.other is None
        else {
            "count": topics.other[0],
            "amount": render(topics.other[1]),
            "previous": render(topics.other[2]) if has_previous else None,
        },
    }


def _topic(item: TopicCost, clusters: Mapping[str, Named], *, has_previous: bool) -> dict[str, Any]:
    cluster = clusters.get(item.cluster_id)
    return {
        "cluster_resource_id": item.cluster_id,
        "cluster_name": None if cluster is None else cluster.name,
        "topic_name": item.topic,
        "amount": render(item.amount),
        "previous": render(item.previous) if has_previous else None,
    }


def _total(totals: Totals, *, has_previous: bool) -> dict[str, Any]:
    return {
        "amount": render(totals.amount),
        "usage": render(totals.usage),
        "shared": render(difference(totals.amount, totals.usage)),
        "rows": totals.rows,
        "unallocated": render(totals.unallocated),
        "previous": render(totals.previous) if has_previous else None,
        "previous_unallocated": render(totals.previous_unallocated) if has_previous else None,
    }


def _breakdown(
    breakdown: Breakdown, names: NamesByKind, request: CostRequest, series: Sequence[Sequence[Decimal] | None]
) -> dict[str, Any]:
    kind = NAMED_COLUMNS.get(breakdown.by)
    known: Mapping[str, Named] = {} if kind is None else names[kind]
    has_previous = request.compared is not None

    def over_time(slot: int) -> list[str]:
        return [render(amounts[slot] if amounts else _ZERO) for amounts in series]

    return {
        "by": breakdown.by,
        "items": [
            _item(item, known, has_previous=has_previous) | {"amounts": over_time(slot)}
            for slot, item in enumerate(breakdown.items)
        ],
        "other": None
        if breakdown.other is None
        else {
            "count": breakdown.other[0],
            "amount": render(breakdown.other[1]),
            "previous": render(breakdown.other[2]) if has_previous else None,
            "amounts": over_time(-1),
        },
        "movers": [
            {
                "value": item.value,
                "name": _named(item, known)[0],
                "amount": render(item.amount),
                "previous": render(item.previous),
            }
            for item in breakdown.movers
        ]
        if has_previous
        else [],
    }


def breakdown_rows(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of all breakdowns of the body of ``GET …/costs`` with :data:`BREAKDOWN_COLUMNS`, each followed by
    the others of its breakdown together, of which ``others`` is the count."""
    for breakdown in body["breakdowns"]:
        others = [] if breakdown["other"] is None else [breakdown["other"]]
        for row in (*breakdown["items"], *others):
            yield dict.fromkeys(BREAKDOWN_COLUMNS) | {"by": breakdown["by"], "others": row.get("count")} | row


def _item(item: Item, known: Mapping[str, Named], *, has_previous: bool) -> dict[str, Any]:
    name, kind, deleted_at = _named(item, known)
    return {
        "value": item.value,
        "name": name,
        "kind": kind,
        "deleted_at": deleted_at,
        "amount": render(item.amount),
        "previous": render(item.previous) if has_previous else None,
        "usage": render(item.usage),
        "rows": item.rows,
    }


def _named(item: Item, known: Mapping[str, Named]) -> tuple[str | None, str | None, str | None]:
    entity = None if item.value is None else known.get(item.value)
    if entity is None:
        return None, None, None
    return entity.name, entity.type, None if entity.deleted_at is None else render_instant(entity.deleted_at)


def _forecast(forecast: Forecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    return {
        "until": forecast.until,
        "actual_to": forecast.actual_to,
        "actual": render(forecast.actual),
        "expected": render(forecast.expected),
        "low": render(forecast.low),
        "high": render(forecast.high),
        "method": forecast.method,
    }
