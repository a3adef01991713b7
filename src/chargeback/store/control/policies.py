"""The policies that were ever used, so that the rows of earlier days can be explained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from chargeback.allocation.policies import Policy, parse_policies
from chargeback.store.control.schema import policies


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
