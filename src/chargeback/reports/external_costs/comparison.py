"""Costs from elsewhere beside those stored here: each by entity and product type. Nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection

from chargeback.model.days import DayRange
from chargeback.model.money import difference, total
from chargeback.reports.external_costs.files import CostKey, CostMapping, ExternalCost
from chargeback.reports.names import NAMED_COLUMNS
from chargeback.store.control.names import names_of
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, Dataset
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by


@dataclass(frozen=True, slots=True)
class ComparedCost:
    """What both sides say of one entity and product type; None on a side that has nothing of it."""

    key: CostKey
    theirs: Decimal | None
    ours: Decimal | None

    @property
    def delta(self) -> Decimal:
        """What we have beyond theirs."""
        return difference(self.ours or Decimal(0), self.theirs or Decimal(0))


@dataclass(frozen=True)
class CostComparison:
    """The costs of some days on both sides, the largest difference first.

    ``lines`` is how many lines of the file are in these days, ``outside`` how many are not.
    """

    days: DayRange
    items: Sequence[ComparedCost]
    lines: int
    outside: int

    @property
    def theirs(self) -> Decimal:
        """The sum of the file."""
        return total(item.theirs for item in self.items if item.theirs is not None)

    @property
    def ours(self) -> Decimal:
        """The sum of what is stored here."""
        return total(item.ours for item in self.items if item.ours is not None)

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return not any(item.delta for item in self.items)


def dataset_of(mapping: CostMapping) -> Dataset:
    """Return what a file is compared with: the bill or, by identities, the chargebacks."""
    return CHARGEBACKS if mapping.entity == "identity_id" else BILLING_LINES


def entity_names(connection: Connection, found: CostComparison, mapping: CostMapping) -> dict[str, str]:
    """Return the display names of the entities on either side that have one."""
    # No id has the character NUL, and PostgreSQL refuses it.
    ids = {item.key[0] for item in found.items if item.key[0] is not None and "\x00" not in item.key[0]}
    known = names_of(connection, NAMED_COLUMNS[mapping.entity], ids)
    return {entity_id: entity.name for entity_id, entity in known.items() if entity.name is not None}


def compare_costs(
    reader: TenantReader, costs: Sequence[ExternalCost], mapping: CostMapping, days: DayRange
) -> CostComparison:
    """Return the costs of a file beside those stored here: beside the bill or, by identities, beside the chargebacks.
    Lines of other days are counted only.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    inside = [cost for cost in costs if cost.day is None or cost.day in days]
    columns = (mapping.columns.entity is not None, mapping.columns.product_type is not None)
    theirs = _sums((cost.key, cost.amount) for cost in inside)
    ours = _sums(_stored(reader, mapping, days, columns))
    items = [ComparedCost(key, theirs.get(key), ours.get(key)) for key in theirs.keys() | ours.keys()]
    items.sort(key=lambda item: (item.delta.copy_abs().copy_negate(), [value or "" for value in item.key]))
    return CostComparison(days, items, len(inside), len(costs) - len(inside))


def _stored(
    reader: TenantReader, mapping: CostMapping, days: DayRange, columns: tuple[bool, bool]
) -> Iterator[tuple[CostKey, Decimal]]:
    found = sums_by(reader, dataset_of(mapping), Selection.of_days(days), (mapping.entity, "product_type"))
    for (entity, product_type), amount in found.items():
        yield (entity if columns[0] else None, product_type if columns[1] else None), amount


def _sums(amounts: Iterable[tuple[CostKey, Decimal]]) -> Mapping[CostKey, Decimal]:
    parts: dict[CostKey, list[Decimal]] = {}
    for key, amount in amounts:
        parts.setdefault(key, []).append(amount)
    return {key: total(some) for key, some in parts.items()}
