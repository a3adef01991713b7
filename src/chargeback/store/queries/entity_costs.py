"""What everything of a tenant cost in the last days: each identity, resource, topic and value of a tag."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Final, TypeVar

from chargeback.model.days import instants
from chargeback.model.money import from_units, to_units
from chargeback.store.control.tags import RESOURCE
from chargeback.store.queries.costs import sum_selected
from chargeback.store.queries.datasets import TOPIC_ATTRIBUTIONS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.version import DataVersion

#: How many days are summed, up to the last calculated one.
DAYS: Final = 30
#: The costs of so many tenants are remembered.
_MAX_TENANTS: Final = 16

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
        self._lock = threading.Lock()
        self._costs: OrderedDict[str, tuple[str, EntityCosts]] = OrderedDict()

    def load(self, tenant_name: str, reader: TenantReader, version: DataVersion) -> EntityCosts:
        """Return the costs of a tenant; the same version of its data is summed once.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        with self._lock:
            known = self._costs.get(tenant_name)
            if known is not None and known[0] == version.digest:
                self._costs.move_to_end(tenant_name)
                return known[1]
        costs = entity_costs(reader, version)
        with self._lock:
            self._costs[tenant_name] = (version.digest, costs)
            self._costs.move_to_end(tenant_name)
            if len(self._costs) > _MAX_TENANTS:
                self._costs.popitem(last=False)
        return costs


def entity_costs(reader: TenantReader, version: DataVersion) -> EntityCosts:
    """Return the sums of the last :data:`DAYS` calculated days.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    last = version.control.last_calculated
    if last is None:
        return EntityCosts()
    selection = Selection(instants(last - timedelta(days=DAYS - 1), last))
    pairs = _pairs(reader, selection)
    return EntityCosts(
        _summed((identity, units) for identity, _, units in pairs),
        _summed((resource, units) for _, resource, units in pairs),
        _topics(reader, selection),
        _summed(
            (tag, units)
            for identity, resource, units in pairs
            for tag in reader.tags.resolve(identity, resource).items()
        ),
    )


def _pairs(reader: TenantReader, selection: Selection) -> list[tuple[str, str, int]]:
    """Return what each identity was charged for each resource."""
    sum_selected(reader, selection, [selection.window], ("identity_id", "resource_id"))
    rows = reader.cursor.rows("SELECT d0, d1, sum(total)::DECIMAL(38, 12) FROM selected GROUP BY ALL")
    return [(identity, resource, to_units(amount)) for identity, resource, amount in rows]


def _topics(reader: TenantReader, selection: Selection) -> dict[str, Decimal]:
    scan = reader.scan(TOPIC_ATTRIBUTIONS, selection)
    if not scan.files:
        return {}
    condition = scan.condition()
    rows = reader.cursor.rows(
        f"""SELECT {TOPIC_ATTRIBUTIONS.tag_sources[RESOURCE]} AS topic, sum(amount)::DECIMAL(38, 12)
            FROM {SOURCE} WHERE {condition.sql} GROUP BY topic""",
        condition.parameters,
    )
    return dict(rows)


def _summed(parts: Iterable[tuple[K, int]]) -> dict[K, Decimal]:
    sums: dict[K, int] = defaultdict(int)
    for key, units in parts:
        sums[key] += units
    return {key: from_units(units) for key, units in sums.items()}
