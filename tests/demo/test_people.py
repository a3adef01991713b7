"""People of the demo: accounts that are created and deleted, and their teams."""

from __future__ import annotations

from datetime import timedelta

from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.people import TEAMS, team_of


def test_accounts_come_and_go(organisation: Organisation, spec: DemoSpec) -> None:
    """One service account is deleted and one is created in the first days; both used a cluster."""
    accounts = organisation.inventory.service_accounts
    gone = [item for item in accounts if not item.listed_on(spec.today)]
    assert accounts[-1] in gone
    assert accounts[-1].existed_on(spec.first_day)
    assert accounts[-2].created.date() == spec.first_day + timedelta(days=4)
    members = organisation.inventory.members[organisation.inventory.clusters[0].id]
    assert {accounts[-1].id, accounts[-2].id} <= {member.principal for member in members}


def test_ids_are_unique(organisation: Organisation) -> None:
    """No two objects share an id."""
    inventory = organisation.inventory
    lists = (inventory.users, inventory.service_accounts, inventory.pools, inventory.providers, inventory.api_keys)
    ids = [item.id for items in lists for item in items]
    assert len(set(ids)) == len(ids)
    assert len({user.email for user in inventory.users}) == len(inventory.users)


def test_some_have_no_team() -> None:
    """A name that begins with a team belongs to that team; other names get a random team, the same one for the same
    seed."""
    names = {f"sa-{number}": f"{TEAMS[number % len(TEAMS)]}-api-{number:03d}" for number in range(60)}
    teams = {who: team_of(7, who, name) for who, name in names.items()}
    assert 0 < sum(team is None for team in teams.values()) < 20
    assert all(team in {None, names[who].partition("-")[0]} for who, team in teams.items())
    assert teams == {who: team_of(7, who, name) for who, name in names.items()}
    assert {team_of(7, f"u-{number}", "Ada Moreau") for number in range(200)} == {None, *TEAMS}
