"""What was measured: the stored usage of each UTC day, by measure, resource and subject."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.errors import PluginError, StorageError
from chargeback.model.usage import USAGE
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import USAGE_TABLE
from chargeback.store.queries.datasets import AMOUNT, Column, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import SOURCE
from chargeback.store.tenant import TenantStore

#: The measurements of days, as tables of schema :data:`~chargeback.model.usage.USAGE`.
MeasuredDays: TypeAlias = Mapping[date, pa.Table]
#: Returns stored measurements as policies name them, with identities as subjects.
WithOwners: TypeAlias = Callable[[MeasuredDays], MeasuredDays]

#: A measurement is about a whole UTC day and is never summed with others: measures have different units.
MEASUREMENTS: Final = Dataset(
    USAGE_TABLE,
    columns=(
        Column("date", source="date::VARCHAR"),
        Column("measure"),
        Column("resource_id"),
        Column("subject"),
        Column("value", AMOUNT, places=6),
    ),
    amount="value",
    filters=("measure", "resource_id", "subject"),
)


@dataclass(frozen=True)
class Measured:
    """What was measured: the ``files`` of days, and how what is in them gets owners.

    Raises (everywhere): QueryTimeout when the query was cancelled; StorageError when the facts cannot be read.
    """

    files: Sequence[DayFile]
    with_owners: WithOwners

    def rows(self, cursor: Cursor, days: Collection[date], measures: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield what was measured on some days, of some measures as policies name them."""
        wanted = pa.array(measures, pa.string())
        for table in self._tables(cursor, days):
            yield from table.filter(pc.is_in(table["measure"], wanted)).to_pylist()

    def measures(self, cursor: Cursor) -> set[str]:
        """Return the names, as in policies, of everything that was ever measured: as on the last day of each."""
        if not self.files:
            return set()
        last = cursor.rows(f"SELECT max(date) FROM {SOURCE} GROUP BY measure", {"files": self.files})
        tables = self._tables(cursor, {day for (day,) in last})
        return {name for table in tables for name in table["measure"].unique().to_pylist()}

    def _tables(self, cursor: Cursor, days: Collection[date]) -> Collection[pa.Table]:
        columns = ", ".join(USAGE.names)
        stored = {
            file.day: cursor.table(f"SELECT {columns} FROM {SOURCE}", {"files": [file]})
            for file in self.files
            if file.day is not None and file.day in days
        }
        return self.with_owners(
            {day: pa.Table.from_arrays(table.columns, schema=USAGE) for day, table in stored.items()}
        ).values()


def with_owners(store: TenantStore, stored: MeasuredDays) -> MeasuredDays:
    """Return stored measurements with the measures that policies name, and with identities as subjects where the
    inventory has the owners.

    Raises:
        StorageError: the control database cannot be read, or the ecosystem's plugin fails.
    """
    if store.resolve_usage is None or not stored:
        return stored
    inventory = cache(store.inventory)
    try:
        return {day: store.resolve_usage(day, table, inventory) for day, table in stored.items()}
    except PluginError as error:
        raise StorageError(f"the owners of what was measured are not known: {error.message}") from None
