"""Metrics: labels, daily totals, and the OpenMetrics export."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal

from chargeback.demo.metrics import (
    CFU_MINUTES,
    METRICS,
    RECEIVED_BYTES,
    REQUEST_BYTES,
    RETAINED_BYTES,
    Metric,
    openmetrics_lines,
    sample_text,
)
from chargeback.demo.organisation import Organisation
from chargeback.demo.traffic import Levels

DAY = date(2026, 11, 12)


def test_series_carry_the_providers_labels(organisation: Organisation) -> None:
    """Series of bytes have cluster, principal and type, or topic; CFU minutes have pool and statement, as the
    provider's do."""
    expected = {
        REQUEST_BYTES: {"kafka_id", "principal_id", "type"},
        RECEIVED_BYTES: {"kafka_id", "topic"},
        RETAINED_BYTES: {"kafka_id", "topic"},
        CFU_MINUTES: {"compute_pool_id", "flink_statement_name"},
    }
    for metric, labels in expected.items():
        usage = organisation.usage(metric, DAY)
        assert usage
        assert all(set(found) == labels for found, _ in usage)
        assert len({tuple(sorted(found.items())) for found, _ in usage}) == len(usage)


def test_topics_of_every_cluster_are_unequal(organisation: Organisation) -> None:
    """Each cluster has internal topics, and its largest topic is many times its smallest."""
    sizes: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for labels, value in organisation.usage(RETAINED_BYTES, DAY):
        sizes[labels["kafka_id"]][labels["topic"]] = Decimal(value)
    for topics in sizes.values():
        assert {"__consumer_offsets", "_schemas"} <= set(topics)
        assert max(topics.values()) > 4 * min(topics.values())


def test_the_export_adds_up_to_the_usage(organisation: Organisation) -> None:
    """The minute samples in the text sum exactly to the usage of the day, with times from 00:00 to 23:59."""
    lines = list(organisation.openmetrics([DAY], [REQUEST_BYTES, CFU_MINUTES]))
    assert lines[-1] == "# EOF\n"
    totals: dict[str, Decimal] = defaultdict(Decimal)
    stamps = set()
    for line in lines:
        if not line.startswith("#"):
            series, sample, stamp = line.rsplit(" ", 2)
            totals[series] += Decimal(sample)
            stamps.add(int(stamp))
    midnight = int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp())
    assert stamps == {midnight + 60 * minute for minute in range(1440)}
    for metric in (REQUEST_BYTES, CFU_MINUTES):
        for labels, value in organisation.usage(metric, DAY):
            name = metric + "{" + ",".join(f'{key}="{text}"' for key, text in labels.items()) + "}"
            assert totals[name] == value


def test_every_metric_has_series_and_unknown_ones_have_none(organisation: Organisation) -> None:
    """Every metric has series on an ordinary day; an unknown metric has none."""
    assert all(organisation.series(metric, DAY) for metric in METRICS)
    assert organisation.series("nothing", DAY) == []


def test_texts_are_escaped_and_plain() -> None:
    """Label values are escaped; decimals have no exponent and no superfluous zeros."""
    lines = list(openmetrics_lines(Metric("m", "level"), [(DAY, [Levels({"a": 'x"\\\n'}, 1, 0)])]))
    assert lines[1].startswith('m{a="x\\"\\\\\\n"} 1 ')
    assert (sample_text(1, 1000), sample_text(0, 1000), sample_text(120, 1000)) == ("0.001", "0", "0.12")
