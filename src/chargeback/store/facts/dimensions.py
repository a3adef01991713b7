"""The register of dimensions: every combination that was ever charged, under its id.

It answers for one dimension without reading the days, and notices two dimensions that would share an id.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from chargeback.errors import DimensionCollision
from chargeback.model.chargeback import DIMENSION_COLUMNS, DIMENSIONS
from chargeback.store.facts.tables import DIMENSIONS_TABLE, FactTables


class DimensionRegister:
    """The dimensions known so far. One per run, under its lease."""

    def __init__(self, tables: FactTables, *, epoch: int) -> None:
        self._tables = tables
        self._epoch = epoch
        files = tables.snapshot(DIMENSIONS_TABLE).files
        self._known = pa.concat_tables(
            [DIMENSIONS.empty_table(), *(pq.read_table(file.path).cast(DIMENSIONS) for file in files)]
        )

    def register(self, rows: pa.Table) -> None:
        """Add the dimensions of chargeback rows that are not there yet.

        Raises:
            DimensionCollision: two different dimensions have the same id.
        """
        present = rows.select(DIMENSIONS.names).group_by(DIMENSIONS.names).aggregate([]).cast(DIMENSIONS)
        new = present.join(self._known, keys=DIMENSIONS.names, join_type="left anti").select(DIMENSIONS.names).cast(DIMENSIONS)
        if new.num_rows == 0:
            return
        self._refuse_collisions(new)
        ordered = new.sort_by("dimension_id")
        self._tables.append(DIMENSIONS_TABLE, ordered, epoch=self._epoch)
        self._known = pa.concat_tables([self._known, ordered])

    def _refuse_collisions(self, new: pa.Table) -> None:
        ids = pa.concat_tables([new.select(["dimension_id"]), self._known.select(["dimension_id"])])
        counted = ids.group_by("dimension_id").aggregate([([], "count_all")])
        twice = counted.filter(pc.greater(counted["count_all"], 1))["dimension_id"]
        if len(twice):
            wrong = new.filter(pc.is_in(new["dimension_id"], value_set=twice.combine_chunks()))
            named = "; ".join(" / ".join(row[name] for name in DIMENSION_COLUMNS) for row in wrong.to_pylist()[:3])
            raise DimensionCollision(f"different dimensions share one id: {named}")
