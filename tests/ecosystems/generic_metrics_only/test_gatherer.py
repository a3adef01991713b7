"""A system known by its metrics: inventory, granularity, and the findings of ``check``."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.generic_metrics_only.gatherer import catalogue, tenant_catalogue
from chargeback.model.days import DayRange
from chargeback.model.money import total
from tests.ecosystems.generic_metrics_only.conftest import DAY, DISCOVERED, NETWORK, STATIC, gatherer, settings_for
from tests.support.kafka import closed_port
from tests.support.processes import free_port
from tests.support.prometheus import RealPrometheus


def test_the_inventory(context: TenantContext, prometheus: RealPrometheus) -> None:
    """The inventory has one resource, and the identities that the discovery query returns."""
    with gatherer(context, prometheus.url, display_name="Orders database") as opened:
        found = opened.inventory()
    (resource,) = found.inventory.resources
    assert (resource.resource_id, resource.resource_type, resource.display_name) == (
        "pg-main",
        "metrics_system",
        "Orders database",
    )
    assert [(each.identity_id, each.metadata["team"]) for each in found.inventory.identities] == [
        ("crm", "UNASSIGNED"),
        ("shop", "UNASSIGNED"),
    ]
    assert (found.complete, found.partial) == (frozenset({"metrics_system"}), frozenset({"principal"}))
    assert found.failures == {}


def test_static_identities_need_no_metrics(context: TenantContext) -> None:
    """Configured identities are listed without a query."""
    url = f"http://127.0.0.1:{closed_port()}"
    with gatherer(context, url, identity_source=STATIC) as opened:
        found = opened.inventory()
    assert [each.identity_id for each in found.inventory.identities] == ["team-a"]
    assert found.failures == {}


def test_hourly_lines(context: TenantContext, prometheus: RealPrometheus) -> None:
    """With ``chargeback_granularity: hourly``, each line is split into 24 with the same sum."""
    day = DayRange(DAY, DAY + timedelta(days=1))
    with (
        gatherer(context, prometheus.url) as daily,
        gatherer(context, prometheus.url, chargeback_granularity="hourly") as hourly,
    ):
        (whole,), (parts,) = daily.billing(day), hourly.billing(day)
    assert len(parts.lines) == 24 * len(whole.lines)
    for line in whole.lines:
        costs = [part.total_cost for part in parts.lines if part.product_type == line.product_type]
        assert total(costs) == line.total_cost


def test_no_topics(context: TenantContext) -> None:
    """There are no topics."""
    with gatherer(context, "http://unused") as opened:
        assert opened.topics(DAY).table.num_rows == 0


def test_check(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Every query is checked once; a range that differs from the step is a warning, and a discovery without identities
    fails."""
    with gatherer(context, prometheus.url) as opened:
        right = list(opened.check())
    assert [finding.subject for finding in right] == [
        "PG_STORAGE cost_quantity",
        "PG_NETWORK cost_quantity",
        "PG_NETWORK allocation_query",
        "identities",
    ]
    assert all(finding.ok for finding in right)
    wrong = NETWORK | {"allocation_query": "sum by (datname) (increase(pg_bytes_sent_total[5m]))"}
    nobody = DISCOVERED | {"label": "usename"}
    with gatherer(context, prometheus.url, cost_types=[wrong], identity_source=nobody) as opened:
        found = list(opened.check())
    failed = {finding.subject: finding.detail for finding in found if not finding.ok}
    warned = {finding.subject: finding.detail for finding in found if finding.warning}
    assert "[5m] differs from metrics_step_seconds (3600)" in warned["PG_NETWORK allocation_query"]
    assert "no series with the label usename" in failed["identities"]


def test_a_source_that_is_away_is_one_finding(context: TenantContext) -> None:
    """If the metrics source is unavailable, one query fails, and the others are named as not tried."""
    with gatherer(context, f"http://127.0.0.1:{free_port()}") as opened:
        found = {finding.subject: finding for finding in opened.check()}
    assert [subject for subject, finding in found.items() if not finding.ok] == ["PG_STORAGE cost_quantity"]
    assert found["not tried"].detail == (
        "for the same reason: PG_NETWORK cost_quantity, PG_NETWORK allocation_query, identities"
    )


def test_the_bill_is_in_the_tenants_currency(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Rates are in the tenant's currency."""
    with gatherer(context, prometheus.url) as opened:
        (found,) = opened.billing(DayRange(DAY, DAY + timedelta(days=1)))
    assert {line.currency for line in found.lines} == {"EUR"}
    assert sum((line.total_cost for line in found.lines), Decimal(0)) > 5


EVEN = ["even(active)", "even(period)", "unallocated"]


def test_a_policy_per_cost_type() -> None:
    """``even_split`` divides evenly; ``usage_ratio`` divides first by the cost type's own measure."""
    found = tenant_catalogue(settings_for("http://p"))
    chains = {name: [str(method) for method in policy.portions[0].methods] for name, policy in found.policies.items()}
    assert chains == {"PG_SERVER": EVEN, "PG_STORAGE": EVEN, "PG_NETWORK": ["usage(pg_network)", *EVEN]}
    assert catalogue().policies == {}


def test_a_tenant_may_have_its_own() -> None:
    """``allocation_policies`` replaces the policy of the strategy."""
    own = {"PG_STORAGE": {"portions": [{"share": "1", "try": ["usage(presence)"]}]}}
    policy = tenant_catalogue(settings_for("http://p", allocation_policies=own)).find("PG_STORAGE")
    assert policy is not None
    assert str(policy.portions[0].methods[0]) == "usage(presence)"
