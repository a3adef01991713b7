"""What a question about chargebacks or billing lines is narrowed to."""

from __future__ import annotations

from dataclasses import dataclass

from chargeback.store.queries.scan import Condition
from chargeback.store.queries.tags import TagBook

#: How rows without a tag are named in filters and groups.
UNTAGGED = "UNTAGGED"


@dataclass(frozen=True)
class TagFilter:
    """Rows whose resolved tag ``key`` has one of ``values``; any value where ``values`` is None.

    ``UNTAGGED`` among the values means rows without that tag.
    """

    key: str
    values: frozenset[str] | None = None


@dataclass(frozen=True)
class Filters:
    """Columns that must equal a value, and tags that must be there. What is None is not asked for."""

    identity_id: str | None = None
    product_type: str | None = None
    resource_id: str | None = None
    cost_type: str | None = None
    tags: tuple[TagFilter, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is narrowed."""
        return self == Filters()

    def condition(self, book: TagBook | None = None) -> Condition:
        """The filter as SQL; ``book`` is needed where there are tag filters."""
        equal = {
            name: value
            for name in ("identity_id", "product_type", "resource_id", "cost_type")
            if (value := getattr(self, name)) is not None
        }
        condition = Condition(tuple(f"{name} = ${name}" for name in equal), dict(equal))
        for number, tag in enumerate(self.tags):
            condition &= _tag_condition(number, tag, book or TagBook())
        return condition


def _tag_condition(number: int, tag: TagFilter, book: TagBook) -> Condition:
    """The identity's tag wins over the resource's: the resource decides only where the identity has no such tag."""
    by_identity, by_resource = book.holders(tag.key)
    wanted = tag.values
    lists = {
        "tagged_identities": list(by_identity),
        "tagged_resources": list(by_resource),
        "wanted_identities": [entity for entity, value in by_identity.items() if wanted is None or value in wanted],
        "wanted_resources": [entity for entity, value in by_resource.items() if wanted is None or value in wanted],
    }

    def among(column: str, name: str) -> str:
        return f"{column} IN (SELECT unnest($tag{number}_{name}::VARCHAR[]))" if lists[name] else "FALSE"

    undecided = f"NOT {among('identity_id', 'tagged_identities')}"
    ways = [
        among("identity_id", "wanted_identities"),
        f"({undecided} AND {among('resource_id', 'wanted_resources')})",
    ]
    if wanted is not None and UNTAGGED in wanted:
        ways.append(f"({undecided} AND NOT {among('resource_id', 'tagged_resources')})")
    sql = f"({' OR '.join(ways)})"
    parameters: dict[str, object] = {
        f"tag{number}_{name}": ids for name, ids in lists.items() if f"$tag{number}_{name}:" in sql
    }
    return Condition((sql,), parameters)
