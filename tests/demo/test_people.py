"""People: who is there, who leaves, who comes."""

from __future__ import annotations

from datetime import timedelta

from chargeback.demo.organisation import DemoSpec, Organisation


def test_accounts_come_and_go(organisation: Organisation, spec: DemoSpec) -> None:
    """One service account is deleted and one created in the first days; both worked on a cluster."""
    accounts = organisation.inventory.service_accounts
    gone = [item for item in accounts if not item.listed_on(spec.today)]
    assert accounts[-1] in gone
    assert accounts[-1].existed_on(spec.first_day)
    assert accounts[-2].created.date() == spec.first_day + timedelta(days=4)
    members = organisation.inventory.members[organisation.inventory.clusters[0].id]
    assert {accounts[-1].id, accounts[-2].id} <= {member.principal for member in members}


def test_ids_are_unique(organisation: Organisation) -> None:
    """No two things share an id."""
    inventory = organisation.inventory
    lists = (inventory.users, inventory.service_accounts, inventory.pools, inventory.providers, inventory.api_keys)
    ids = [item.id for things in lists for item in things]
    assert len(set(ids)) == len(ids)
    assert len({user.email for user in inventory.users}) == len(inventory.users)
