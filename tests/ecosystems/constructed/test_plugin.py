"""What ecosystems with constructed costs have in common, with one that is made of nothing else."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.bill import Charge, LineDefaults, gather
from chargeback.ecosystems.constructed.meter import Shares
from chargeback.ecosystems.constructed.plugin import ConstructedEcosystem, ConstructedGatherer, measured_usage
from chargeback.ecosystems.constructed.settings import ConstructedSettings
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.ecosystems.self_managed_kafka import ecosystem as kafka
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.model.money import parse_decimal

DAY = date(2026, 3, 1)
CLOSED: list[str] = []


def start(context: TenantContext, settings: ConstructedSettings) -> ConstructedGatherer:
    """One machine at ten a day, which ann uses."""
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
    """A tenant that pays in crowns."""
    return TenantContext("acme", "acme-id", "SEK", DAY, Event(), str(tmp_path))


def test_everything_is_billed_for_the_one_resource(context: TenantContext) -> None:
    """Lines carry the resource of the settings, their granularity, and the tenant's currency."""
    with MACHINES.open(context, SETTINGS) as opened:
        (gathered,) = opened.billing(DayRange(DAY, DAY + timedelta(days=1)))
    assert len(gathered.lines) == 24
    assert {(line.resource_id, line.resource_type, line.resource_name, line.currency) for line in gathered.lines} == {
        ("m-1", "machine", "Big one", "SEK")
    }


def test_what_the_ecosystem_gives_is_what_is_asked(context: TenantContext) -> None:
    """Usage, inventory and findings are the ecosystem's own; topics there are none."""
    with MACHINES.open(context, SETTINGS) as opened:
        assert opened.usage(DAY, Inventory()).table.column("subject").to_pylist() == ["ann"]
        assert opened.topics(DAY).table.num_rows == 0
        assert opened.inventory().complete == {"machine"}
        assert [finding.detail for finding in opened.check()] == ["hums"]


def test_connections_are_closed_at_the_end(context: TenantContext) -> None:
    """The end of the ``with`` closes what was opened, also when the work failed."""
    CLOSED.clear()
    with pytest.raises(ZeroDivisionError), MACHINES.open(context, SETTINGS):
        Fraction(1, 0)
    assert CLOSED == ["acme"]


def test_settings_of_another_ecosystem_are_refused(context: TenantContext) -> None:
    """An ecosystem works with settings of its own model only, and says so."""
    assert MACHINES.tenant_catalogue(SETTINGS).aliases == {"M": "MACHINE"}
    with pytest.raises(TypeError, match="not settings of self_managed_kafka: ConstructedSettings"):
        kafka.open(context, SETTINGS)
    with pytest.raises(TypeError, match="not settings of machines: PluginSettings"):
        MACHINES.tenant_catalogue(PluginSettings())


def test_there_is_no_billing_api() -> None:
    """The core is told that costs are constructed and that everybody who is named pays."""
    assert MACHINES.capabilities.constructs_costs
    assert any("principal" in tier for tier in MACHINES.capabilities.payer_tiers)
