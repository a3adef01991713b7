"""The metrics of the generated organisation, as a Prometheus that scrapes the provider's export would have them.

Counters are exported as gauges that hold the delta of one minute, stamped at :00 of that minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from chargeback.demo.traffic import CURVES, MINUTES, Deltas, Levels, Traffic


@dataclass(frozen=True)
class Metric:
    """A metric: minute deltas or a level; samples are integers divided by ``scale`` (1, or 1000 for CFU minutes)."""

    name: str
    kind: Literal["delta", "level"]
    scale: int = 1


REQUEST_BYTES = "confluent_kafka_server_request_bytes"
RESPONSE_BYTES = "confluent_kafka_server_response_bytes"
RECEIVED_BYTES = "confluent_kafka_server_received_bytes"
SENT_BYTES = "confluent_kafka_server_sent_bytes"
RETAINED_BYTES = "confluent_kafka_server_retained_bytes"
CFU_MINUTES = "confluent_flink_statement_utilization_cfu_minutes_consumed"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(REQUEST_BYTES, "delta"),
        Metric(RESPONSE_BYTES, "delta"),
        Metric(RECEIVED_BYTES, "delta"),
        Metric(SENT_BYTES, "delta"),
        Metric(RETAINED_BYTES, "level"),
        Metric(CFU_MINUTES, "delta", scale=1000),
    )
}

Series = Deltas | Levels


class SeriesIndex:
    """All series of a day, generated on request. Labels are made once for each series and shared by all days."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._labels: dict[tuple[str, ...], Mapping[str, str]] = {}

    def series(self, metric: str, day: date) -> list[Series]:
        """Return the series of ``metric`` on ``day``; empty for an unknown metric. A series that did not exist is
        absent."""
        if metric in (REQUEST_BYTES, RESPONSE_BYTES):
            return list(self._by_principal(metric == REQUEST_BYTES, day))
        if metric in (RECEIVED_BYTES, SENT_BYTES, RETAINED_BYTES):
            return list(self._by_topic(metric, day))
        return list(self._by_statement(day)) if metric == CFU_MINUTES else []

    def _by_principal(self, requests: bool, day: date) -> Iterator[Series]:
        """Yield a principal's bytes by request type: almost all in one type, the overhead in two others."""
        main, other = ("Produce", "Fetch") if requests else ("Fetch", "Produce")
        for cluster in self._traffic.inventory.clusters:
            for member, written, read in self._traffic.members(cluster, day):
                total, curve = (written if requests else read), CURVES[member.rhythm]
                overhead, metadata = total // 50, total // 1000
                for kind, amount in ((main, total - overhead - metadata), (other, overhead), ("Metadata", metadata)):
                    labels = self._shared("kafka_id", cluster.id, "principal_id", member.principal, "type", kind)
                    yield Deltas(labels, amount, curve)

    def _by_topic(self, metric: str, day: date) -> Iterator[Series]:
        for cluster in self._traffic.inventory.clusters:
            for topic, written, read, retained in self._traffic.topics(cluster, day):
                labels = self._shared("kafka_id", cluster.id, "topic", topic.name)
                if metric == RETAINED_BYTES:
                    yield Levels(labels, retained, retained // 24_000)
                else:
                    yield Deltas(labels, written if metric == RECEIVED_BYTES else read, CURVES[topic.rhythm])

    def _by_statement(self, day: date) -> Iterator[Series]:
        for statement, amount in self._traffic.statements(day):
            labels = self._shared("compute_pool_id", statement.pool, "flink_statement_name", statement.name)
            yield Deltas(labels, amount, CURVES[statement.rhythm])

    def _shared(self, *pairs: str) -> Mapping[str, str]:
        """Return the same object for each series, even to concurrent threads: evaluation compares series by
        identity."""
        labels = self._labels.get(pairs)
        if labels is None:
            labels = self._labels.setdefault(pairs, dict(zip(pairs[::2], pairs[1::2], strict=True)))
        return labels


def openmetrics_lines(metric: Metric, days: Iterable[tuple[date, list[Series]]]) -> Iterator[str]:
    """Yield the lines of one metric family: every minute 00:00 to 23:59 of each day, without the closing ``# EOF``.

    >>> day = date(2026, 1, 1)
    >>> lines = openmetrics_lines(Metric("m", "level"), [(day, [Levels({"topic": "a"}, 7, 0)])])
    >>> next(lines), next(lines)
    ('# TYPE m gauge\\n', 'm{topic="a"} 7 1767225600\\n')
    """
    yield f"# TYPE {metric.name} gauge\n"
    for day, found in days:
        midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        stamps = [f" {midnight + 60 * minute}\n" for minute in range(MINUTES)]
        for series in found:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in series.labels.items())
            head = f"{metric.name}{{{labels}}} "
            for minute, stamp in enumerate(stamps):
                yield head + sample_text(series.at(minute), metric.scale) + stamp


def sample_text(value: int, scale: int) -> str:
    """Return an integer divided by ``scale`` as plain decimal text, without trailing zeros.

    >>> sample_text(1250, 1000), sample_text(7, 1), sample_text(3000, 1000)
    ('1.25', '7', '3')
    """
    if scale == 1:
        return str(value)
    whole, part = divmod(value, scale)
    digits = len(str(scale)) - 1
    return f"{whole}.{part:0{digits}d}".rstrip("0") if part else str(whole)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
