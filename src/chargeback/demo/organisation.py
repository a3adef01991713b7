"""The generated organisation: the same for the same specification, in every process and on every machine.

Everything is derived from (seed, size, first day), where the first day is a little before ``today − days``. A later
``today`` only adds days: ``spec.later(1)`` is the same organisation on the next day.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from chargeback.demo.bills import cost
from chargeback.demo.infrastructure import add_infrastructure
from chargeback.demo.inventory import DemoInventory, ProviderObject
from chargeback.demo.lines import EXACT, lines_of_day
from chargeback.demo.membership import add_membership
from chargeback.demo.metrics import METRICS, Series, SeriesIndex, openmetrics_lines
from chargeback.demo.people import GenerationPlan, add_people
from chargeback.demo.randomness import IdMaker, token
from chargeback.demo.shapes import Json
from chargeback.demo.sizes import SIZES, Size
from chargeback.demo.traffic import MINUTES, Burst, Levels, Traffic

#: Bills and metrics begin this many days before ``today − days``.
MARGIN_DAYS = 3
#: The provider shows a day's costs up to 72 hours later: the last day with costs is ``today − 2``.
COST_DELAY_DAYS = 2
#: The offset from the first day of a day without metrics: nothing was scraped.
DAY_WITHOUT_METRICS = 5
#: How long before a consumer reads far too much another one is tested under load.
_BEFORE_THE_BURST = timedelta(days=14)
_KEPT_DAYS = 24
_T = TypeVar("_T", bound=ProviderObject)


@dataclass(frozen=True)
class DemoSpec:
    """What to generate. ``today`` is the present UTC day of the organisation; from the day ``burst`` on, if given, a
    consumer reads far too much, and two weeks before that another one does, on purpose."""

    today: date
    seed: int = 7
    size: Size = "usual"
    days: int = 60
    burst: date | None = None

    @property
    def first_day(self) -> date:
        """The first day with bills and metrics."""
        return self.today - timedelta(days=self.days + MARGIN_DAYS)

    @property
    def last_cost_day(self) -> date:
        """The last day whose costs are known."""
        return self.today - timedelta(days=COST_DELAY_DAYS)

    @property
    def day_without_metrics(self) -> date:
        """The day on which nothing was scraped."""
        return self.first_day + timedelta(days=DAY_WITHOUT_METRICS)

    def later(self, days: int = 1) -> DemoSpec:
        """Return the same organisation, ``days`` days later."""
        return replace(self, days=self.days + days, today=self.today + timedelta(days=days))


class Organisation:
    """A generated organisation and its exact totals. Thread-safe for reading; generates days on request."""

    def __init__(self, spec: DemoSpec, inventory: DemoInventory) -> None:
        self.spec = spec
        self.inventory = inventory
        burst = None if spec.burst is None else Burst.of(inventory, spec.burst)
        self.load_test = None
        if burst is not None:
            self.load_test = Burst.of(inventory, burst.first_day - _BEFORE_THE_BURST, other_than=burst)
        bursts = tuple(each for each in (self.load_test, burst) if each is not None)
        self.traffic = Traffic(spec.seed, spec.first_day, inventory, bursts)
        self._series: OrderedDict[tuple[str, date], list[Series]] = OrderedDict()

    @classmethod
    def generate(cls, spec: DemoSpec) -> Organisation:
        """Generate the organisation of ``spec``.

        Raises:
            ValueError: when ``days`` is not positive.
        """
        if spec.days < 1:
            raise ValueError(f"days must be at least 1, not {spec.days}")
        names = (spec.seed, spec.size, spec.first_day)
        plan = GenerationPlan(spec.seed, spec.size, SIZES[spec.size], spec.first_day, IdMaker(*names))
        organization_id = str(uuid.UUID(token(32, "organization", *names), version=4))
        inventory = DemoInventory(organization_id, "Acme Streams")
        add_people(plan, inventory)
        add_infrastructure(plan, inventory)
        add_membership(plan, inventory)
        return cls(spec, inventory)

    @property
    def created(self) -> datetime:
        """When the organisation was created: 900 days before its first bill."""
        midnight = datetime.combine(self.spec.first_day, datetime.min.time(), UTC)
        return midnight - timedelta(days=900)

    def listed(self, items: Iterable[_T]) -> list[_T]:
        """Return the ``items`` that the provider lists today."""
        return [item for item in items if item.listed_on(self.spec.today)]

    def cost_rows(self, day: date) -> list[Json]:
        """Return the cost objects served for one day, money as Decimal; empty outside the days with known costs.

        Tiers of one resource share one id, as do other lines of equal type: ids are not unique.
        """
        if not self.spec.first_day <= day <= self.spec.last_cost_day:
            return []
        rows = []
        for index, line in enumerate(lines_of_day(self.traffic, day)):
            place = line.resource.id if line.resource is not None else str(index)
            twin = index if line.line_type == "KAFKA_REST_PRODUCE" else ""
            row_id = "cost-" + token(12, self.spec.seed, day, line.line_type, place, twin)
            rows.append(cost(line, day, row_id))
        return rows

    def cost_total(self, first: date, end: date) -> Decimal:
        """Return the exact sum of ``amount`` over the days ``[first, end)``."""
        total, day = Decimal(0), first
        while day < end:
            for row in self.cost_rows(day):
                total = EXACT.add(total, row["amount"])
            day += timedelta(days=1)
        return total

    def series(self, metric: str, day: date) -> list[Series]:
        """Return the series of one day; none before the first day, from today on, and on the day without metrics."""
        if not self.spec.first_day <= day < self.spec.today or day == self.spec.day_without_metrics:
            return []
        key = (metric, day)
        found = self._series.get(key)
        if found is None:
            found = self._series_index.series(metric, day)
            self._series[key] = found
            while len(self._series) > _KEPT_DAYS:
                self._series.popitem(last=False)
        return found

    def usage(self, metric: str, day: date) -> list[tuple[dict[str, str], int | Decimal]]:
        """Return the value of a day's samples, by labels: the exact sum of minute deltas, the mean of a gauge."""
        scale = METRICS[metric].scale
        found: list[tuple[dict[str, str], int | Decimal]] = []
        for series in self.series(metric, day):
            value: int | Decimal = series.sum(0, MINUTES)
            if isinstance(series, Levels):
                value = EXACT.divide(Decimal(value), Decimal(MINUTES))
            elif scale != 1:
                value = EXACT.divide(Decimal(value), Decimal(scale))
            found.append((dict(series.labels), value))
        return found

    def openmetrics(self, days: Iterable[date], metrics: Iterable[str] = tuple(METRICS)) -> Iterator[str]:
        """Yield OpenMetrics lines with every minute sample of ``days``, for ``promtool tsdb create-blocks-from``."""
        chosen = sorted(days)
        for metric in metrics:
            yield from openmetrics_lines(METRICS[metric], ((day, self.series(metric, day)) for day in chosen))
        yield "# EOF\n"

    @cached_property
    def _series_index(self) -> SeriesIndex:
        return SeriesIndex(self.traffic)
