"""Membership: keys, principals and topics."""

from __future__ import annotations

from datetime import date

from chargeback.demo.metrics import REQUEST_BYTES
from chargeback.demo.organisation import DemoSpec, Organisation

TODAY = date(2026, 11, 20)


def test_keys_open_every_kind_of_resource() -> None:
    """There are Cloud, Global, Kafka, Schema Registry, Flink and ksqlDB keys, of users and service accounts."""
    usual = Organisation.generate(DemoSpec(today=TODAY))
    listed = usual.listed(usual.inventory.api_keys)
    assert {key.resource_kind for key in listed} == {"Cloud", "Global", "Cluster", "SchemaRegistry", "Region", "ksqlDB"}
    assert {key.owner_kind for key in listed} == {"User", "ServiceAccount"}


def test_a_key_outlives_its_owner(organisation: Organisation) -> None:
    """A listed key has an owner that is no longer listed."""
    listed = {item.id for item in organisation.listed(organisation.inventory.service_accounts)}
    listed |= {item.id for item in organisation.inventory.users}
    assert any(key.owner not in listed for key in organisation.listed(organisation.inventory.api_keys))


def test_metrics_name_a_principal_nobody_knows(organisation: Organisation) -> None:
    """One principal has traffic but is not in the inventory; identity pools have traffic without keys."""
    inventory = organisation.inventory
    known = {item.id for items in (inventory.users, inventory.service_accounts, inventory.pools) for item in items}
    principals = {labels["principal_id"] for labels, _ in organisation.usage(REQUEST_BYTES, date(2026, 11, 12))}
    assert len(principals - known) == 1
    assert any(principal.startswith("pool-") for principal in principals)


def test_some_members_are_idle() -> None:
    """A member without traffic still has a key."""
    usual = Organisation.generate(DemoSpec(today=TODAY))
    keys = {(key.resource, key.owner) for key in usual.inventory.api_keys}
    idle = [one for found in usual.inventory.members.values() for one in found if not one.written and not one.read]
    assert idle
    assert all((member.cluster, member.principal) in keys for member in idle)


def test_members_are_there_once(organisation: Organisation) -> None:
    """No principal appears twice on one cluster."""
    for members in organisation.inventory.members.values():
        assert len({member.principal for member in members}) == len(members)
