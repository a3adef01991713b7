"""Usage of a day: the exact amounts of each identity, through a real Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from threading import Event

import pytest

from chargeback.demo.metrics import (
    CFU_MINUTES,
    RECEIVED_BYTES,
    REQUEST_BYTES,
    RESPONSE_BYTES,
    RETAINED_BYTES,
    SENT_BYTES,
)
from chargeback.demo.organisation import Organisation
from chargeback.ecosystems.confluent_cloud.settings import LabelNames, MetricNames
from chargeback.ecosystems.confluent_cloud.topics import TopicSettings
from chargeback.ecosystems.confluent_cloud.usage import (
    Totals,
    UsageQueries,
    select,
    statement_owners,
    usage_table,
    with_owners,
)
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.errors import SourceUnavailable
from chargeback.model.inventory import Inventory, Resource
from chargeback.model.usage import USAGE
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from chargeback.sources.requests import Limits
from chargeback.sources.windows import WindowSums
from tests.ecosystems.confluent_cloud.conftest import TODAY
from tests.support.prometheus import RealPrometheus

DAY = TODAY - timedelta(days=10)
MIDNIGHT = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
MEASURES = ("bytes_in", "bytes_out", "flink_cfu_minutes")


@contextmanager
def asking(
    server: RealPrometheus, metrics: MetricNames | None = None, labels: LabelNames | None = None
) -> Iterator[UsageQueries]:
    """Return a client of that server."""
    with PrometheusClient(MetricsSettings(url=server.url), stop=Event()) as client:
        yield UsageQueries(WindowSums(client), metrics or MetricNames(), labels or LabelNames())


def rows(measured: MeasuredUsage) -> dict[tuple[str, str, str], Decimal]:
    """Return values by measure, resource and subject."""
    assert measured.table.schema == USAGE
    return {(row["measure"], row["resource_id"], row["subject"]): row["value"] for row in measured.table.to_pylist()}


def everything(organisation: Organisation) -> Inventory:
    """Return the resources of the organization, deleted ones included, without unlisted statements."""
    inventory = organisation.inventory
    clusters = [Resource(each.id, "kafka_cluster") for each in inventory.clusters]
    pools = [Resource(each.id, "flink_compute_pool") for each in inventory.compute_pools]
    statements = [
        Resource(each.id, "flink_statement", each.name, each.pool, each.principal)
        for each in inventory.statements
        if each.listed
    ]
    return Inventory((*clusters, *pools, *statements))


def truth(organisation: Organisation, metric: str, labels: Iterable[str]) -> dict[tuple[str, ...], Decimal]:
    """Return the generator's numbers, added up by labels."""
    totals: dict[tuple[str, ...], Decimal] = {}
    for series, value in organisation.usage(metric, DAY):
        group = tuple(series[label] for label in labels)
        totals[group] = totals.get(group, Decimal(0)) + Decimal(value)
    return totals


@pytest.fixture(scope="module")
def prometheus(organisation: Organisation) -> Iterator[RealPrometheus]:
    """A real Prometheus with the organization's metrics, and a sample limit that requires splitting queries."""
    neighbours = organisation.openmetrics([DAY - timedelta(days=1), DAY + timedelta(days=1)], [CFU_MINUTES])
    arguments = ("--query.max-samples=60000",)
    with RealPrometheus(organisation.openmetrics([DAY]), neighbours, arguments=arguments) as server:
        yield server


def test_the_same_usage_as_the_generators_own_numbers(prometheus: RealPrometheus, organisation: Organisation) -> None:
    """Bytes per principal and CFU minutes per owner, through a real Prometheus, are exactly what was generated."""
    with asking(prometheus) as queries:
        measured = queries.day(DAY, MEASURES, everything(organisation))
    found = rows(MeasuredUsage(with_owners(DAY, measured.table, everything(organisation))))
    expected: dict[tuple[str, str, str], Decimal] = {}
    for measure, metric in (("bytes_in", REQUEST_BYTES), ("bytes_out", RESPONSE_BYTES)):
        for (cluster, principal), value in truth(organisation, metric, ("kafka_id", "principal_id")).items():
            expected[measure, cluster, principal] = value
    owners = {(each.pool, each.name): each.principal for each in organisation.inventory.statements if each.listed}
    for group, value in truth(organisation, CFU_MINUTES, ("compute_pool_id", "flink_statement_name")).items():
        key = ("flink_cfu_minutes", group[0], owners.get((group[0], group[1])) or "UNALLOCATED")
        expected[key] = expected.get(key, Decimal(0)) + value
    assert found == expected
    assert any(subject == "UNALLOCATED" for _, _, subject in found)


def test_topics_are_those_of_the_generator(prometheus: RealPrometheus, organisation: Organisation) -> None:
    """Bytes and retained bytes per topic are exact; excluded topics are omitted."""
    with asking(prometheus) as queries:
        found = rows(queries.topics(DAY, TopicSettings(enabled=True)))
    settings = TopicSettings()
    expected = {
        (measure, cluster, topic): value
        for measure, metric in (
            ("topic_bytes_in", RECEIVED_BYTES),
            ("topic_bytes_out", SENT_BYTES),
            ("topic_retained_bytes", RETAINED_BYTES),
        )
        for (cluster, topic), value in truth(organisation, metric, ("kafka_id", "topic")).items()
        if not settings.excludes(topic)
    }
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert abs(found[key] - value) <= Decimal("0.000001"), key
    assert not any(topic == "__consumer_offsets" for _, _, topic in found)


def test_other_organizations_on_the_same_metrics_source_do_not_count(
    prometheus: RealPrometheus, organisation: Organisation
) -> None:
    """Only resources of the inventory are measured."""
    cluster = organisation.inventory.clusters[0].id
    with asking(prometheus) as queries:
        found = rows(queries.day(DAY, ("bytes_in",), Inventory((Resource(cluster, "kafka_cluster"),))))
    assert {resource for _, resource, _ in found} == {cluster}


def test_a_day_without_metrics_has_no_rows(prometheus: RealPrometheus, organisation: Organisation) -> None:
    """A day without samples has no rows, rather than rows of zero."""
    with asking(prometheus) as queries:
        assert not rows(queries.day(DAY - timedelta(days=5), MEASURES, everything(organisation)))


def sample(name: str, labels: str, value: str, minute: int = 0) -> str:
    """Return a sample of the day as text."""
    return f"{name}{{{labels}}} {value} {int(MIDNIGHT.timestamp()) + 60 * minute}\n"


@pytest.fixture(scope="module")
def odd() -> Iterator[RealPrometheus]:
    """A metrics source with renamed metrics and labels, and with unusual values."""
    text = "# TYPE in_bytes gauge\n"
    text += sample("in_bytes", 'job="a",cluster="lkc-1",who="User:sa-1",type="Fetch"', "1.5")
    text += sample("in_bytes", 'job="a",cluster="lkc-1",who="sa-1",type="Produce"', "2.25", 1439)
    text += sample("in_bytes", 'job="a",cluster="lkc-1",who="sa-zero"', "0")
    text += sample("in_bytes", 'job="a",cluster="lkc-1",who="sa-minus"', "-4")
    text += sample("in_bytes", 'job="a",cluster="lkc-1",who="sa-nan"', "NaN")
    text += sample("in_bytes", 'job="a",cluster="lkc-1"', "1000")
    text += sample("in_bytes", 'job="b",cluster="lkc-1",who="sa-1"', "1000000")
    text += sample("in_bytes", 'job="a",cluster="lkc-1",who="sa-1",type="next day"', "500", 1440)
    text += "# TYPE confluent_kafka_server_retained_bytes gauge\n"
    for minute in range(60):
        text += sample("confluent_kafka_server_retained_bytes", 'kafka_id="lkc-1",topic="long"', "100", minute)
        if minute < 15:
            text += sample("confluent_kafka_server_retained_bytes", 'kafka_id="lkc-1",topic="short"', "100", minute)
    with RealPrometheus(text + "# EOF\n") as server:
        yield server


@pytest.mark.usefixtures("process")
def test_names_of_metrics_and_labels_are_the_tenants(odd: RealPrometheus) -> None:
    """Renamed metrics and labels, matchers, and two spellings of a principal give one total; invalid values are
    counted."""
    metrics = MetricNames(bytes_in='in_bytes{job="a"}')
    labels = LabelNames(kafka_id="cluster", principal_id="who")
    with asking(odd, metrics, labels) as queries:
        measured = queries.day(DAY, ("bytes_in",), Inventory((Resource("lkc-1", "kafka_cluster"),)))
    assert rows(measured) == {
        ("bytes_in", "lkc-1", "sa-1"): Decimal("3.75"),
        ("bytes_in", "lkc-1", "sa-zero"): Decimal(0),
    }
    assert measured.dropped == 2


@pytest.mark.usefixtures("process")
def test_a_topic_that_lived_shorter_weighs_less(odd: RealPrometheus) -> None:
    """Retained bytes are averaged over the whole day, so that a topic with few samples weighs less."""
    with asking(odd) as queries:
        found = rows(queries.topics(DAY, TopicSettings(enabled=True)))
    assert found == {
        ("topic_retained_bytes", "lkc-1", "long"): Decimal("4.166667"),
        ("topic_retained_bytes", "lkc-1", "short"): Decimal("1.041667"),
    }


@pytest.mark.usefixtures("process")
def test_metrics_that_cannot_be_reached_are_unavailable() -> None:
    """An unavailable metrics source is an error, not usage of zero."""
    with RealPrometheus("# EOF\n") as server:
        url = server.url
    limits = Limits(attempts=2, first_backoff_seconds=0.01)
    with PrometheusClient(MetricsSettings(url=url), stop=Event(), limits=limits) as client:
        queries = UsageQueries(WindowSums(client), MetricNames(), LabelNames())
        with pytest.raises(SourceUnavailable):
            queries.day(DAY, ("bytes_in",), Inventory())


def kept(**totals: dict[tuple[str, str], int]) -> MeasuredUsage:
    """Return stored usage."""
    given: dict[str, Totals] = {
        name: {group: Decimal(value) for group, value in each.items()} for name, each in totals.items()
    }
    return MeasuredUsage(usage_table(DAY, given))


def test_statements_are_kept_by_name_and_get_their_owners_later() -> None:
    """Usage measured while a statement was unknown is assigned to its owner once the inventory has the statement."""
    usage = kept(flink_cfu_minutes_by_statement={("lfcp-1", "job"): 5, ("lfcp-1", "new"): 2}, bytes_in={("c", "sa"): 1})
    known = Inventory((statement("sa-1", uid="1"),))
    nobody = ("flink_cfu_minutes", "lfcp-1", "UNALLOCATED")
    of_bytes = ("bytes_in", "c", "sa")
    found = rows(MeasuredUsage(with_owners(DAY, usage.table, Inventory())))
    assert found == {nobody: Decimal(7), of_bytes: Decimal(1)}
    found = rows(MeasuredUsage(with_owners(DAY, usage.table, known)))
    assert found == {("flink_cfu_minutes", "lfcp-1", "sa-1"): Decimal(5), nobody: Decimal(2), of_bytes: Decimal(1)}


def test_evidence_of_an_earlier_version_keeps_its_owners_until_there_is_better() -> None:
    """Usage that was stored by owner is kept unless the known statements of its pool add up to at least as much."""
    formerly = {("lfcp-1", "UNALLOCATED"): 5, ("lfcp-2", "sa-9"): 3}
    known = Inventory((statement("sa-1", uid="1"),))
    assert with_owners(DAY, kept(flink_cfu_minutes=formerly).table, known) == kept(flink_cfu_minutes=formerly).table
    by_name = {("lfcp-1", "job"): 5, ("lfcp-2", "x"): 2}
    both = kept(flink_cfu_minutes=formerly, flink_cfu_minutes_by_statement=by_name)
    found = rows(MeasuredUsage(with_owners(DAY, both.table, known)))
    assert found == {("flink_cfu_minutes", "lfcp-1", "sa-1"): 5, ("flink_cfu_minutes", "lfcp-2", "sa-9"): 3}


def statement(owner: str | None, *, uid: str, created: date | None = None, deleted: date | None = None) -> Resource:
    """Return a statement named `job` in a pool."""

    def instant(day: date | None) -> datetime | None:
        return None if day is None else datetime(day.year, day.month, day.day, 12, tzinfo=UTC)

    return Resource(
        uid, "flink_statement", "job", "lfcp-1", owner, created_at=instant(created), deleted_at=instant(deleted)
    )


@pytest.mark.parametrize(
    ("statements", "owner"),
    [
        ([statement("sa-1", uid="1")], "sa-1"),
        ([statement(None, uid="1")], "UNALLOCATED"),
        ([], "UNALLOCATED"),
        ([statement("sa-1", uid="1"), statement("sa-1", uid="2")], "sa-1"),
        ([statement("sa-1", uid="1"), statement("sa-2", uid="2")], "UNALLOCATED"),
        ([statement("sa-1", uid="1", deleted=DAY - timedelta(days=1)), statement("sa-2", uid="2")], "sa-2"),
        ([statement("sa-1", uid="1"), statement("sa-2", uid="2", created=DAY + timedelta(days=1))], "sa-1"),
    ],
)
def test_whose_statement_it_was(statements: list[Resource], owner: str) -> None:
    """Only statements that existed on that day count; if their owners differ, the usage is unallocated."""
    assert statement_owners(Inventory(tuple(statements)), DAY)(("lfcp-1", "job")) == owner


def test_what_is_measured_late_is_still_the_statements() -> None:
    """Usage shortly after a statement ended belongs to its owner, unless another statement has the same name by
    then."""
    ended = Resource("1", "flink_statement", "job", "lfcp-1", "sa-1", deleted_at=MIDNIGHT - timedelta(seconds=30))
    long_ended = replace(ended, deleted_at=MIDNIGHT - timedelta(hours=2))
    following = Resource("2", "flink_statement", "job", "lfcp-1", "sa-2", created_at=MIDNIGHT + timedelta(minutes=5))

    def owner(*statements: Resource) -> str:
        return statement_owners(Inventory(statements), DAY)(("lfcp-1", "job"))

    assert (owner(ended), owner(long_ended), owner(ended, following)) == ("sa-1", "UNALLOCATED", "sa-2")


@pytest.mark.parametrize(
    ("metric", "selector"),
    [("m", 'm{a!=""}'), ("m{}", 'm{a!=""}'), ('m{x="1",}', 'm{x="1",a!=""}'), ('m{x="1"}', 'm{x="1",a!=""}')],
)
def test_selectors(metric: str, selector: str) -> None:
    """The matchers of a configured metric are combined with ours."""
    assert select(metric, ("a",)) == selector
