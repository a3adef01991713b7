"""Usage of one UTC day, from the metrics source: one query per measure, for all resources together.

The provider's exporter turns its counters into gauges that hold the increase of one minute, stamped with that minute:
they are summed with ``sum_over_time``; ``increase`` and ``rate`` would be wrong (docs: Metrics API, export).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa

from chargeback.ecosystems.confluent_cloud import objects
from chargeback.ecosystems.confluent_cloud.settings import LabelNames, MetricNames
from chargeback.ecosystems.confluent_cloud.topics import BYTES_IN, BYTES_OUT, RETAINED_BYTES, TopicSettings
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.model.days import ONE_DAY, InstantRange, start_of_day
from chargeback.model.inventory import UNALLOCATED, Inventory, alive_during
from chargeback.model.usage import QUANTITY_PLACES, USAGE
from chargeback.sources.windows import Group, Measured, Template, WindowSums

_FLINK = "flink_cfu_minutes"
#: For how long after its end a statement may still be measured.
_LATE = timedelta(hours=1)
_STEP = Decimal(1).scaleb(-QUANTITY_PLACES)

Totals = dict[Group, Decimal]


class UsageQueries:
    """Asks the metrics source; the names of its metrics and labels are the tenant's."""

    def __init__(self, sums: WindowSums, metrics: MetricNames, labels: LabelNames) -> None:
        self._sums = sums
        self._metrics = metrics
        self._labels = labels

    def day(self, day: date, measures: Iterable[str], inventory: Inventory) -> MeasuredUsage:
        """Each of ``measures`` over the day: bytes per cluster and principal, CFU minutes per pool and owner.

        Only resources of the inventory count, so that other organizations may share the metrics source. Usage of a
        statement whose owner is unknown is ``UNALLOCATED``'s.
        """
        known = {resource.resource_id for resource in inventory.resources}
        totals: dict[str, Totals] = {}
        dropped = 0
        for measure in sorted(measures):
            of_measure, dropped_now = self._measure(measure, day, inventory)
            totals[measure] = {group: value for group, value in of_measure.items() if group[0] in known}
            dropped += dropped_now
        return MeasuredUsage(usage_table(day, totals), dropped)

    def _measure(self, measure: str, day: date, inventory: Inventory) -> tuple[Totals, int]:
        metric = getattr(self._metrics, measure)
        labels = self._labels
        if measure == _FLINK:
            by = (labels.compute_pool_id, labels.flink_statement_name)
            measured = self._total(measure, metric, by, day)
            return _added(measured, statement_owners(inventory, day)), measured.dropped
        measured = self._total(measure, metric, (labels.kafka_id, labels.principal_id), day)
        return _added(measured, lambda group: objects.principal_id(group[1]) or UNALLOCATED), measured.dropped

    def topics(self, day: date, settings: TopicSettings) -> MeasuredUsage:
        """Bytes in and out per cluster and topic, and the retained bytes averaged over the day.

        The average is over all samples of the topic's cluster: a topic that lived for an hour weighs a 24th of one
        that was as large all day, as it does on the bill.
        """
        names, by = settings.metric_name_overrides, (self._labels.kafka_id, self._labels.topic)
        totals: dict[str, Totals] = {}
        dropped = 0
        for measure, metric in ((BYTES_IN, names.topic_bytes_in), (BYTES_OUT, names.topic_bytes_out)):
            measured = self._total(measure, metric, by, day)
            totals[measure] = dict(measured.values)
            dropped += measured.dropped
        retained = self._total(RETAINED_BYTES, names.topic_retained_bytes, by, day)
        totals[RETAINED_BYTES] = self._averaged(retained, names.topic_retained_bytes, day)
        names_seen = {group[1] for of_measure in totals.values() for group in of_measure}
        excluded = {name for name in names_seen if settings.excludes(name)}
        kept = {
            measure: {group: value for group, value in of_measure.items() if group[1] not in excluded}
            for measure, of_measure in totals.items()
        }
        return MeasuredUsage(usage_table(day, kept), dropped + retained.dropped)

    def _averaged(self, retained: Measured, metric: str, day: date) -> Totals:
        """Sums of samples, divided by how many samples the best-covered topic of the cluster has."""
        cluster, topic = self._labels.kafka_id, self._labels.topic
        selector = select(metric, (cluster, topic))

        def template(window: str) -> str:
            return f"max by ({cluster}, {topic}) (count_over_time({selector}[{window}]))"

        samples: dict[str, Decimal] = {}
        counted = self._sums.sums(f"{RETAINED_BYTES}_samples", template, (cluster, topic), _window(day))
        for (cluster_id, _), count in counted.values.items():
            samples[cluster_id] = max(samples.get(cluster_id, Decimal(1)), count)
        return {
            group: (value / samples.get(group[0], Decimal(1))).quantize(_STEP)
            for group, value in retained.values.items()
        }

    def _total(self, name: str, metric: str, by: Sequence[str], day: date) -> Measured:
        return self._sums.sums(name, total_over(metric, by), by, _window(day))


def select(metric: str, labels: Sequence[str]) -> str:
    """The selector of the series that have all of ``labels``; ``metric`` may bring matchers of its own.

    >>> select('bytes{job="x"}', ("kafka_id",))
    'bytes{job="x",kafka_id!=""}'
    """
    name, _, own = metric.rstrip("}").partition("{")
    matchers = [own.strip().rstrip(",")] if own.strip() else []
    matchers += [f'{label}!=""' for label in labels]
    return f"{name}{{{','.join(matchers)}}}"


def total_over(metric: str, by: Sequence[str]) -> Template:
    """The query for the sum of a metric over a window, per values of the labels ``by``."""
    selector = select(metric, by)
    return lambda window: f"sum by ({', '.join(by)}) (sum_over_time({selector}[{window}]))"


def statement_owners(inventory: Inventory, day: date) -> Callable[[Group], str]:
    """Tells (compute pool, statement name) → the identity that pays, for one day.

    Names are reused: of the statements that had the name in the pool on that day, all must have one owner; where they
    do not, or there is none, nobody can tell and it is ``UNALLOCATED``. Where there is none, those count that ended
    just before: the last minutes of one that ended at midnight may be measured after it.
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
    """Measure → (resource, subject) → value as a table of schema :data:`USAGE`, in that order."""
    rows = [
        (day, measure, resource, subject, value)
        for measure in sorted(totals)
        for (resource, subject), value in sorted(totals[measure].items())
    ]
    columns: Sequence[Sequence[object]] = tuple(zip(*rows, strict=True)) or ((),) * len(USAGE)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, USAGE, strict=True)]
    return pa.Table.from_arrays(arrays, schema=USAGE)


def _added(measured: Measured, subject: Callable[[Group], str]) -> Totals:
    """Values per (resource, subject), those of one subject added up."""
    totals: Totals = {}
    for group, value in measured.values.items():
        key = (group[0], subject(group))
        totals[key] = totals.get(key, Decimal(0)) + value
    return totals


def _window(day: date) -> InstantRange:
    return InstantRange(start_of_day(day), start_of_day(day + ONE_DAY))
