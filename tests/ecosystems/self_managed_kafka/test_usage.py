"""Who used the cluster, from a real Prometheus."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from chargeback.ecosystems.contract import TenantContext
from chargeback.model.inventory import Inventory
from tests.ecosystems.self_managed_kafka.conftest import DAY, IN, MIB, RATES, gatherer
from tests.support.prometheus import RealPrometheus

A_DAY = 1440 * MIB
QUOTAS = {"preset": "confluent_jmx", "matchers": 'job="kafka-quota"', "principals": "quotas"}


def usage(context: TenantContext, prometheus: RealPrometheus, **more: Any) -> dict[tuple[str, str], Decimal]:
    """The day's usage by measure and identity."""
    with gatherer(context, prometheus.url, **more) as opened:
        table = opened.usage(DAY, Inventory()).table
    rows = table.to_pylist()
    assert {row["resource_id"] for row in rows} <= {"kafka-prod"}
    return {(row["measure"], row["subject"]): row["value"] for row in rows}


def test_bytes_of_each_principal(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Each principal has what it wrote and read; what was read by nobody in particular is nobody's."""
    assert usage(context, prometheus) == {
        ("bytes_in", "alice"): Decimal(3 * A_DAY),
        ("bytes_in", "bob"): Decimal(A_DAY),
        ("bytes_out", "UNALLOCATED"): Decimal(2 * A_DAY),
        ("bytes_out", "carol"): Decimal(2 * A_DAY),
    }


def test_bytes_of_each_kind(context: TenantContext, prometheus: RealPrometheus) -> None:
    """What a kind of topics costs is split by its own traffic, and what the others cost by theirs."""
    kinds = {"label": "topic", "rates": {"payments": {}}}
    found = usage(context, prometheus, cost_model={**RATES, "topic_kinds": kinds})
    assert found == {
        ("bytes_in_other", "alice"): Decimal(3 * A_DAY),
        ("bytes_in_other", "bob"): Decimal(A_DAY),
        ("bytes_out_other", "carol"): Decimal(2 * A_DAY),
    }


def test_rates_of_quotas_become_bytes(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Five bytes a second are 432,000 a day; who only has a rate of zero has a row of zero."""
    assert usage(context, prometheus, metric_names=QUOTAS) == {
        ("bytes_in", "dora"): Decimal(5 * 86_400),
        ("bytes_in", "emil"): Decimal(15 * 86_400),
        ("bytes_out", "dora"): Decimal(0),
        ("bytes_out", "emil"): Decimal(0),
    }


def test_counters_that_name_nobody(context: TenantContext, prometheus: RealPrometheus) -> None:
    """The rule files give byte counters no principal: then there is no usage, rather than usage of nobody."""
    plain = QUOTAS | {"principals": "counters"}
    assert usage(context, prometheus, metric_names=plain) == {}


def test_a_discovery_query_makes_active(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Everybody whom the tenant's own query saw at some step of the day was there."""
    found = usage(context, prometheus, identity_source={"discovery_query": f'{IN}{{job="kafka-prod"}}'})
    presence = {subject: value for (measure, subject), value in found.items() if measure == "presence"}
    assert presence == {"alice": Decimal(24), "bob": Decimal(24)}


def test_a_policy_may_ask_for_presence(context: TenantContext, prometheus: RealPrometheus) -> None:
    """Without a query of the tenant's own the built-in one tells who was there; what no policy asks for is not
    measured."""
    presence = {"portions": [{"share": "1", "try": ["usage(presence)"]}]}
    types = ("COMPUTE", "STORAGE", "NETWORK_INGRESS", "NETWORK_EGRESS")
    found = usage(context, prometheus, allocation_policies={f"SELF_KAFKA_{name}": presence for name in types})
    assert found == {("presence", name): Decimal(24) for name in ("alice", "bob", "carol")}
