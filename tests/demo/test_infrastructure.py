"""The estate: everything that can be billed."""

from __future__ import annotations

from datetime import date

from chargeback.demo.metrics import CFU_MINUTES
from chargeback.demo.organisation import DemoSpec, Organisation

DAY = date(2026, 11, 12)


def test_every_kind_of_cluster_is_there(organisation: Organisation) -> None:
    """Four environments, clusters of all five kinds, one of them deleted in time."""
    inventory = organisation.inventory
    assert [item.name for item in inventory.environments] == ["prod", "staging", "dev", "analytics"]
    kinds = {item.kind for item in inventory.clusters}
    assert kinds == {"Basic", "Standard", "Dedicated", "Enterprise", "Freight"}
    assert [item.name for item in inventory.clusters if item.deleted is not None] == ["sandbox-old"]


def test_connectors_tell_their_owner_in_all_ways() -> None:
    """By service account, by undisclosed key, not at all, and custom ones."""
    usual = Organisation.generate(DemoSpec(today=DAY))
    assert {item.auth for item in usual.inventory.connectors} == {"service_account", "api_key", "absent", "custom"}


def test_statements_have_owners_of_all_kinds() -> None:
    """Owners are service accounts, users, pools, one that is not disclosed, and one that only the metrics know."""
    usual = Organisation.generate(DemoSpec(today=date(2026, 11, 20)))
    statements = usual.inventory.statements
    kinds = {str(item.principal).partition("-")[0] for item in statements}
    assert kinds == {"sa", "u", "pool", "None"}
    measured = {labels["flink_statement_name"] for labels, _ in usual.usage(CFU_MINUTES, DAY)}
    assert {item.name for item in statements if not item.listed} <= measured
    assert len({pool.region for pool in usual.inventory.compute_pools}) == 2


def test_links_and_tableflow_lie_on_living_clusters(organisation: Organisation) -> None:
    """Cluster links and Tableflow name clusters that are listed."""
    listed = {item.id for item in organisation.listed(organisation.inventory.clusters)}
    assert organisation.inventory.links
    assert {link.cluster for link in organisation.inventory.links} <= listed
    assert set(organisation.inventory.tableflow) <= listed
