"""The queries for a cluster's metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from tests.ecosystems.self_managed_kafka.conftest import settings_for


def metrics(**more: Any) -> BrokerMetrics:
    """Return the queries of a tenant."""
    return BrokerMetrics(settings_for("http://p", **more))


def test_traffic_leaves_the_sum_of_all_topics_out() -> None:
    """Only series of this cluster that have a topic count."""
    assert metrics().traffic("bytes_in") == (
        'kafka_server_brokertopicmetrics_bytesin_total{job="kafka-prod",topic!=""}'
    )


def test_a_matcher_on_the_topic_is_the_users_own_decision() -> None:
    """A query with its own matcher on the topic is not changed."""
    own = metrics(metric_names={"bytes_in": 'bytes_in{topic=""}'})
    assert own.traffic("bytes_in") == 'bytes_in{topic=""}'
    renamed = metrics(metric_names={"bytes_in": "bytes_in"}, label_names={"topic": "t"})
    assert renamed.traffic("bytes_in") == 'bytes_in{t!=""}'


def test_storage_counts_every_replica() -> None:
    """The logs of all brokers are summed, each with its mean over the step."""
    assert metrics().mean_log_size() == 'sum(avg_over_time(kafka_log_log_size{job="kafka-prod"}[{step}]))'


def test_principals_by_quota() -> None:
    """Rates per user are converted to bytes per step, with the names of the preset."""
    quotas = metrics(metric_names={"preset": "confluent_jmx", "principals": "quotas"})
    assert not quotas.counts_principals
    assert quotas.principal_bytes("bytes_out", timedelta(hours=1)) == (
        'sum by (user) (sum_over_time(kafka_server_fetch_byte_rate{user!=""}[3600s:60s])) * 60'
    )


def test_the_built_in_discovery() -> None:
    """Every principal that wrote or read is discovered."""
    assert metrics(metric_names={}).principals("1h") == (
        'group by (principal) (last_over_time(kafka_server_brokertopicmetrics_bytesin_total{principal!=""}[1h])'
        ' or last_over_time(kafka_server_brokertopicmetrics_bytesout_total{principal!=""}[1h]))'
    )


def test_brokers_have_logs_or_traffic() -> None:
    """A broker is discovered by any of its metrics, a topic by its logs."""
    assert metrics(metric_names={}).brokers("1h") == (
        'group by (instance) (last_over_time(kafka_log_log_size{instance!=""}[1h])'
        ' or last_over_time(kafka_server_brokertopicmetrics_bytesin_total{instance!=""}[1h])'
        ' or last_over_time(kafka_server_brokertopicmetrics_bytesout_total{instance!=""}[1h]))'
    )
    assert (
        metrics(metric_names={}).topics("1h") == 'group by (topic) (last_over_time(kafka_log_log_size{topic!=""}[1h]))'
    )
