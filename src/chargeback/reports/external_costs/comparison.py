"""The comparison of external costs with the stored ones, by entity and product type. Nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import difference, total
from chargeback.reports.answers import RENDERED, Counted, ResponseModel, Sum, places
from chargeback.reports.external_costs.files import MOST_PLACES, CostKey, CostMapping, ExternalCost
from chargeback.reports.names import NAMED_COLUMNS
from chargeback.store.control.inventory_lists import names_of
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, Dataset
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by

#: An exact decimal with all decimal places that a file may have.
LongDecimal = Annotated[Decimal, RENDERED, places(MOST_PLACES)]
_ZERO: Final = Decimal(0)
_Sums = Mapping[CostKey, Decimal]


class ComparedAmounts(ResponseModel):
    """A sum on both sides."""

    theirs: LongDecimal
    ours: Sum
    delta: LongDecimal = Field(description="`ours` minus `theirs`, exactly.")


class ComparedItem(ResponseModel):
    """The amounts of both sides for one entity and product type."""

    entity: str | None = Field(description="Null if the mapping has no column for it.", examples=["lkc-abc123"])
    name: str | None = Field(description="Its display name.", examples=["prod"])
    product_type: str | None = Field(
        description="Null if the mapping has no column for it.", examples=["KAFKA_NUM_CKUS"]
    )
    theirs: LongDecimal | None = Field(description="The amount in the file; null if it has none.")
    ours: Sum | None = Field(description="The stored amount; null if there is none.")
    delta: LongDecimal = Field(description="`ours` minus `theirs`, exactly.")


class ComparedRest(ComparedAmounts, Counted):
    """The sum of the entries that are not listed."""


class OneSided(Counted):
    """The entries that only one side has, listed or not."""

    amount: LongDecimal


class ExternalReconciliation(ResponseModel):
    """External costs compared with the stored ones, the largest difference first."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    compared_with: Literal["billing", "chargebacks"]
    lines: int = Field(description="Lines of the file in these days.")
    outside: int = Field(description="Lines of the file on other days, which are left out.")
    total: ComparedAmounts
    only_theirs: OneSided
    only_ours: OneSided
    items: list[ComparedItem]
    other: ComparedRest | None = Field(description="The entries beyond `limit`, together.")


def dataset_of(mapping: CostMapping) -> Dataset:
    """Return the dataset that a file is compared with: the bill or, by identities, the chargebacks."""
    return CHARGEBACKS if mapping.entity == "identity_id" else BILLING_LINES


def compare_costs(
    reader: TenantReader,
    connection: Connection,
    costs: Sequence[ExternalCost],
    mapping: CostMapping,
    days: DayRange,
    *,
    currency: str,
    limit: int | None = None,
) -> ExternalReconciliation:
    """Return the costs of a file compared with the bill or, by identities, with the chargebacks. Lines of other days
    are only counted. At most ``limit`` entries are listed; the rest is summed.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    inside = [cost for cost in costs if cost.day is None or cost.day in days]
    columns = (mapping.columns.entity is not None, mapping.columns.product_type is not None)
    theirs = _sums((cost.key, cost.amount) for cost in inside)
    ours = _sums(_stored(reader, mapping, days, columns))
    deltas = {key: difference(ours.get(key, _ZERO), theirs.get(key, _ZERO)) for key in theirs.keys() | ours.keys()}
    keys = sorted(deltas, key=lambda key: (deltas[key].copy_abs().copy_negate(), [value or "" for value in key]))
    listed = keys[:limit]
    rest = keys[len(listed) :]
    names = _entity_names(connection, listed, mapping)
    return ExternalReconciliation(
        start_date=days.start,
        end_date=days.end - ONE_DAY,
        currency=currency,
        compared_with=dataset_of(mapping).table,
        lines=len(inside),
        outside=len(costs) - len(inside),
        total=ComparedAmounts(**_amounts(theirs, ours, keys)),
        only_theirs=_one_sided(theirs, ours),
        only_ours=_one_sided(ours, theirs),
        items=[
            ComparedItem(
                entity=entity,
                name=None if entity is None else names.get(entity),
                product_type=product_type,
                theirs=theirs.get((entity, product_type)),
                ours=ours.get((entity, product_type)),
                delta=deltas[entity, product_type],
            )
            for entity, product_type in listed
        ],
        other=ComparedRest(count=len(rest), **_amounts(theirs, ours, rest)) if rest else None,
    )


def _entity_names(connection: Connection, keys: Iterable[CostKey], mapping: CostMapping) -> dict[str, str | None]:
    # No id has the character NUL, and PostgreSQL refuses it.
    ids = {entity for entity, _ in keys if entity is not None and "\x00" not in entity}
    known = names_of(connection, NAMED_COLUMNS[mapping.entity], ids)
    return {entity_id: entity.name for entity_id, entity in known.items()}


def _amounts(theirs: _Sums, ours: _Sums, keys: Iterable[CostKey]) -> dict[str, Decimal]:
    """Return the fields of the sum of some entries."""
    all_theirs, all_ours = (total(side[key] for key in keys if key in side) for side in (theirs, ours))
    return {"theirs": all_theirs, "ours": all_ours, "delta": difference(all_ours, all_theirs)}


def _one_sided(side: _Sums, other: _Sums) -> OneSided:
    amounts = [amount for key, amount in side.items() if key not in other]
    return OneSided(count=len(amounts), amount=total(amounts))


def _stored(
    reader: TenantReader, mapping: CostMapping, days: DayRange, columns: tuple[bool, bool]
) -> Iterator[tuple[CostKey, Decimal]]:
    found = sums_by(reader, dataset_of(mapping), Selection.of_days(days), (mapping.entity, "product_type"))
    for (entity, product_type), amount in found.items():
        yield (entity if columns[0] else None, product_type if columns[1] else None), amount


def _sums(amounts: Iterable[tuple[CostKey, Decimal]]) -> _Sums:
    parts: dict[CostKey, list[Decimal]] = {}
    for key, amount in amounts:
        parts.setdefault(key, []).append(amount)
    return {key: total(some) for key, some in parts.items()}
