"""Queries that explain and check numbers: explanations, earlier instants, differences, and reconciliation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial
from itertools import cycle, islice
from typing import Any, Final

from benchmarks.measure import Figure, percentile
from benchmarks.questions import Asking, uncached
from benchmarks.serving import target
from benchmarks.tenants import restated_at
from chargeback.model.days import ONE_DAY, render_instant

_DAYS: Final = 30
_EXPLAINED: Final = 60


def trust(asking: Asking) -> Iterator[Figure]:
    """Measure explanations, an earlier instant, differences, and the comparison with the bill."""
    yield _explain(asking)
    shape, client = asking.shape, asking.client
    as_of = render_instant(restated_at(shape) - ONE_DAY)
    first, last = asking.dates(None)
    all_days = {"start_date": str(first), "end_date": str(last), "group_by": "identity_id"}
    month = {"start_date": str(last - timedelta(days=_DAYS - 1)), "end_date": str(last)}
    ends = (last - timedelta(days=number) for number in range(1, _DAYS))
    changes = asking.path("/chargebacks/changes")

    def _changes_of_other_days() -> None:
        asking.client.answer("GET", target(changes, **_two_months(next(ends)), group_by="identity_id"))

    def _sums_of(days: int | None) -> Callable[[], Any]:
        since, until = asking.dates(days)
        return lambda: asking.floors.aggregate("identity_id", "day", "UTC", since, until)

    for name, rest, parameters, floor in (
        ("aggregate as of an earlier instant", "/chargebacks/aggregate", {**all_days, "as_of": as_of}, _sums_of(None)),
        ("difference of two instants", "/chargebacks/diff", {**all_days, "from_as_of": as_of}, _sums_of(None)),
        ("reconciliation of 30 days", "/reconciliation", month, _sums_of(_DAYS)),
    ):
        yield asking.figure("trust", name, uncached(client, asking.path(rest), **parameters), floor)
    floor = partial(asking.floors.changes, _DAYS, last)
    yield asking.figure("trust", "changes of 30 days, first time", _changes_of_other_days, floor)
    again = uncached(client, changes, **_two_months(last), group_by="identity_id")
    yield asking.figure("trust", "changes of 30 days", again, floor)


def _two_months(last: date) -> dict[str, str]:
    """Return the parameters that compare the thirty days until ``last`` with the thirty before."""
    days = {"from_start": 2 * _DAYS - 1, "from_end": _DAYS, "to_start": _DAYS - 1, "to_end": 0}
    return {name: str(last - timedelta(days=number)) for name, number in days.items()}


def _explain(asking: Asking) -> Figure:
    """Measure explanations of amounts spread over the days; the floor reads the evidence of as many lines."""
    taken, beneath = [], []
    for row in islice(cycle(_rows(asking)), _EXPLAINED):
        explain = partial(asking.client.answer, "GET", target(asking.path("/chargebacks/explain"), **row))
        evidence = partial(asking.floors.evidence, date.fromisoformat(row["date"]), row["line_id"])
        taken.append(_milliseconds(explain))
        beneath.append(_milliseconds(evidence))
    value, floor = (percentile(each, 0.95) for each in (taken, beneath))
    note = f"the median is {percentile(taken, 0.5):.1f} ms"
    return Figure(f"trust, {asking.shape.name}", "explain, p95", value, "ms", floor, note=note)


def _rows(asking: Asking) -> list[dict[str, str]]:
    """Return rows of different days: date, line and identity."""
    found = []
    for day in asking.shape.dates()[-_EXPLAINED:]:
        dates = {"start_date": str(day), "end_date": str(day), "page_size": 1}
        counted = asking.client.get(asking.path("/chargebacks"), **dates)["total"]
        (row,) = asking.client.get(asking.path("/chargebacks"), **dates, page=counted // 2)["items"]
        found.append({"date": str(day), "line_id": row["metadata"]["line_id"], "identity_id": row["identity_id"]})
    return found


def _milliseconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000
