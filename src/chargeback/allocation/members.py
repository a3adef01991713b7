"""Membership: which identities were active on, or owned, which resources on a day.

*Active on a resource*: holds a grant (an API key) for it that existed on that day, owns it, or has usage above zero
on it. *Period*: all identities active on at least one resource of the tenant that day; if there are none, the payers
that existed that day, tier by tier. An identity that did not exist on the day is not active; one that only the metrics
name is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.model.days import ONE_DAY, start_of_day
from chargeback.model.inventory import UNALLOCATED, Identity, Inventory, alive_during
from chargeback.model.usage import ACTIVE, EVERYTHING, MEMBERS, OWNER, OWNERS, PERIOD

_Sets = dict[str, set[str]]


class Membership:
    """An inventory, indexed to find the members of any day.

    ``payer_tiers`` are sets of identity types; only identities of those types can be active by grant or ownership.
    """

    def __init__(self, inventory: Inventory, payer_tiers: Sequence[Collection[str]]) -> None:
        payer_types = frozenset().union(*map(frozenset, payer_tiers))
        self._tiers = [frozenset(tier) for tier in payer_tiers]
        self._payers = {
            identity.identity_id: identity for identity in inventory.identities if identity.identity_type in payer_types
        }
        self._grants = [grant for grant in inventory.grants if grant.identity_id in self._payers]
        self._owned = [resource for resource in inventory.resources if resource.owner_id in self._payers]
        self._parents: Mapping[str, str] = {
            resource.resource_id: resource.parent_id for resource in inventory.resources if resource.parent_id
        }
        self._substituted = [resource for resource in inventory.resources if resource.active_as]
        self._active_as = {resource.resource_id: resource.active_as for resource in self._substituted}

    def members_on(self, day: date, usage: pa.Table, billed: Collection[str]) -> pa.Table:
        """Return the active identities and owners of each resource, and those of the period, in schema MEMBERS.

        This covers the resources in ``billed`` and all others with members, so that a line that is billed later has its
        evidence, too. ``usage`` is the day's, in schema USAGE.
        """
        start, end = start_of_day(day), start_of_day(day + ONE_DAY)
        owners = self._owners(start, end)
        active = self._active(start, end, owners, usage)
        with_parts = self._owners_with_parts(owners)
        within = self._active_within(active)
        rows: list[tuple[str, str, str]] = []
        covered = {*billed, *active, *with_parts, *self._with_substitutes(start, end)}
        for resource_id in sorted(covered):
            rows += [
                (resource_id, identity_id, ACTIVE)
                for identity_id in sorted(self._active_on(resource_id, active, within))
            ]
            rows += [(resource_id, identity_id, OWNER) for identity_id in sorted(owners.get(resource_id, ()))]
            rows += [(resource_id, identity_id, OWNERS) for identity_id in sorted(with_parts.get(resource_id, ()))]
        rows += [(EVERYTHING, identity_id, PERIOD) for identity_id in sorted(self._period(start, end, active))]
        return _table(day, rows)

    def _is_alive(self, identity_id: str, start: datetime, end: datetime) -> bool:
        identity: Identity = self._payers[identity_id]
        return alive_during(identity.created_at, identity.deleted_at, start, end)

    def _owners(self, start: datetime, end: datetime) -> _Sets:
        owners: _Sets = defaultdict(set)
        for resource in self._owned:
            owner = resource.owner_id
            if (
                owner
                and alive_during(resource.created_at, resource.deleted_at, start, end)
                and self._is_alive(owner, start, end)
            ):
                owners[resource.resource_id].add(owner)
        return owners

    def _owners_with_parts(self, owners: _Sets) -> _Sets:
        """Return the owners of each resource and of its direct children (for a compute pool, the owners of its
        statements)."""
        found: _Sets = defaultdict(set)
        for resource_id, identity_ids in owners.items():
            found[resource_id] |= identity_ids
            if parent := self._parents.get(resource_id):
                found[parent] |= identity_ids
        return found

    def _active(self, start: datetime, end: datetime, owners: _Sets, usage: pa.Table) -> _Sets:
        active: _Sets = defaultdict(
            set, {resource_id: set(identity_ids) for resource_id, identity_ids in owners.items()}
        )
        for grant in self._grants:
            if alive_during(grant.created_at, grant.deleted_at, start, end) and self._is_alive(
                grant.identity_id, start, end
            ):
                active[grant.resource_id].add(grant.identity_id)
        used = usage.filter(pc.greater(usage["value"], 0))
        for resource_id, subject in zip(used["resource_id"].to_pylist(), used["subject"].to_pylist(), strict=True):
            if subject != UNALLOCATED:
                active[resource_id].add(subject)
        return active

    def _with_substitutes(self, start: datetime, end: datetime) -> set[str]:
        return {
            resource.resource_id
            for resource in self._substituted
            if alive_during(resource.created_at, resource.deleted_at, start, end)
        }

    def _active_within(self, active: _Sets) -> _Sets:
        """Return the identities that are active on any resource inside a resource, at any depth."""
        within: _Sets = defaultdict(set)
        for resource_id, identity_ids in active.items():
            above: str | None = resource_id
            seen: set[str] = set()
            while above is not None and above not in seen:
                within[above] |= identity_ids
                seen.add(above)
                above = self._parents.get(above)
        return within

    def _active_on(self, resource_id: str, active: _Sets, within: _Sets) -> set[str]:
        active_ids = active.get(resource_id)
        substitute = self._active_as.get(resource_id)
        if active_ids or substitute is None:
            return active_ids or set()
        return active.get(substitute) or within.get(substitute) or set()

    def _period(self, start: datetime, end: datetime, active: _Sets) -> set[str]:
        everybody = set().union(*active.values())
        if everybody:
            return everybody
        for tier in self._tiers:
            alive = {
                identity.identity_id
                for identity in self._payers.values()
                if identity.identity_type in tier and self._is_alive(identity.identity_id, start, end)
            }
            if alive:
                return alive
        return set()


def _table(day: date, rows: Sequence[tuple[str, str, str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.table(
        {
            "date": pa.array([day] * len(rows), pa.date32()),
            "resource_id": pa.array(columns[0], pa.string()),
            "identity_id": pa.array(columns[1], pa.string()),
            "relation": pa.array(columns[2], pa.string()),
        },
        schema=MEMBERS,
    )
