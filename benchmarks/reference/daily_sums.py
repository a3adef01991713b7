"""An alternative storage of sums: a Delta table of daily sums for each set of columns, committed with each day."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from chargeback.store.facts.partial_files import PartialFile


class DailySums:
    """A table of the sums by one set of columns, partitioned by day."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._table: DeltaTable | None = None

    def add(self, rows: pa.Table) -> None:
        """Commit the sums of a day."""
        write_deltalake(self._root, rows, mode="append", partition_by=["date"])

    def files(self) -> list[str]:
        """Return the files of the table at its newest version, found as a query must find them."""
        if self._table is None:
            self._table = DeltaTable(self._root)
        self._table.update_incremental()
        return [uri.removeprefix("file://") for uri in self._table.file_uris()]


def days_of(file: PartialFile, rows: pa.Table) -> list[pa.Table]:
    """Return the sums of each day in a partial file."""
    return [rows.filter(pa.compute.equal(rows["date"], day)) for day in sorted(file.sources)]
