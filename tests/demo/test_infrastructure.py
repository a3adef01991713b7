"""The infrastructure: everything that can be billed."""

from __future__ import annotations

from datetime import date

from chargeback.demo.metrics import CFU_MINUTES
from chargeback.demo.organisation import DemoSpec, Organisation

DAY = date(2026, 11, 12)


def test_every_kind_of_cluster_is_there(organisation: Organisation) -> None:
    """There are four environments and clusters of all five kinds, one of which is deleted."""
    inventory = organisation.inventory
    assert [item.name for item in inventory.environments] == ["prod", "staging", "dev", "analytics"]
    kinds = {item.kind for item in inventory.clusters}
    assert kinds == {"Basic", "Standard", "Dedicated", "Enterprise", "Freight"}
    assert [item.name for item in inventory.clusters if item.deleted is not None] == ["sandbox-old"]


def test_connectors_tell_their_owner_in_all_ways() -> None:
    """Connectors have a service account, an undisclosed key, no owner, or custom authentication."""
    usual = Organisation.generate(DemoSpec(today=DAY))
    assert {item.auth for item in usual.inventory.connectors} == {"service_account", "api_key", "absent", "custom"}


def test_statements_have_owners_of_all_kinds() -> None:
    """Owners are service accounts, users, pools, and an undisclosed one; some statements appear only in the metrics."""
    usual = Organisation.generate(DemoSpec(today=date(2026, 11, 20)))
    statements = usual.inventory.statements
    kinds = {str(item.principal).partition("-")[0] for item in statements}
    assert kinds == {"sa", "u", "pool", "None"}
    measured = {labels["flink_statement_name"] for labels, _ in usual.usage(CFU_MINUTES, DAY)}
    assert {item.name for item in statements if not item.listed} <= measured
    assert len({pool.region for pool in usual.inventory.compute_pools}) == 2


def test_links_and_tableflow_lie_on_living_clusters(organisation: Organisation) -> None:
    """Cluster links and Tableflow refer to listed clusters."""
    listed = {item.id for item in organisation.listed(organisation.inventory.clusters)}
    assert organisation.inventory.links
    assert {link.cluster for link in organisation.inventory.links} <= listed
    assert set(organisation.inventory.tableflow) <= listed
