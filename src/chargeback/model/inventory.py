"""Inventory: the resources that cost, the identities that pay, and the grants that connect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

#: The identity for costs without an owner. It has a row in the inventory, but never takes part in a split.
UNALLOCATED = "UNALLOCATED"
SYSTEM_IDENTITY = "system"
#: How rows without a tag are named in filters and groups.
UNTAGGED = "UNTAGGED"
#: The value of what no rule of a cost category matches, unless the category names another.
UNASSIGNED = "UNASSIGNED"
#: What tags, names and groups say where there is no value: no rule and no scope takes a value from them.
NO_VALUES = frozenset({UNALLOCATED, UNTAGGED, UNASSIGNED})

Metadata = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be billed.

    ``parent_id`` is the resource that contains it (an environment contains clusters, a cluster contains connectors).
    ``owner_id`` pays for it if a policy says so. ``active_as`` names the resource whose active identities are used if
    no identity is active on this one (for a connector, those of its cluster).
    """

    resource_id: str
    resource_type: str
    display_name: str | None = None
    parent_id: str | None = None
    owner_id: str | None = None
    active_as: str | None = None
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Identity:
    """A person or thing that can be charged: a service account, a user, a pool, a principal, a team.

    API keys and identity providers are identities of the inventory too, but never pay.
    """

    identity_id: str
    identity_type: str
    display_name: str | None = None
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grant:
    """An access that makes an identity active on a resource while it exists: an API key, for instance.

    ``grant_id`` is the id of the key.
    """

    grant_id: str
    resource_id: str
    identity_id: str
    created_at: datetime | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Resources, identities and grants known at some moment, including deleted ones."""

    resources: Sequence[Resource] = ()
    identities: Sequence[Identity] = ()
    grants: Sequence[Grant] = ()


@dataclass(frozen=True, slots=True)
class ListedInventory:
    """The result of listing the provider's inventory.

    ``complete`` names the resource and identity types (and ``grant``) that were listed completely: only for these does
    a missing entity count as deleted. Of types in ``partial``, only some entities were listed: these are added or
    updated, others are unchanged. ``failures`` maps each type that could not be listed to the reason; if a type in
    ``required`` fails, the gathering fails.
    """

    inventory: Inventory
    complete: frozenset[str]
    partial: frozenset[str] = frozenset()
    failures: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()


#: The type name of grants in :attr:`ListedInventory.complete`.
GRANT = "grant"


def alive_during(created_at: datetime | None, deleted_at: datetime | None, start: datetime, end: datetime) -> bool:
    """Return whether an entity existed at some instant of ``[start, end)``; without a known creation, it always
    existed."""
    return (created_at is None or created_at < end) and (deleted_at is None or deleted_at > start)


ENVIRONMENT = "environment"
KAFKA_CLUSTER = "kafka_cluster"


def environments(resources: Sequence[Resource]) -> dict[str, str]:
    """Return the environment's id for each resource in an environment, at any depth; an environment has its own id."""
    return enclosing({each.resource_id: (each.resource_type, each.parent_id) for each in resources}, ENVIRONMENT)


def enclosing(resources: Mapping[str, tuple[str, str | None]], resource_type: str) -> dict[str, str]:
    """Return, for each resource inside one of ``resource_type``, at any depth, the id of that one; a resource of the
    type has its own id.

    ``resources`` has the type and the parent's id of each resource, by its id. Of several enclosing resources the
    innermost counts.
    """
    found: dict[str, str] = {}
    for resource_id in resources:
        above: str | None = resource_id
        seen: set[str] = set()
        while above is not None and above in resources and above not in seen:
            its_type, parent_id = resources[above]
            if its_type == resource_type:
                found[resource_id] = above
                break
            seen.add(above)
            above = parent_id
    return found
