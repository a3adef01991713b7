"""The common part of ecosystems with constructed costs, tested with a minimal one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.bill import Charge, LineDefaults, gather
from chargeback.ecosystems.constructed.meter import Shares
from chargeback.ecosystems.constructed.plugin import (
    ConstructedEcosystem,
    ConstructedGatherer,
    measured_usage,
    range_warning,
    series_of,
)
from chargeback.ecosystems.constructed.settings import ConstructedSettings
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.ecosystems.findings import attempt
from chargeback.ecosystems.self_managed_kafka import ecosystem as kafka
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.model.money import parse_decimal
from chargeback.model.usage import USAGE
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.openmetrics import Scrapes
from tests.support.prometheus import RealPrometheus

DAY = date(2026, 3, 1)
CLOSED: list[str] = []


def start(context: TenantContext, settings: ConstructedSettings) -> ConstructedGatherer:
    """Open a gatherer for one machine at ten a day, which ann uses."""
    connections = ExitStack()
    connections.callback(CLOSED.append, context.tenant_name)
    return ConstructedGatherer(
        connections,
        bill_of=partial(
            gather,
            charges=lambda _: [Charge("machines", "MACHINE", Fraction(1), "day", parse_decimal("10"))],
            defaults=LineDefaults.of(settings, "machine", context.currency),
        ),
        usage_of=lambda day: measured_usage(day, settings.cluster_id, {"hours": Shares({"ann": parse_decimal("1")})}),
        listing=lambda: ListedInventory(Inventory(), frozenset({"machine"})),
        checks=lambda: iter([Finding("machine", ok=True, detail="hums")]),
    )


MACHINES = ConstructedEcosystem(
    "machines", ConstructedSettings, PolicyCatalogue({}, {}), lambda _: PolicyCatalogue({}, {"M": "MACHINE"}), start
)
SETTINGS = ConstructedSettings(cluster_id="m-1", display_name="Big one", chargeback_granularity="hourly")


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant with the currency SEK."""
    return TenantContext("acme", "acme-id", "SEK", DAY, Event(), str(tmp_path))


def test_everything_is_billed_for_the_one_resource(context: TenantContext) -> None:
    """Lines have the resource of the settings, the configured granularity, and the tenant's currency."""
    with MACHINES.open(context, SETTINGS) as opened:
        (gathered,) = opened.billing(DayRange(DAY, DAY + timedelta(days=1)))
    assert len(gathered.lines) == 24
    assert {(line.resource_id, line.resource_type, line.resource_name, line.currency) for line in gathered.lines} == {
        ("m-1", "machine", "Big one", "SEK")
    }


def test_what_the_ecosystem_gives_is_what_is_asked(context: TenantContext) -> None:
    """Usage, inventory and findings come from the ecosystem; there are no topics."""
    with MACHINES.open(context, SETTINGS) as opened:
        assert opened.usage(DAY, Inventory()).table.column("subject").to_pylist() == ["ann"]
        assert opened.topics(DAY).table.num_rows == 0
        assert opened.inventory().complete == {"machine"}
        assert [finding.detail for finding in opened.check()] == ["hums"]


def test_connections_are_closed_at_the_end(context: TenantContext) -> None:
    """Leaving the ``with`` block closes the connections, also after an error."""
    CLOSED.clear()
    with pytest.raises(ZeroDivisionError), MACHINES.open(context, SETTINGS):
        Fraction(1, 0)
    assert CLOSED == ["acme"]


def test_settings_of_another_ecosystem_are_refused(context: TenantContext) -> None:
    """Settings of another ecosystem's model are an error."""
    assert MACHINES.tenant_catalogue(SETTINGS).aliases == {"M": "MACHINE"}
    with pytest.raises(TypeError, match="not settings of self_managed_kafka: ConstructedSettings"):
        kafka.open(context, SETTINGS)
    with pytest.raises(TypeError, match="not settings of machines: PluginSettings"):
        MACHINES.tenant_catalogue(PluginSettings())


def test_there_is_no_billing_api() -> None:
    """The capabilities say that costs are constructed and that all listed identities pay."""
    assert MACHINES.capabilities.constructs_costs
    assert any("principal" in tier for tier in MACHINES.capabilities.payer_tiers)


HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """Two series that are scraped until now, and one that ended three hours ago."""
    seen = Scrapes(TODAY - timedelta(days=1), TODAY)
    now = (NOW - seen.start) // timedelta(minutes=1)
    for name in "ab":
        seen.gauge("there", {"a": name}, lambda minute: 1 if minute <= now else None)
    seen.gauge("gone", {}, lambda minute: 1 if minute <= now - 180 else None)
    with RealPrometheus(seen.text()) as server:
        yield server


def test_a_query_without_series_is_a_finding(prometheus: RealPrometheus) -> None:
    """A query without series is a warning if it had some within the last day, else a failure."""
    with PrometheusClient(MetricsSettings(url=prometheus.url), stop=Event()) as client:
        asked = [
            partial(series_of, client, query, FixedClock()) for query in ("there", "sum(gone) # bytes", "sum(never)")
        ]
        now, gone, never = (attempt("x", question) for question in asked)
    assert (now.ok, now.warning, now.detail) == (True, False, "2 series now")
    assert (gone.ok, gone.warning) == (True, True)
    assert "no series now, but 1 within the last day" in gone.detail
    assert (never.ok, never.warning) == (False, False)
    assert "neither now nor within the last day" in never.detail


def test_a_range_that_differs_from_the_step_is_warned_of() -> None:
    """A query that sums a range of five minutes at steps of an hour misses eleven twelfths, which is a warning."""
    warning = range_warning("PG_NETWORK", "sum(increase(sent[5m]))", HOUR)
    assert warning is not None
    assert (warning.ok, warning.warning) == (True, True)
    assert "[5m] differs from metrics_step_seconds (3600)" in warning.detail
    assert range_warning("PG_NETWORK", "sum(increase(sent[{step}]))", HOUR) is None


MEASURED_DAY = date(2026, 11, 10)


def rows(**measures: Shares) -> list[tuple[str, str, str, Decimal]]:
    """Return the rows without the date."""
    table = measured_usage(MEASURED_DAY, "kafka-prod", measures).table
    assert table.schema.equals(USAGE)
    return [(row["measure"], row["resource_id"], row["subject"], row["value"]) for row in table.to_pylist()]


def test_each_measure_by_identity() -> None:
    """Rows are ordered by measure and identity; a series of zeros has a row of zero."""
    found = rows(bytes_out=Shares({"carol": Decimal(7)}), bytes_in=Shares({"bob": Decimal(0), "alice": Decimal("1.5")}))
    assert found == [
        ("bytes_in", "kafka-prod", "alice", Decimal("1.5")),
        ("bytes_in", "kafka-prod", "bob", Decimal(0)),
        ("bytes_out", "kafka-prod", "carol", Decimal(7)),
    ]


def test_what_belongs_to_nobody_keeps_its_weight() -> None:
    """If other series have an identity, usage without one is unowned and keeps its weight."""
    found = rows(bytes_in=Shares({"alice": Decimal(3), "": Decimal(4), "UNALLOCATED": Decimal(1)}))
    assert [(subject, value) for _, _, subject, value in found] == [
        ("UNALLOCATED", Decimal(5)),
        ("alice", Decimal(3)),
    ]


def test_a_metric_that_names_nobody_measured_nothing() -> None:
    """If no series has a label value, there is no usage, so that the next method applies instead of UNALLOCATED."""
    assert rows(bytes_in=Shares({"": Decimal(4)})) == []


def test_dropped_values_are_counted() -> None:
    """Dropped values are summed over the measures."""
    measured = measured_usage(MEASURED_DAY, "c", {"bytes_in": Shares({}, 2), "bytes_out": Shares({}, 3)})
    assert measured.dropped == 5
