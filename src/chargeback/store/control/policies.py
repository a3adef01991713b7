"""The policies that were ever used, so that the rows of earlier days can be explained; the versions that were applied
from a plan, which are in force in addition to those of the configuration; and those that the ecosystem shipped, version
by version of this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from chargeback import __version__
from chargeback.allocation.policies import Policy, PolicyVersion, parse_policies, policies_hash
from chargeback.model.days import ONE_DAY
from chargeback.store.control.revisions import LAST_CALCULATED
from chargeback.store.control.schema import applied_policies, policies, shipped_policies, tenant


@dataclass(frozen=True, slots=True)
class UsedPolicy:
    """A policy of a product type: its hash, its JSON text, and when it was first used."""

    hash: str
    product_type: str
    text: str
    first_used_at: datetime

    @property
    def policy(self) -> Policy:
        """The policy itself."""
        return parse_policies({self.product_type: json.loads(self.text)}, "policies")[self.product_type]


def record_policies(connection: Connection, used: Mapping[str, Policy], now: datetime) -> None:
    """Record the unknown ones among policies of product types."""
    known = {(row.hash, row.product_type) for row in connection.execute(select(policies))}
    new = [(policy.hash, name, policy.text) for name, policy in used.items() if (policy.hash, name) not in known]
    for hash_, name, text in new:
        connection.execute(insert(policies).values(hash=hash_, product_type=name, text=text, first_used_at=now))


def used_policies(connection: Connection) -> list[UsedPolicy]:
    """Return every policy that was ever used, by product type and time."""
    query = select(policies).order_by(policies.c.product_type, policies.c.first_used_at, policies.c.hash)
    return [UsedPolicy(**row._mapping) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True)
class AppliedVersion:
    """A version of the tenant's own policies that was applied.

    Attributes:
        effective_from: the first UTC day on which it is in force.
        policies: by product type, as the configuration would have them.
        plan: the digest of the simulation that it was tried in.
    """

    effective_from: date
    reason: str
    policies: Mapping[str, Any]
    plan: str
    applied_by: str
    applied_at: datetime

    @property
    def raw(self) -> dict[str, Any]:
        """The version as an entry of ``allocation_policies``."""
        return {"effective_from": self.effective_from.isoformat(), "reason": self.reason, "policies": self.policies}


def policies_revision(connection: Connection) -> int:
    """Return how often the applied versions were changed."""
    return connection.execute(select(tenant.c.policies_revision)).scalar() or 0


def read_applied(connection: Connection) -> list[AppliedVersion]:
    """Return the versions that were applied, the first one first."""
    rows = connection.execute(select(applied_policies).order_by(applied_policies.c.effective_from))
    return [AppliedVersion(**{**row._mapping, "policies": json.loads(row.policies)}) for row in rows]


def add_applied(connection: Connection, version: AppliedVersion) -> None:
    """Add a version; there is none of the same day."""
    values = {name: getattr(version, name) for name in ("effective_from", "reason", "plan", "applied_by", "applied_at")}
    connection.execute(insert(applied_policies).values(**values, policies=json.dumps(version.policies)))
    _raise_revision(connection)


def remove_applied(connection: Connection, effective_from: date) -> None:
    """Remove the version that begins on a day."""
    connection.execute(delete(applied_policies).where(applied_policies.c.effective_from == effective_from))
    _raise_revision(connection)


def read_shipped(connection: Connection, present: Mapping[str, Policy]) -> tuple[PolicyVersion, ...]:
    """Return what the ecosystem shipped as policies, the first version first. What it ships at ``present`` is the last
    one: where it is new, from the day on that follows the last calculated one."""
    rows = connection.execute(select(shipped_policies).order_by(shipped_policies.c.effective_from)).all()
    last = connection.execute(LAST_CALCULATED).scalar()
    known = [
        PolicyVersion(
            each.effective_from, _shipped_with(each.software), parse_policies(json.loads(each.policies), "policies")
        )
        for each in rows
        if last is not None and each.effective_from <= last
    ]
    if not known or known[-1].hash != policies_hash(present):
        known.append(PolicyVersion(last + ONE_DAY if known and last else date.min, _shipped_with(__version__), present))
    return tuple(known)


def _shipped_with(software: str) -> str:
    return f"Shipped with version {software}"


def record_shipped(connection: Connection, present: Mapping[str, Policy], now: datetime) -> PolicyVersion | None:
    """Record what the ecosystem ships at ``present``, before days are calculated by it; return the version that
    begins if it takes the place of another one."""
    recorded = {row.effective_from: row.policies for row in connection.execute(select(shipped_policies))}
    newest = read_shipped(connection, present)[-1]
    text = json.dumps({name: json.loads(policy.text) for name, policy in sorted(present.items())})
    if max(recorded, default=None) == newest.effective_from and recorded[newest.effective_from] == text:
        return None
    connection.execute(delete(shipped_policies).where(shipped_policies.c.effective_from >= newest.effective_from))
    values = {"effective_from": newest.effective_from, "policies": text, "software": __version__, "recorded_at": now}
    connection.execute(insert(shipped_policies).values(values))
    _raise_revision(connection)
    return newest if newest.effective_from > date.min else None


def _raise_revision(connection: Connection) -> None:
    connection.execute(update(tenant).values(policies_revision=tenant.c.policies_revision + 1))
