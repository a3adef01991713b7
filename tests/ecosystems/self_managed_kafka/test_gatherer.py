"""A self-managed cluster from a real Prometheus: its bill, inventory, usage, policies and checks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from chargeback.ecosystems.constructed.admin import connection
from chargeback.ecosystems.constructed.bill import Charge
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.settings import ResourceSource
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.gatherer import DailyCharges, catalogue, tenant_catalogue
from chargeback.errors import SourceDataError
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.settings import FOLDER
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from tests.ecosystems.self_managed_kafka.conftest import DAY, IN, MIB, RATES, gatherer, settings_for
from tests.support.clock import TODAY
from tests.support.kafka import MockCluster, closed_port
from tests.support.prometheus import RealPrometheus

DAYS_TRAFFIC = Decimal(1440) / 1024  # GiB a day of a steady MiB a minute


@pytest.fixture
def client(prometheus: RealPrometheus) -> Iterator[PrometheusClient]:
    """A client of the cluster's metrics."""
    with PrometheusClient(MetricsSettings(url=prometheus.url), stop=Event()) as opened:
        yield opened


def charges(client: PrometheusClient, **more: Any) -> DailyCharges:
    """Return the charges of a tenant."""
    settings = settings_for("http://unused", **more)
    return DailyCharges(settings, BrokerMetrics(settings), Meter(client, timedelta(hours=1)))


def quantities(found: list[Charge]) -> dict[str, tuple[Decimal, str]]:
    """Return quantity and rate by product type."""
    return {
        each.product_type: (Decimal(each.quantity.numerator) / each.quantity.denominator, str(each.rate))
        for each in found
    }


def test_everything_of_this_cluster_and_nothing_else(client: PrometheusClient) -> None:
    """Brokers count their hours, storage every replica, and traffic excludes the sum of all topics; other clusters on
    the same metrics source are excluded."""
    assert quantities(charges(client).of(DAY)) == {
        "SELF_KAFKA_COMPUTE": (Decimal(48), "0.50"),
        "SELF_KAFKA_STORAGE": (Decimal(4 * 10 * 24), "0.0001"),
        "SELF_KAFKA_NETWORK_INGRESS": (4 * DAYS_TRAFFIC, "0.01"),
        "SELF_KAFKA_NETWORK_EGRESS": (4 * DAYS_TRAFFIC, "0.05"),
    }


def test_the_other_rule_file(client: PrometheusClient) -> None:
    """Confluent's rule file has other names, a sum of all topics as well, and counters that are exported as gauges."""
    found = charges(client, metric_names={"preset": "confluent_jmx", "matchers": 'job="kafka-quota"'}).of(DAY)
    assert quantities(found)["SELF_KAFKA_NETWORK_INGRESS"] == (6 * DAYS_TRAFFIC, "0.01")
    assert quantities(found)["SELF_KAFKA_STORAGE"] == (Decimal(24), "0.0001")


def test_what_is_free_is_not_measured(client: PrometheusClient) -> None:
    """With a rate of zero there is no line, and no metric is required."""
    free = RATES | {"storage_per_gib_hourly": "0", "network_ingress_per_gib": "0", "network_egress_per_gib": "0"}
    nowhere = {"matchers": 'job="no-such-job"'}
    found = charges(client, cost_model=free, metric_names=nowhere).of(DAY)
    assert [each.product_type for each in found] == ["SELF_KAFKA_COMPUTE"]


@pytest.mark.parametrize("metric", ["bytes_in", "bytes_out", "log_size"])
def test_a_day_without_samples_has_no_bill(client: PrometheusClient, metric: str) -> None:
    """If one of the metrics is missing, the day has an error that names it, and no lines."""
    with pytest.raises(SourceDataError, match="no sample of no_such_metric"):
        charges(client, metric_names={metric: "no_such_metric"}).of(DAY)
    with pytest.raises(SourceDataError, match="no sample of"):
        charges(client).of(TODAY - timedelta(days=30))


#: The kind may come from any label; here it is the topic itself.
KINDS = {"label": "topic", "rates": {"payments": {"network_egress_per_gib": "0.5"}, "audit": {}}}


def test_kinds_of_topics_have_their_rates(client: PrometheusClient) -> None:
    """The kinds together have exactly the quantities of all topics; a kind without topics has a quantity of zero."""
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
    """If there are no samples of any kind, the day is an error; if one kind has none, it is not."""
    for name in ("bytes_in", "log_size"):
        with pytest.raises(SourceDataError, match="no sample of no_such_metric"):
            charges(client, cost_model={**RATES, "topic_kinds": KINDS}, metric_names={name: "no_such_metric"}).of(DAY)


def test_a_region_has_its_rates(client: PrometheusClient) -> None:
    """The rates of the configured region apply."""
    model = RATES | {"region_overrides": {"eu-central-1": {"compute_hourly_rate": "0.75"}}}
    found = charges(client, cost_model=model, region="eu-central-1").of(DAY)
    assert quantities(found)["SELF_KAFKA_COMPUTE"] == (Decimal(48), "0.75")


def findings(context: TenantContext, url: str, **more: Any) -> dict[str, tuple[bool, str]]:
    """Return whether each check succeeds, and its detail."""
    with gatherer(context, url, **more) as opened:
        return {finding.subject: (finding.ok, finding.detail) for finding in opened.check()}


def test_a_cluster_that_works(context: TenantContext, prometheus: RealPrometheus) -> None:
    """If everything works, metrics have series, the number of brokers is as configured, and there are principals."""
    cluster = MockCluster("orders")
    source = {"source": "admin_api", "bootstrap_servers": cluster.bootstrap_servers}
    found = findings(context, prometheus.url, resource_source=source)
    assert all(ok for ok, _ in found.values()), found
    assert found["metric bytes_in"][1] == "2 series now"
    assert found["brokers"][1] == "2 brokers, as broker_count says"
    assert found["principals"][1] == "3 within 1 h"
    assert found["admin API"][1].endswith("3 brokers, 1 topics")


def test_what_does_not_work_says_why(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A metric without samples, counters without principals and an unavailable cluster are separate failures."""
    source = {"source": "admin_api", "bootstrap_servers": f"127.0.0.1:{closed_port()}"}
    names = {"preset": "confluent_jmx", "matchers": 'job="kafka-quota"', "log_size": "no_such_metric"}
    found = findings(context, prometheus.url, metric_names=names, resource_source=source)
    assert {subject for subject, (ok, _) in found.items() if not ok} == {"metric log_size", "principals", "admin API"}
    assert "metric_names.principals: quotas" in found["principals"][1]


def test_metrics_without_brokers(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Matchers that match no series leave no broker, which is a failure."""
    found = findings(context, prometheus.url, metric_names={"matchers": 'job="misspelt"'})
    assert found["brokers"] == (False, "the metrics contain no broker (source metrics)")


def test_a_wrong_count_of_brokers_is_a_warning(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A number of brokers that differs from broker_count is a warning: one may be down, or the setting wrong."""
    with gatherer(context, prometheus.url, broker_count=9) as opened:
        warned = [finding for finding in opened.check() if finding.warning]
    assert [(finding.subject, finding.ok, finding.detail) for finding in warned] == [
        ("brokers", True, "the metrics contain 2 brokers, but broker_count bills 9")
    ]


def test_a_broker_without_logs_is_counted(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A broker with traffic but no logs is counted."""
    names = {"matchers": 'job="kafka-prod"', "log_size": 'kafka_log_log_size{instance="b1:7071"}'}
    found = findings(context, prometheus.url, metric_names=names)
    assert found["brokers"][1] == "2 brokers, as broker_count says"


def test_a_source_that_is_away(context: TenantContext) -> None:
    """If the metrics source is unavailable, one check fails with its address, and the others are named as not tried."""
    url = f"http://127.0.0.1:{closed_port()}"
    found = findings(context, url)
    assert [subject for subject, (ok, _) in found.items() if not ok] == ["metric bytes_in"]
    assert url in found["metric bytes_in"][1]
    assert found["not tried"][1] == "for the same reason: metric bytes_out, metric log_size, brokers, principals"


def listed(context: TenantContext, prometheus: RealPrometheus, **more: Any) -> ListedInventory:
    """Return the current listing."""
    with gatherer(context, prometheus.url, **more) as opened:
        return opened.inventory()


@pytest.fixture(scope="module")
def cluster() -> MockCluster:
    """A cluster that speaks the Kafka protocol."""
    return MockCluster("orders", "payments")


def test_from_the_metrics(context: TenantContext, prometheus: RealPrometheus) -> None:
    """The metrics list the cluster, brokers and topics with logs, and principals that wrote or read."""
    found = listed(context, prometheus, display_name="Production", region="eu")
    resources = [(each.resource_id, each.resource_type, each.parent_id) for each in found.inventory.resources]
    assert resources == [
        ("kafka-prod", "kafka_cluster", None),
        ("kafka-prod:broker:b1:7071", "kafka_broker", "kafka-prod"),
        ("kafka-prod:broker:b2:7071", "kafka_broker", "kafka-prod"),
        ("kafka-prod:topic:orders", "kafka_topic", "kafka-prod"),
    ]
    assert found.inventory.resources[0].display_name == "Production"
    assert found.inventory.resources[0].metadata == {"region": "eu", "broker_count": 2}
    assert [each.identity_id for each in found.inventory.identities] == ["alice", "bob", "carol"]
    assert found.complete == {"kafka_cluster", "kafka_broker", "kafka_topic"}
    assert found.partial == {"principal"}
    assert found.failures == {}


def test_from_the_cluster_itself(context: TenantContext, prometheus: RealPrometheus, cluster: MockCluster) -> None:
    """Over the Kafka protocol, brokers have their own ids, and topics their partitions and replicas."""
    source = {"source": "admin_api", "bootstrap_servers": cluster.bootstrap_servers}
    found = listed(context, prometheus, resource_source=source).inventory.resources
    assert [each.resource_id for each in found] == [
        "kafka-prod",
        *(f"kafka-prod:broker:{number}" for number in (1, 2, 3)),
        "kafka-prod:topic:orders",
        "kafka-prod:topic:payments",
    ]
    assert found[1].metadata == {"host": "127.0.0.1", "port": cluster.addresses[0][1]}
    assert found[-1].metadata == {"partitions": 4, "replication_factor": 3}


def test_a_cluster_that_does_not_answer(context: TenantContext, prometheus: RealPrometheus) -> None:
    """If the cluster does not respond, brokers and topics are failures; the cluster and the principals are listed."""
    source = {"source": "admin_api", "bootstrap_servers": f"127.0.0.1:{closed_port()}"}
    found = listed(context, prometheus, resource_source=source)
    assert found.failures.keys() == {"kafka_broker", "kafka_topic"}
    assert "no response within" in found.failures["kafka_topic"]
    assert found.complete == {"kafka_cluster"}
    assert found.partial == {"principal"}
    assert found.required == {"kafka_cluster"}


def test_static_and_discovered_identities(context: TenantContext, prometheus: RealPrometheus) -> None:
    """``static`` lists only the configured identities; ``both`` adds those of the metrics."""
    given = {"static_identities": [{"identity_id": "team-a", "identity_type": "team"}]}
    static = listed(context, prometheus, identity_source={"source": "static", **given})
    both = listed(context, prometheus, identity_source={"source": "both", **given})
    assert [each.identity_id for each in static.inventory.identities] == ["team-a"]
    assert [each.identity_id for each in both.inventory.identities] == ["team-a", "alice", "bob", "carol"]
    assert [each.resource_id for each in both.inventory.grants] == ["kafka-prod"]


def test_the_connection_takes_every_key() -> None:
    """All settings are passed to the library, including secrets; relative paths start at the folder of the
    configuration."""
    source = ResourceSource.model_validate(
        {
            "source": "admin_api",
            "bootstrap_servers": "k:9093",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": "reader",
            "sasl_password": "hush",
            "ssl_ca_location": "ca.pem",
            "ssl_certificate_location": "client.pem",
            "ssl_key_location": "key.pem",
            "ssl_key_password": "quiet",
        },
        context={FOLDER: Path("/etc/chargeback")},
    )
    assert connection(source).properties() == {
        "bootstrap.servers": "k:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "reader",
        "sasl.password": "hush",
        "ssl.ca.location": "/etc/chargeback/ca.pem",
        "ssl.certificate.location": "/etc/chargeback/client.pem",
        "ssl.key.location": "/etc/chargeback/key.pem",
        "ssl.key.password": "quiet",
    }


EVEN = "even(active), even(period), unallocated"


def chain(product_type: str) -> str:
    """Return the only chain of a product type as text."""
    policy = catalogue().find(product_type)
    assert policy is not None
    (portion,) = policy.portions
    assert portion.share == 1
    return ", ".join(map(str, portion.methods))


def test_compute_and_storage_are_shared_evenly() -> None:
    """Compute and storage are divided evenly among the active identities."""
    assert chain("SELF_KAFKA_COMPUTE") == chain("SELF_KAFKA_STORAGE") == EVEN


def test_traffic_follows_usage() -> None:
    """Incoming traffic is split by bytes written, outgoing by bytes read, and evenly without measurements."""
    assert chain("SELF_KAFKA_NETWORK_INGRESS") == f"usage(bytes_in), {EVEN}"
    assert chain("SELF_KAFKA_NETWORK_EGRESS") == f"usage(bytes_out), {EVEN}"


def test_kinds_of_topics_are_split_by_their_traffic() -> None:
    """Each product type of a kind has the policy of all topics, with the measures of the kind."""
    kinds = {"label": "kind", "rates": {"tiered": {}}}
    settings = settings_for("http://p", cost_model={**RATES, "topic_kinds": kinds})
    expected = {
        "SELF_KAFKA_COMPUTE": "",
        "SELF_KAFKA_STORAGE": "",
        "SELF_KAFKA_STORAGE_TIERED": "",
        "SELF_KAFKA_NETWORK_INGRESS": "usage(bytes_in_other), ",
        "SELF_KAFKA_NETWORK_INGRESS_TIERED": "usage(bytes_in_tiered), ",
        "SELF_KAFKA_NETWORK_EGRESS_TIERED": "usage(bytes_out_tiered), ",
    }
    for product_type, usage in expected.items():
        policy = tenant_catalogue(settings).find(product_type)
        assert policy is not None
        assert ", ".join(map(str, policy.portions[0].methods)) == f"{usage}{EVEN}"


def test_a_tenant_may_have_its_own() -> None:
    """``allocation_policies`` replaces a policy and leaves the others."""
    own = {"SELF_KAFKA_COMPUTE": {"portions": [{"share": "1", "try": ["usage(bytes_in)"]}]}}
    changed = tenant_catalogue(settings_for("http://p", allocation_policies=own))
    policy = changed.find("SELF_KAFKA_COMPUTE")
    assert policy is not None
    assert [str(method) for method in policy.portions[0].methods] == ["usage(bytes_in)", "unallocated"]
    assert changed.find("SELF_KAFKA_STORAGE") == catalogue().find("SELF_KAFKA_STORAGE")


A_DAY = 1440 * MIB
QUOTAS = {"preset": "confluent_jmx", "matchers": 'job="kafka-quota"', "principals": "quotas"}


def usage(context: TenantContext, prometheus: RealPrometheus, **more: Any) -> dict[tuple[str, str], Decimal]:
    """Return the day's usage by measure and identity."""
    with gatherer(context, prometheus.url, **more) as opened:
        table = opened.usage(DAY, Inventory()).table
    rows = table.to_pylist()
    assert {row["resource_id"] for row in rows} <= {"kafka-prod"}
    return {(row["measure"], row["subject"]): row["value"] for row in rows}


def test_bytes_of_each_principal(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Each principal has the bytes that it wrote and read; bytes read without a principal are unowned."""
    assert usage(context, prometheus) == {
        ("bytes_in", "alice"): Decimal(3 * A_DAY),
        ("bytes_in", "bob"): Decimal(A_DAY),
        ("bytes_out", "UNALLOCATED"): Decimal(2 * A_DAY),
        ("bytes_out", "carol"): Decimal(2 * A_DAY),
    }


def test_bytes_of_each_kind(context: TenantContext, prometheus: RealPrometheus) -> None:
    """The traffic of each kind of topics is measured separately."""
    kinds = {"label": "topic", "rates": {"payments": {}}}
    found = usage(context, prometheus, cost_model={**RATES, "topic_kinds": kinds})
    assert found == {
        ("bytes_in_other", "alice"): Decimal(3 * A_DAY),
        ("bytes_in_other", "bob"): Decimal(A_DAY),
        ("bytes_out_other", "carol"): Decimal(2 * A_DAY),
    }


def test_rates_of_quotas_become_bytes(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Five bytes a second are 432,000 a day; a principal with only rates of zero has a row of zero."""
    assert usage(context, prometheus, metric_names=QUOTAS) == {
        ("bytes_in", "dora"): Decimal(5 * 86_400),
        ("bytes_in", "emil"): Decimal(15 * 86_400),
        ("bytes_out", "dora"): Decimal(0),
        ("bytes_out", "emil"): Decimal(0),
    }


def test_counters_that_name_nobody(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Byte counters without principals give no usage, rather than unowned usage."""
    plain = QUOTAS | {"principals": "counters"}
    assert usage(context, prometheus, metric_names=plain) == {}


def test_a_discovery_query_makes_active(context: TenantContext, prometheus: RealPrometheus) -> None:
    """With a discovery query, presence counts the identities that it returns at each step of the day."""
    found = usage(context, prometheus, identity_source={"discovery_query": f'{IN}{{job="kafka-prod"}}'})
    presence = {subject: value for (measure, subject), value in found.items() if measure == "presence"}
    assert presence == {"alice": Decimal(24), "bob": Decimal(24)}


def test_a_policy_may_ask_for_presence(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Without a configured query, the built-in one measures presence; measures that no policy uses are not queried."""
    presence = {"portions": [{"share": "1", "try": ["usage(presence)"]}]}
    types = ("COMPUTE", "STORAGE", "NETWORK_INGRESS", "NETWORK_EGRESS")
    found = usage(context, prometheus, allocation_policies={f"SELF_KAFKA_{name}": presence for name in types})
    assert found == {("presence", name): Decimal(24) for name in ("alice", "bob", "carol")}
