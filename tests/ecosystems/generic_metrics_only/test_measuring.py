"""Bill and usage of one day, from the tenant's own queries of a real Prometheus."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from chargeback.ecosystems.contract import TenantContext
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory
from tests.ecosystems.generic_metrics_only.conftest import DAY, NETWORK, SERVER, STATIC, STORAGE, gatherer
from tests.support.clock import TODAY
from tests.support.prometheus import RealPrometheus

JUST_DAY = DayRange(DAY, DAY + timedelta(days=1))


def bill(context: TenantContext, prometheus: RealPrometheus, **more: Any) -> dict[str, tuple[Decimal, str]]:
    """Return quantity and unit by product type; the day must have no error."""
    with gatherer(context, prometheus.url, **more) as opened:
        (found,) = opened.billing(JUST_DAY)
    assert found.error is None
    return {line.product_type: (line.quantity or Decimal(0), line.unit or "") for line in found.lines}


def usage(context: TenantContext, prometheus: RealPrometheus, **more: Any) -> dict[tuple[str, str], Decimal]:
    """Return the day's usage by measure and identity."""
    with gatherer(context, prometheus.url, **more) as opened:
        rows = opened.usage(DAY, Inventory()).table.to_pylist()
    return {(row["measure"], row["subject"]): row["value"] for row in rows}


def test_the_three_kinds_of_quantity(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Fixed units count their hours, a gauge its mean (4 GiB for half a day are 2), traffic its sum."""
    assert bill(context, prometheus) == {
        "PG_SERVER": (Decimal(48), "hour"),
        "PG_STORAGE": (Decimal((30 + 2) * 24), "GiB-hour"),
        "PG_NETWORK": (Decimal("5.625"), "GiB"),
    }


def test_several_series_are_added_up(context: TenantContext, prometheus: RealPrometheus) -> None:
    """If a query returns several series, their sum counts."""
    each = STORAGE | {"cost_quantity": {"type": "storage_gib", "query": "pg_database_size_bytes"}}
    assert bill(context, prometheus, cost_types=[each]) == {"PG_STORAGE": (Decimal(768), "GiB-hour")}


@pytest.mark.parametrize("seconds", [900, 7200, 86400])
def test_the_step_replaces_its_placeholder(context: TenantContext, prometheus: RealPrometheus, seconds: int) -> None:
    """With any step, the windows cover the day exactly once, and the sum is the same."""
    found = bill(context, prometheus, metrics_step_seconds=seconds, cost_types=[NETWORK])
    assert abs(found["PG_NETWORK"][0] - Decimal("5.625")) < Decimal("0.000000001")


def test_a_range_that_differs_bills_something_else(context: TenantContext, prometheus: RealPrometheus) -> None:
    """With a range of five minutes and a step of an hour, only a twelfth of the traffic is billed."""
    wrong = NETWORK | {"cost_quantity": {"type": "network_gib", "query": "sum(increase(pg_bytes_sent_total[5m]))"}}
    assert bill(context, prometheus, cost_types=[wrong])["PG_NETWORK"][0] == Decimal("0.46875")


def test_half_a_day_is_billed_by_what_was_seen(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A gauge that was measured for half the day has the mean of that half, and the line says so."""
    query = 'pg_database_size_bytes{datname="crm"}'
    half = STORAGE | {"cost_quantity": {"type": "storage_gib", "query": query}}
    with gatherer(context, prometheus.url, cost_types=[half]) as opened:
        (found,) = opened.billing(JUST_DAY)
    (line,) = found.lines
    assert (line.quantity, line.description) == (Decimal(96), "measured at 12 of 24 steps")


def test_a_day_without_samples_is_its_error(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A day before the metrics begin has no line and an error that names the cost type."""
    long_ago = TODAY - timedelta(days=30)
    with gatherer(context, prometheus.url) as opened:
        found = list(opened.billing(DayRange(long_ago, long_ago + timedelta(days=2))))
    assert [len(each.lines) for each in found] == [0, 0]
    assert all("no sample of PG_STORAGE" in (each.error or "") for each in found)


def test_usage_and_presence(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Usage is summed per label value, and is unowned without one; an identity that began at noon was present for
    twelve steps."""
    assert usage(context, prometheus) == {
        ("pg_network", "UNALLOCATED"): Decimal(1440 * 2**20),
        ("pg_network", "shop"): Decimal(3 * 1440 * 2**20),
        ("presence", "crm"): Decimal(12),
        ("presence", "shop"): Decimal(24),
    }


def test_a_label_of_its_own(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A cost type may be split by another label; if no series has it, there is no usage."""
    other = NETWORK | {"allocation_label": "usename"}
    found = usage(context, prometheus, cost_types=[other])
    assert {measure for measure, _ in found} == {"presence"}


def test_without_metrics(context: TenantContext) -> None:
    """Fixed costs of static identities need no metrics source."""
    with gatherer(context, None, identity_source=STATIC, cost_types=[SERVER]) as opened:
        (found,) = opened.billing(JUST_DAY)
        assert [line.total_cost for line in found.lines] == [Decimal("5.76")]
        assert opened.usage(DAY, Inventory()).table.num_rows == 0
        assert [finding.ok for finding in opened.check()] == [True]


def test_what_is_free_is_not_measured(context: TenantContext, prometheus: RealPrometheus) -> None:
    """A rate of zero needs no samples."""
    free = STORAGE | {"rate": "0", "cost_quantity": {"type": "storage_gib", "query": "no_such_metric"}}
    assert bill(context, prometheus, cost_types=[SERVER, free]).keys() == {"PG_SERVER"}
