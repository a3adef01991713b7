"""OpenMetrics text."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from chargeback.emitters.openmetrics import END, Gauge, GaugeSample, family
from tests.support.prometheus import RealPrometheus


def test_a_family() -> None:
    """Type, unit and help come first; amounts are exact decimals without exponents, times are whole seconds."""
    gauge = Gauge("cost_seconds", "What it\ncosts.", "seconds")
    samples = [
        GaugeSample((("team", "a"),), Decimal("-12345678901234567890.000000000001"), date(2026, 1, 2)),
        GaugeSample((), Decimal("1E+3")),
        GaugeSample((), 7),
    ]
    assert "".join(family(gauge, samples)) == (
        "# TYPE cost_seconds gauge\n# UNIT cost_seconds seconds\n# HELP cost_seconds What it\\ncosts.\n"
        'cost_seconds{team="a"} -12345678901234567890.000000000001 1767312000\n'
        "cost_seconds{} 1000.00\ncost_seconds{} 7\n"
    )


@pytest.mark.usefixtures("process")
def test_prometheus_reads_labels_as_they_were_written() -> None:
    """Quotes, backslashes, line breaks and Unicode characters pass unchanged through a real Prometheus."""
    value = 'a"b\\c\nd {x="1"} Ünïcode 東京 #'
    text = "".join(
        family(Gauge("cost", 'Say "cost".'), [GaugeSample((("team", value),), Decimal("1.5"), date(2026, 1, 2))])
    )
    with RealPrometheus(text + END) as prometheus:
        (found,) = prometheus.query("cost", 1767312000)
    assert (found["metric"]["team"], found["value"][1]) == (value, "1.5")
