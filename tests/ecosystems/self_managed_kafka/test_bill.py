"""The bill of one day, from a real Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from threading import Event
from typing import Any

import pytest

from chargeback.ecosystems.constructed.bill import Charge
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.gatherer import DailyCharges
from chargeback.errors import SourceDataError
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from tests.ecosystems.self_managed_kafka.conftest import DAY, RATES, settings_for
from tests.support.clock import TODAY
from tests.support.prometheus import RealPrometheus

DAYS_TRAFFIC = Decimal(1440) / 1024  # GiB a day of a steady MiB a minute


@pytest.fixture
def client(prometheus: RealPrometheus) -> Iterator[PrometheusClient]:
    """A client of the cluster's metrics."""
    with PrometheusClient(MetricsSettings(url=prometheus.url), stop=Event()) as opened:
        yield opened


def charges(client: PrometheusClient, **more: Any) -> DailyCharges:
    """The bill of a tenant."""
    settings = settings_for("http://unused", **more)
    return DailyCharges(settings, BrokerMetrics(settings), Meter(client, timedelta(hours=1)))


def quantities(found: list[Charge]) -> dict[str, tuple[Decimal, str]]:
    """Quantity and rate by product type."""
    return {
        each.product_type: (Decimal(each.quantity.numerator) / each.quantity.denominator, str(each.rate))
        for each in found
    }


def test_everything_of_this_cluster_and_nothing_else(client: PrometheusClient) -> None:
    """Brokers by their hours, every replica's bytes, and traffic without the sum of all topics; the cluster next door
    and its hundred megabytes a minute are not ours."""
    assert quantities(charges(client).of(DAY)) == {
        "SELF_KAFKA_COMPUTE": (Decimal(48), "0.50"),
        "SELF_KAFKA_STORAGE": (Decimal(4 * 10 * 24), "0.0001"),
        "SELF_KAFKA_NETWORK_INGRESS": (4 * DAYS_TRAFFIC, "0.01"),
        "SELF_KAFKA_NETWORK_EGRESS": (4 * DAYS_TRAFFIC, "0.05"),
    }


def test_the_other_rule_file(client: PrometheusClient) -> None:
    """Confluent's rule file has other names, the same trap, and counters that are exported as gauges."""
    found = charges(client, metric_names={"preset": "confluent_jmx", "matchers": 'job="kafka-quota"'}).of(DAY)
    assert quantities(found)["SELF_KAFKA_NETWORK_INGRESS"] == (6 * DAYS_TRAFFIC, "0.01")
    assert quantities(found)["SELF_KAFKA_STORAGE"] == (Decimal(24), "0.0001")


def test_what_is_free_is_not_measured(client: PrometheusClient) -> None:
    """With a rate of zero there is no line, and no metric is needed."""
    free = RATES | {"storage_per_gib_hourly": "0", "network_ingress_per_gib": "0", "network_egress_per_gib": "0"}
    nowhere = {"matchers": 'job="no-such-job"'}
    found = charges(client, cost_model=free, metric_names=nowhere).of(DAY)
    assert [each.product_type for each in found] == ["SELF_KAFKA_COMPUTE"]


@pytest.mark.parametrize("metric", ["bytes_in", "bytes_out", "log_size"])
def test_a_day_without_samples_has_no_bill(client: PrometheusClient, metric: str) -> None:
    """If one of the metrics is missing, the day has an error that names it, and no line at all."""
    with pytest.raises(SourceDataError, match="no sample of no_such_metric"):
        charges(client, metric_names={metric: "no_such_metric"}).of(DAY)
    with pytest.raises(SourceDataError, match="no sample of"):
        charges(client).of(TODAY - timedelta(days=30))


#: Any label can name the kind; here that of the topic does.
KINDS = {"label": "topic", "rates": {"payments": {"network_egress_per_gib": "0.5"}, "audit": {}}}


def test_kinds_of_topics_have_their_rates(client: PrometheusClient) -> None:
    """What each kind has, together exactly what all topics have; a kind without any topic costs nothing."""
    found = quantities(charges(client, cost_model={**RATES, "topic_kinds": KINDS}).of(DAY))
    assert found == {
        "SELF_KAFKA_COMPUTE": (Decimal(48), "0.50"),
        "SELF_KAFKA_STORAGE": (Decimal(4 * 10 * 24), "0.0001"),
        "SELF_KAFKA_STORAGE_PAYMENTS": (Decimal(0), "0.0001"),
        "SELF_KAFKA_STORAGE_AUDIT": (Decimal(0), "0.0001"),
        "SELF_KAFKA_NETWORK_INGRESS": (4 * DAYS_TRAFFIC, "0.01"),
        "SELF_KAFKA_NETWORK_INGRESS_PAYMENTS": (Decimal(0), "0.01"),
        "SELF_KAFKA_NETWORK_INGRESS_AUDIT": (Decimal(0), "0.01"),
        "SELF_KAFKA_NETWORK_EGRESS": (2 * DAYS_TRAFFIC, "0.05"),
        "SELF_KAFKA_NETWORK_EGRESS_PAYMENTS": (2 * DAYS_TRAFFIC, "0.5"),
        "SELF_KAFKA_NETWORK_EGRESS_AUDIT": (Decimal(0), "0.05"),
    }


def test_a_day_without_samples_of_any_kind_has_no_bill(client: PrometheusClient) -> None:
    """Nothing at all is not the same as nothing of one kind."""
    for name in ("bytes_in", "log_size"):
        with pytest.raises(SourceDataError, match="no sample of no_such_metric"):
            charges(client, cost_model={**RATES, "topic_kinds": KINDS}, metric_names={name: "no_such_metric"}).of(DAY)


def test_a_region_has_its_rates(client: PrometheusClient) -> None:
    """The override of the configured region holds."""
    model = RATES | {"region_overrides": {"eu-central-1": {"compute_hourly_rate": "0.75"}}}
    found = charges(client, cost_model=model, region="eu-central-1").of(DAY)
    assert quantities(found)["SELF_KAFKA_COMPUTE"] == (Decimal(48), "0.75")
