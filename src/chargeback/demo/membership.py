"""The members, keys and topics of clusters."""

from __future__ import annotations

import random
from datetime import date, datetime
from typing import Literal, TypeVar

from chargeback.demo.inventory import ApiKey, Cluster, DemoInventory, Member, Registry, Topic
from chargeback.demo.people import JOBS, TEAMS, GenerationPlan
from chargeback.demo.randomness import KEY_LETTERS
from chargeback.demo.sizes import FLINK_REGIONS
from chargeback.demo.traffic import RHYTHMS

KeyKind = Literal["Cloud", "Global", "Cluster", "SchemaRegistry", "Region", "ksqlDB"]
OwnerKind = Literal["User", "ServiceAccount"]
_T = TypeVar("_T")
SYSTEM_TOPICS = ("__consumer_offsets", "_schemas")


def add_membership(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add members, keys and topics of every cluster, then the keys of everything else."""
    for index, cluster in enumerate(inventory.clusters):
        inventory.members[cluster.id] = _members(plan, inventory, cluster, first=index == 0)
        inventory.topics[cluster.id] = _topics(plan, cluster)
    for registry in inventory.registries:
        _add_registry_keys(plan, inventory, registry)
    _add_other_keys(plan, inventory)


def _members(plan: GenerationPlan, inventory: DemoInventory, cluster: Cluster, *, first: bool) -> list[Member]:
    """Return service accounts and users with keys, pools without keys, and on the first cluster an unknown
    principal."""
    rng = plan.rng("members", cluster.id)
    count = max(2, plan.size_spec.members * rng.randrange(80, 121) // 100)
    people = max(1, count // 8)
    owners: list[tuple[str, OwnerKind, datetime, datetime | None]] = [
        (item.id, "ServiceAccount", item.created, item.deleted)
        for item in _sample(rng, inventory.service_accounts, count - people, always=2 if first else 0)
    ]
    owners += [
        (item.id, "User", item.created, item.deleted) for item in _sample(rng, inventory.users, people, always=0)
    ]
    weights = [_weight(rng) for _ in range(len(owners) + 2)]
    members = []
    for index, (owner, kind, created, deleted) in enumerate(owners):
        since = max(created, cluster.created)
        _add_keys(plan, inventory, rng, owner, kind, (cluster.id, "Cluster"), (since, deleted or cluster.deleted))
        until = None if deleted is None else deleted.date()
        members.append(_member(rng, cluster, owner, (since.date(), until), (weights[index], sum(weights))))
    if cluster.kind in ("Dedicated", "Enterprise", "Freight"):
        pool = inventory.pools[rng.randrange(len(inventory.pools))]
        members.append(
            _member(rng, cluster, pool.id, (pool.created.date(), None), (weights[-1], sum(weights)), role=80)
        )
    if first:
        unknown, since_ever = plan.ids.make("sa-"), (date(2000, 1, 1), None)
        members.append(_member(rng, cluster, unknown, since_ever, (weights[-2], sum(weights)), role=80))
    return members


def _sample(rng: random.Random, items: list[_T], count: int, *, always: int) -> list[_T]:
    """Return ``count`` random items, including the last ``always`` (the account that is deleted, for one)."""
    count = min(count, len(items))
    kept = items[len(items) - always :] if always else []
    return rng.sample(items[: len(items) - len(kept)], max(0, count - len(kept))) + kept


def _weight(rng: random.Random) -> int:
    """Return a random weight. Traffic is very unequal: a few principals cause most of it."""
    return (1 << rng.randrange(0, 11)) * rng.randrange(100, 200)


def _member(
    rng: random.Random,
    cluster: Cluster,
    principal: str,
    life: tuple[date, date | None],
    weight: tuple[int, int],
    role: int | None = None,
) -> Member:
    """Return a member: 30 % write, 30 % read, 30 % do both, 10 % have a key and are idle."""
    drawn = rng.randrange(100)
    role = drawn if role is None else role
    part, whole = weight
    written, read = cluster.written * part // whole, cluster.read * part // whole
    if role < 30:
        read //= 1000
    elif role < 60:
        written //= 500
    elif role >= 90:
        written = read = 0
    rhythm = RHYTHMS[rng.randrange(len(RHYTHMS))]
    return Member(
        cluster=cluster.id,
        principal=principal,
        since=life[0],
        until=life[1],
        written=written,
        read=read,
        rhythm=rhythm,
    )


def _add_keys(
    plan: GenerationPlan,
    inventory: DemoInventory,
    rng: random.Random,
    owner: str,
    owner_kind: OwnerKind,
    resource: tuple[str, KeyKind],
    life: tuple[datetime, datetime | None],
    environment: str | None = None,
) -> None:
    """Add one key, sometimes two (rotated: the old one is deleted). Keys are deleted with their owner, except every
    ninth."""
    created, deleted = life
    outlives = deleted is not None and (len(inventory.api_keys) % 9 == 0 or owner == inventory.service_accounts[-1].id)
    rotated = rng.randrange(6) == 0
    for number in range(2 if rotated else 1):
        born = created if number == 0 else plan.moment(rng.randrange(-40, 60), rng)
        gone = plan.moment(rng.randrange(60, 90), rng) if rotated and number == 0 else None
        gone = None if outlives else deleted if gone is None or (deleted and deleted < gone) else gone
        if born < created or (gone is not None and born >= gone):
            continue
        inventory.api_keys.append(
            ApiKey(
                id=plan.ids.make("", 16, KEY_LETTERS),
                name=f"key of {owner}",
                created=born,
                deleted=gone,
                owner=owner,
                owner_kind=owner_kind,
                resource=resource[0],
                resource_kind=resource[1],
                environment=environment,
            )
        )


def _topics(plan: GenerationPlan, cluster: Cluster) -> list[Topic]:
    rng = plan.rng("topics", cluster.id)
    count = max(1, plan.size_spec.topics * rng.randrange(70, 131) // 100)
    weights = [1, 1, *(_weight(rng) for _ in range(count))]
    topics = []
    for index, weight in enumerate(weights):
        name = (
            SYSTEM_TOPICS[index]
            if index < 2
            else f"{TEAMS[index % len(TEAMS)]}.{JOBS[(index * 3) % len(JOBS)]}.v{1 + index // len(TEAMS)}"
        )
        topics.append(
            Topic(
                id=f"{cluster.id}:{name}",
                name=name,
                created=cluster.created if index < 5 else max(cluster.created, plan.moment(index - 60, rng)),
                deleted=cluster.deleted,
                cluster=cluster.id,
                written=cluster.written * weight // sum(weights),
                read=0 if index == 3 else cluster.read * weight // sum(weights),
                retained=cluster.written * weight // sum(weights) * rng.randrange(1, 8),
                rhythm=RHYTHMS[rng.randrange(len(RHYTHMS))],
            )
        )
    return topics


def _add_registry_keys(plan: GenerationPlan, inventory: DemoInventory, registry: Registry) -> None:
    rng = plan.rng("registry", registry.id)
    for item in _sample(rng, inventory.service_accounts, plan.size_spec.registry_users, always=0):
        life = (max(item.created, registry.created), item.deleted)
        resource: tuple[str, KeyKind] = (registry.id, "SchemaRegistry")
        _add_keys(plan, inventory, rng, item.id, "ServiceAccount", resource, life, registry.environment)


def _add_other_keys(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add Cloud, Global, Flink and ksqlDB keys."""
    rng = plan.rng("other keys")
    user, account = inventory.users[0], inventory.service_accounts[0]
    for resource in ("cloud", "global"):
        kind: KeyKind = "Cloud" if resource == "cloud" else "Global"
        for owner, owner_kind in ((user, "User"), (account, "ServiceAccount")):
            life = (owner.created, owner.deleted)
            _add_keys(plan, inventory, rng, owner.id, owner_kind, (resource, kind), life)  # type: ignore[arg-type]
    for index, (cloud, region) in enumerate(FLINK_REGIONS):
        owner = inventory.service_accounts[index + 1]
        environment = inventory.environments[0 if index == 0 else 3].id
        _add_keys(
            plan,
            inventory,
            rng,
            owner.id,
            "ServiceAccount",
            (f"{cloud.lower()}.{region}", "Region"),
            (owner.created, None),
            environment,
        )
    for cluster in inventory.ksql_clusters:
        _add_keys(
            plan,
            inventory,
            rng,
            cluster.owner,
            cluster.owner_kind,
            (cluster.id, "ksqlDB"),
            (cluster.created, None),
            cluster.environment,
        )
