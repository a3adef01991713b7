"""Usage of one UTC day, from the metrics source: one query per measure, for all resources together.

The provider's exporter turns its counters into gauges that hold the increase of one minute, stamped with that minute:
they are summed with ``sum_over_time``; ``increase`` and ``rate`` would be wrong (docs: Metrics API, export).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.ecosystems.confluent_cloud import objects
from chargeback.ecosystems.confluent_cloud.settings import LabelNames, MetricNames
from chargeback.ecosystems.confluent_cloud.topics import BYTES_IN, BYTES_OUT, RETAINED_BYTES, TopicSettings
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.inventory import UNALLOCATED, Inventory, alive_during
from chargeback.model.usage import QUANTITY_PLACES, measurements
from chargeback.sources.windows import Group, GroupTotals, Template, WindowSums

_FLINK = "flink_cfu_minutes"
#: The same measure as stored: per statement. The inventory has the statements' owners when a day is calculated.
FLINK_KEPT = "flink_cfu_minutes_by_statement"
#: How long after its end a statement may still be measured.
_LATE = timedelta(hours=1)
_STEP = Decimal(1).scaleb(-QUANTITY_PLACES)
_EXACT = Context(prec=100)
#: The provider's exporter has one sample per minute.
_MINUTES = Decimal(ONE_DAY // timedelta(minutes=1))

Totals = dict[Group, Decimal]


class UsageQueries:
    """Queries the metrics source, with the tenant's names of metrics and labels."""

    def __init__(self, sums: WindowSums, metrics: MetricNames, labels: LabelNames) -> None:
        self._sums = sums
        self._metrics = metrics
        self._labels = labels

    def day(self, day: date, measures: Iterable[str], inventory: Inventory) -> MeasuredUsage:
        """Return each of ``measures`` over the day: bytes per cluster and principal, CFU minutes per pool and
        statement.

        Only resources of the inventory count, so that other organizations may share the metrics source.
        """
        known = {resource.resource_id for resource in inventory.resources}
        totals: dict[str, Totals] = {}
        dropped = 0
        for measure in sorted(measures):
            of_measure, dropped_now = self._measure(measure, day)
            totals[FLINK_KEPT if measure == _FLINK else measure] = {
                group: value for group, value in of_measure.items() if group[0] in known
            }
            dropped += dropped_now
        return MeasuredUsage(usage_table(day, totals), dropped)

    def _measure(self, measure: str, day: date) -> tuple[Totals, int]:
        metric = getattr(self._metrics, measure)
        labels = self._labels
        if measure == _FLINK:
            by = (labels.compute_pool_id, labels.flink_statement_name)
            measured = self._total(measure, metric, by, day)
            return dict(measured.values), measured.dropped
        measured = self._total(measure, metric, (labels.kafka_id, labels.principal_id), day)
        return _added(measured.values, lambda group: objects.principal_id(group[1]) or UNALLOCATED), measured.dropped

    def topics(self, day: date, settings: TopicSettings) -> MeasuredUsage:
        """Return bytes in and out per cluster and topic, and the retained bytes averaged over the day.

        The average is over all minutes of the day: a topic that existed for an hour has a 24th of the weight of one
        that was as large all day, as it has on the bill. So all values are sums over the day, and partial data never
        gives more than the whole.
        """
        names, by = settings.metric_name_overrides, (self._labels.kafka_id, self._labels.topic)
        totals: dict[str, Totals] = {}
        dropped = 0
        for measure, metric in ((BYTES_IN, names.topic_bytes_in), (BYTES_OUT, names.topic_bytes_out)):
            measured = self._total(measure, metric, by, day)
            totals[measure] = dict(measured.values)
            dropped += measured.dropped
        retained = self._total(RETAINED_BYTES, names.topic_retained_bytes, by, day)
        totals[RETAINED_BYTES] = {
            group: (value / _MINUTES).quantize(_STEP, context=_EXACT) for group, value in retained.values.items()
        }
        names_seen = {group[1] for of_measure in totals.values() for group in of_measure}
        excluded = {name for name in names_seen if settings.excludes(name)}
        kept = {
            measure: {group: value for group, value in of_measure.items() if group[1] not in excluded}
            for measure, of_measure in totals.items()
        }
        return MeasuredUsage(usage_table(day, kept), dropped + retained.dropped)

    def _total(self, name: str, metric: str, by: Sequence[str], day: date) -> GroupTotals:
        return self._sums.sums(name, total_over(metric, by), by, DayRange.of_day(day).window)


def select(metric: str, labels: Sequence[str]) -> str:
    """Return the selector of the series that have all of ``labels``; ``metric`` may have matchers.

    >>> select('bytes{job="x"}', ("kafka_id",))
    'bytes{job="x",kafka_id!=""}'
    """
    name, _, own = metric.rstrip("}").partition("{")
    matchers = [own.strip().rstrip(",")] if own.strip() else []
    matchers += [f'{label}!=""' for label in labels]
    return f"{name}{{{','.join(matchers)}}}"


def total_over(metric: str, by: Sequence[str]) -> Template:
    """Return the query for the sum of a metric over a window, per values of the labels ``by``."""
    selector = select(metric, by)
    return lambda window: f"sum by ({', '.join(by)}) (sum_over_time({selector}[{window}]))"


def statement_owners(inventory: Inventory, day: date) -> Callable[[Group], str]:
    """Return (compute pool, statement name) → the identity that pays, for one day.

    Names are reused: all statements that had the name in the pool on that day must have the same owner. Otherwise the
    owner is unknown: ``UNALLOCATED``. If there were none on that day, those that ended just before count: the last
    minutes of a statement that ended at midnight may be measured after it.
    """
    start, end = start_of_day(day), start_of_day(day + ONE_DAY)
    owners: dict[Group, set[str]] = {}
    late: dict[Group, set[str]] = {}
    for each in inventory.resources:
        if each.resource_type != objects.FLINK_STATEMENT:
            continue
        group = (each.parent_id or "", each.display_name or each.resource_id)
        if alive_during(each.created_at, each.deleted_at, start, end):
            owners.setdefault(group, set()).add(each.owner_id or UNALLOCATED)
        elif alive_during(each.created_at, each.deleted_at, start - _LATE, start):
            late.setdefault(group, set()).add(each.owner_id or UNALLOCATED)

    def owner(group: Group) -> str:
        found = owners.get(group) or late.get(group, set())
        return next(iter(found)) if len(found) == 1 else UNALLOCATED

    return owner


def usage_table(day: date, totals: Mapping[str, Totals]) -> pa.Table:
    """Return measure → (resource, subject) → value as a table of schema :data:`USAGE`, in that order."""
    return measurements(
        (day, measure, resource, subject, value)
        for measure in sorted(totals)
        for (resource, subject), value in sorted(totals[measure].items())
    )


def with_owners(day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
    """Return stored usage with the statements' owners that the inventory has now; without an owner, it is
    ``UNALLOCATED``.

    Evidence of an earlier version has owners already. If a pool has both kinds, the statements count, unless their sum
    is smaller.
    """
    of_statements = pc.equal(usage["measure"], FLINK_KEPT)
    kept: Totals = _totals(usage.filter(of_statements))
    if not kept:
        return usage
    formerly = _totals(usage.filter(pc.equal(usage["measure"], _FLINK)))
    owned = _added(kept, statement_owners(inventory, day))
    for pool in {group[0] for group in formerly}:
        now, before = ({g: v for g, v in totals.items() if g[0] == pool} for totals in (owned, formerly))
        if sum(now.values()) < sum(before.values()):
            owned = {group: value for group, value in owned.items() if group[0] != pool} | before
    others = usage.filter(pc.invert(pc.is_in(usage["measure"], value_set=pa.array([_FLINK, FLINK_KEPT]))))
    return pa.concat_tables([others, usage_table(day, {_FLINK: owned})])


def _totals(usage: pa.Table) -> Totals:
    columns = (usage[name].to_pylist() for name in ("resource_id", "subject", "value"))
    return {(resource, subject): value for resource, subject, value in zip(*columns, strict=True)}


def _added(values: Mapping[Group, Decimal], subject: Callable[[Group], str]) -> Totals:
    """Return values per (resource, subject), added up per subject."""
    totals: Totals = {}
    for group, value in values.items():
        key = (group[0], subject(group))
        totals[key] = totals.get(key, Decimal(0)) + value
    return totals
