"""Typical queries over HTTP, each compared with the same query sent to DuckDB directly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import cycle
from typing import Any, Final

from benchmarks.floors import Floors
from benchmarks.measure import Figure, milliseconds
from benchmarks.reference.star import Star
from benchmarks.serving import Client, target
from benchmarks.shapes import Shape
from benchmarks.tenants import Generated

DST_ZONE: Final = "America/Denver"
_SPANS: Final = {"all": None, "30 days": 30, "1 day": 1}


@dataclass(frozen=True)
class Asking:
    """A client of the service, one of its tenants, and its floor and reference."""

    client: Client
    tenant: Generated
    floors: Floors
    star: Star | None
    repeats: int

    @property
    def shape(self) -> Shape:
        """Return the shape of the tenant."""
        return self.tenant.shape

    def path(self, rest: str) -> str:
        """Return a path of the tenant."""
        return f"/api/v1/tenants/{self.shape.name}{rest}"

    def dates(self, days: int | None) -> tuple[date, date]:
        """Return the first and last date of the last ``days`` days, or of all days."""
        first = self.shape.dates()[0]
        last = self.shape.last_day
        return (first if days is None else last - timedelta(days=days - 1)), last

    def figure(
        self,
        group: str,
        name: str,
        ask: Callable[[], Any],
        floor: Callable[[], Any] | None = None,
        reference: Callable[[], Any] | None = None,
    ) -> Figure:
        """Measure a query, its floor, and the reference."""
        taken = milliseconds(ask, repeats=self.repeats)
        beneath = None if floor is None else milliseconds(floor, repeats=self.repeats)
        obvious = None if reference is None else milliseconds(reference, repeats=1, seconds=0)
        return Figure(f"{group}, {self.shape.name}", name, taken, "ms", beneath, obvious)


def aggregates(asking: Asking) -> Iterator[Figure]:
    """Measure sums by column, unit of time, zone and span."""
    for span in _SPANS:
        for column in ("identity_id", "product_type", "environment_id", "tag:team"):
            yield _aggregate(asking, column, "day", "UTC", span)
        for unit in ("week", "month"):
            yield _aggregate(asking, "identity_id", unit, "UTC", span)
        for column in ("identity_id", "product_type"):
            yield _aggregate(asking, column, "day", DST_ZONE, span)


def _aggregate(asking: Asking, column: str, unit: str, zone: str, span: str) -> Figure:
    first, last = asking.dates(_SPANS[span])
    # West of Greenwich, midnight UTC is in the previous local day. So both queries select the same rows.
    earlier = timedelta(days=0 if zone == "UTC" else 1)
    parameters = {
        "group_by": column,
        "time_bucket": unit,
        "timezone": zone,
        **_range(first - earlier, last - earlier),
    }
    where = "" if zone == "UTC" else f", {zone}"
    star = asking.star
    return asking.figure(
        "aggregate",
        f"by {column} and {unit}, {span}{where}",
        uncached(asking.client, asking.path("/chargebacks/aggregate"), **parameters),
        lambda: asking.floors.aggregate(column, unit, zone, first, last),
        (lambda: star.aggregate(column, unit, first, last))
        if star and zone == "UTC" and column == "identity_id" and unit == "day"
        else None,
    )


def topics(asking: Asking) -> Iterator[Figure]:
    """Measure sums of topic rows by topic and day."""
    for span, days in _SPANS.items() if asking.shape.topics else ():
        first, last = asking.dates(days)
        yield asking.figure(
            "topic aggregate",
            f"by topic_name and day, {span}",
            uncached(
                asking.client,
                asking.path("/topic-attributions/aggregate"),
                group_by="topic_name",
                **_range(first, last),
            ),
            partial(asking.floors.topics, first, last),
        )


def lists(asking: Asking) -> Iterator[Figure]:
    """Measure pages of rows and of billing lines."""
    first, last = asking.dates(None)
    star = asking.star
    narrowings = {"": {}, ", one identity": {"identity_id": "sa-000007"}, ", one cluster": {"resource_id": "lkc-3"}}
    for narrowed, filters in narrowings.items():
        counted = asking.client.get(asking.path("/chargebacks"), page_size=1, **_range(first, last), **filters)
        pages = max(counted["total"] // 100, 1)
        for where, page in (("first", 1), ("middle", max(pages // 2, 1)), ("last", pages)):
            question = (filters, first, last, (page - 1) * 100, 100)
            yield asking.figure(
                "list",
                f"{where} page{narrowed}",
                _ask(asking, "/chargebacks", page=page, **_range(first, last), **filters),
                partial(asking.floors.page, *question),
                partial(star.page, *question) if star else None,
            )
    yield asking.figure(
        "list",
        "billing lines, first page",
        _ask(asking, "/billing", **_range(first, last)),
        lambda: asking.floors.billing(first, last, 100),
    )


def small(asking: Asking) -> Iterator[Figure]:
    """Measure requests that should return at once."""
    first, last = asking.dates(None)
    one = asking.client.get(asking.path("/chargebacks"), page_size=1, **_range(first, last))["items"][0]["dimension_id"]
    yield asking.figure(
        "small",
        "one dimension",
        _ask(asking, f"/chargebacks/{one}"),
        lambda: asking.floors.dimension(one),
    )
    yield asking.figure("small", "dates", _ask(asking, "/chargebacks/dates"))
    yield asking.figure("small", "readiness", lambda: asking.client.get("/api/v1/readiness"))
    yield asking.figure("small", "tenants", lambda: asking.client.get("/api/v1/tenants"))
    yield asking.figure("small", "health", lambda: asking.client.get("/health"))
    yield asking.figure(
        "small",
        "allocation issues",
        _ask(asking, "/chargebacks/allocation-issues", **_range(first, last)),
        lambda: asking.floors.issues(first, last),
    )
    yield asking.figure(
        "small",
        f"inventory search in {asking.shape.resources + 48:,} resources",
        _ask(asking, "/resources", search="events-0423"),
    )
    yield asking.figure("small", "inventory summary", _ask(asking, "/inventory/summary"))


def tagging(asking: Asking) -> Iterator[Figure]:
    """Measure tagging every entity of the rows, then again with another value."""
    first, last = asking.dates(None)
    body = {"tag_key": "bench", "created_by": "benchmarks", "override_existing": True}
    body |= {"start_date": first.isoformat(), "end_date": last.isoformat()}
    values = iter(range(1000))

    def _tag() -> None:
        asking.client.send("POST", asking.path("/tags/bulk-by-filter"), {**body, "display_name": str(next(values))})

    yield asking.figure("tags", "bulk by filter", _tag, lambda: asking.floors.entities(first, last))


def uncached(client: Client, path: str, **parameters: Any) -> Callable[[], Any]:
    """Return a request that differs each time by a parameter without effect, so that no response is cached."""
    sizes = cycle(range(1, 1000))
    return lambda: client.answer("GET", target(path, **parameters, page_size=next(sizes)))


def _range(first: date, last: date) -> dict[str, str]:
    return {"start_date": first.isoformat(), "end_date": last.isoformat()}


def _ask(asking: Asking, rest: str, **parameters: Any) -> Callable[[], Any]:
    """Send a query; read the response but do not parse it, because parsing is up to the client."""
    return lambda: asking.client.answer("GET", target(asking.path(rest), **parameters))
