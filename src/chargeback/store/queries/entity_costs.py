"""What everything of a tenant cost in the last days: each identity, resource, topic and value of a tag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, TypeVar

from chargeback.model.days import instants
from chargeback.model.money import SHARED_PLACES, from_units, to_shared_units
from chargeback.store.control.tags import RESOURCE
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.keys import ByColumn, ByTagHolder
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.revision_cache import RevisionCache
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion

#: How many days are summed, up to the last calculated one.
DAYS: Final = 30
#: How many tenants, or scopes of these, have their costs cached.
_MOST: Final = 16

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class EntityCosts:
    """Sums by the id of an identity, of a resource, of a topic in the inventory, and by the key and value of a tag."""

    identities: Mapping[str, Decimal] = field(default_factory=dict)
    resources: Mapping[str, Decimal] = field(default_factory=dict)
    topics: Mapping[str, Decimal] = field(default_factory=dict)
    tags: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)


class EntityCostCache:
    """The latest costs of the tenants that were asked for last. Safe for use by several threads."""

    def __init__(self) -> None:
        self._costs: RevisionCache[EntityCosts] = RevisionCache(_MOST)

    def load(self, tenant_name: str, reader: TenantReader, version: DataVersion) -> EntityCosts:
        """Return the costs of a tenant as a reader sees them; the same version of its data is summed once for each
        scope.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        seen = f"{tenant_name} {reader.scope_digest}"
        return self._costs.get(seen, version.digest, lambda: entity_costs(reader, version))


def entity_costs(reader: TenantReader, version: DataVersion) -> EntityCosts:
    """Return the sums of the last :data:`DAYS` calculated days.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    last = version.control.last_calculated
    if last is None:
        return EntityCosts()
    first = last - timedelta(days=DAYS - 1)
    selection = Selection(instants(first, last))
    starts = [first, *(day for day in reader.tags.changes if first < day <= last)]
    pairs = _pairs(reader, selection, starts, last)
    return EntityCosts(
        _summed((identity, units) for _, identity, _, units in pairs),
        _summed((resource, units) for _, _, resource, units in pairs),
        _topics(reader, selection),
        _summed(
            (tag, units)
            for day, identity, resource, units in pairs
            for tag in reader.tags.resolve(identity, resource, day).items()
        ),
    )


def _pairs(
    reader: TenantReader, selection: Selection, starts: Sequence[date], last: date
) -> list[tuple[date, str, str, int]]:
    """Return what each identity was charged for each resource since each of the ``starts``, until the next one."""
    ends = [*(day - timedelta(days=1) for day in starts[1:]), last]
    windows = [instants(start, end) for start, end in zip(starts, ends, strict=True)]
    keys = (ByColumn("identity_id"), ByColumn("resource_id"))
    sums = reader.sums(Sums(CHARGEBACKS, selection, keys, periods=tuple(windows)))
    return [
        (starts[period], identity, resource, to_shared_units(amount))
        for period, identity, resource, amount in sums.rows(f"SELECT period, d0, d1, {sums.amount()} FROM sums")
    ]


def _topics(reader: TenantReader, selection: Selection) -> dict[str, Decimal]:
    sums = reader.sums(Sums(TOPIC_ATTRIBUTIONS, selection, (ByTagHolder(RESOURCE),)))
    return dict(sums.rows(f"SELECT d0, {sums.amount()} FROM sums"))


def _summed(parts: Iterable[tuple[K, int]]) -> dict[K, Decimal]:
    sums: dict[K, int] = defaultdict(int)
    for key, units in parts:
        sums[key] += units
    return {key: from_units(units, SHARED_PLACES) for key, units in sums.items()}
