"""``chargeback check --online`` for a self-managed cluster."""

from __future__ import annotations

from typing import Any

from chargeback.ecosystems.contract import TenantContext
from tests.ecosystems.self_managed_kafka.conftest import gatherer
from tests.support.kafka import MockCluster, closed_port
from tests.support.prometheus import RealPrometheus


def findings(context: TenantContext, url: str, **more: Any) -> dict[str, tuple[bool, str]]:
    """Whether each thing works, and what was seen."""
    with gatherer(context, url, **more) as opened:
        return {finding.subject: (finding.ok, finding.detail) for finding in opened.check()}


def test_a_cluster_that_works(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Every metric has series, the brokers are as many as are billed, and there are principals."""
    cluster = MockCluster("orders")
    source = {"source": "admin_api", "bootstrap_servers": cluster.bootstrap_servers}
    found = findings(context, prometheus.url, resource_source=source)
    assert all(ok for ok, _ in found.values()), found
    assert found["metric bytes_in"][1] == "2 series now"
    assert found["brokers"][1] == "2 brokers, as broker_count says"
    assert found["principals"][1] == "3 within 1 h"
    assert found["admin API"][1].endswith("3 brokers, 1 topics")


def test_what_does_not_work_says_why(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A metric that never was, counters without principals and a cluster that is away are findings of their own."""
    source = {"source": "admin_api", "bootstrap_servers": f"127.0.0.1:{closed_port()}"}
    names = {"preset": "confluent_jmx", "matchers": 'job="kafka-quota"', "log_size": "no_such_metric"}
    found = findings(context, prometheus.url, metric_names=names, resource_source=source)
    assert {subject for subject, (ok, _) in found.items() if not ok} == {"metric log_size", "principals", "admin API"}
    assert "metric_names.principals: quotas" in found["principals"][1]


def test_metrics_without_brokers(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Matchers that no series has leave no broker, which fails."""
    found = findings(context, prometheus.url, metric_names={"matchers": 'job="misspelt"'})
    assert found["brokers"] == (False, "the metrics contain no broker (source metrics)")


def test_a_wrong_count_of_brokers_is_a_warning(context: TenantContext, prometheus: RealPrometheus) -> None:
    """The bill can be made, but of other brokers than there seem to be: one may be down, or the count be wrong."""
    with gatherer(context, prometheus.url, broker_count=9) as opened:
        warned = [finding for finding in opened.check() if finding.warning]
    assert [(finding.subject, finding.ok, finding.detail) for finding in warned] == [
        ("brokers", True, "the metrics contain 2 brokers, but broker_count bills 9")
    ]


def test_a_broker_without_logs_is_counted(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A broker that has traffic and no logs yet is a broker: two have traffic, and one of them has logs."""
    names = {"matchers": 'job="kafka-prod"', "log_size": 'kafka_log_log_size{instance="b1:7071"}'}
    found = findings(context, prometheus.url, metric_names=names)
    assert found["brokers"][1] == "2 brokers, as broker_count says"


def test_a_source_that_is_away(context: TenantContext) -> None:
    """Without a metrics source one finding fails with its address, and another names the checks that were skipped."""
    url = f"http://127.0.0.1:{closed_port()}"
    found = findings(context, url)
    assert [subject for subject, (ok, _) in found.items() if not ok] == ["metric bytes_in"]
    assert url in found["metric bytes_in"][1]
    assert found["not tried"][1] == "for the same reason: metric bytes_out, metric log_size, brokers, principals"
