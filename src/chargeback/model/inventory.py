"""Inventory: the resources that cost, the identities that pay, and what ties them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

#: Who pays for what belongs to nobody. Has a row in the inventory, never takes part in a split.
UNALLOCATED = "UNALLOCATED"
SYSTEM_IDENTITY = "system"

Metadata = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be billed.

    ``parent_id`` contains it (a cluster lies in an environment, a connector in a cluster). ``owner_id`` pays for it
    where a policy says so. ``active_as`` names the resource whose active identities stand in when nobody is
    active on this one itself (a connector is used by those who use its cluster).
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
    """Somebody, or something, that can be charged: a service account, a user, a pool, a principal, a team.

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
    """An access that makes an identity active on a resource while it lasts: an API key, for instance.

    ``grant_id`` is the id of the key.
    """

    grant_id: str
    resource_id: str
    identity_id: str
    created_at: datetime | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Resources, identities and grants known at some moment, those deleted meanwhile included."""

    resources: Sequence[Resource] = ()
    identities: Sequence[Identity] = ()
    grants: Sequence[Grant] = ()


@dataclass(frozen=True, slots=True)
class ListedInventory:
    """What the provider's listings gave just now.

    ``complete`` names the resource and identity types (and ``grant``) whose listing was read to its end: only of
    those may something that is missing be taken for deleted. Of types in ``partial`` a part was seen: what was seen is
    added and kept alive, what was not is left alone. ``failures`` says, for each type that could not be listed, why;
    types in ``required`` are those whose failure fails the gathering.
    """

    inventory: Inventory
    complete: frozenset[str]
    partial: frozenset[str] = frozenset()
    failures: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()


#: The type name under which grants appear in :attr:`ListedInventory.complete`.
GRANT = "grant"


def alive_during(created_at: datetime | None, deleted_at: datetime | None, start: datetime, end: datetime) -> bool:
    """Whether something existed at some instant of ``[start, end)``; an unknown creation counts as always there."""
    return (created_at is None or created_at < end) and (deleted_at is None or deleted_at > start)


ENVIRONMENT = "environment"
KAFKA_CLUSTER = "kafka_cluster"


def environments(resources: Sequence[Resource]) -> dict[str, str]:
    """For each resource that lies in an environment, at whatever depth, that environment's id (its own for itself)."""
    return enclosing({each.resource_id: (each.resource_type, each.parent_id) for each in resources}, ENVIRONMENT)


def enclosing(resources: Mapping[str, tuple[str, str | None]], resource_type: str) -> dict[str, str]:
    """For each resource that lies in one of a type, at whatever depth, that one's id (its own for itself).

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
