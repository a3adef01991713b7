"""The register of dimensions: every combination that was ever charged, under its id.

It answers for one dimension without reading the days, and notices two dimensions that would share an id.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.errors import DimensionCollision
from chargeback.model.chargeback import DIMENSION_COLUMNS, DIMENSIONS
from chargeback.store.facts.files import read_file
from chargeback.store.facts.tables import DIMENSIONS_TABLE, FactTables, naming


def stored_dimensions(tables: FactTables) -> pa.Table:
    """Every dimension of the register, in schema DIMENSIONS.

    Raises:
        DamagedFacts: a file of it is missing, or not what was written.
        StorageError: it cannot be read.
    """
    files = tables.snapshot(DIMENSIONS_TABLE).files
    with naming(DIMENSIONS_TABLE):
        return pa.concat_tables([DIMENSIONS.empty_table(), *(read_file(file).cast(DIMENSIONS) for file in files)])


class DimensionRegister:
    """The dimensions known so far. One per run, under its lease.

    Raises:
        StorageError: what is stored cannot be read.
    """

    def __init__(self, tables: FactTables, *, epoch: int) -> None:
        self._tables = tables
        self._epoch = epoch
        self._known = stored_dimensions(tables).combine_chunks()

    def register(self, dimensions: pa.Table) -> None:
        """Add those of a day's dimensions (schema DIMENSIONS, each once) that are not there yet.

        Raises:
            DimensionCollision: two different dimensions have the same id.
        """
        position = pc.index_in(dimensions["dimension_id"], value_set=self._known["dimension_id"].combine_chunks())
        self._refuse_difference(dimensions, position)
        new = dimensions.filter(pc.is_null(position))
        if new.num_rows == 0:
            return
        self._refuse_repetition(new)
        self._tables.append(DIMENSIONS_TABLE, new.sort_by("dimension_id"), epoch=self._epoch)
        # Not as in the file: tomorrow's come in the order of today's, and are compared as they lie.
        self._known = pa.concat_tables([self._known, new]).combine_chunks()

    def _refuse_repetition(self, dimensions: pa.Table) -> None:
        """Each dimension comes once: an id that comes twice is that of two."""
        if pc.count_distinct(dimensions["dimension_id"]).as_py() == dimensions.num_rows:
            return
        counted = dimensions.group_by("dimension_id").aggregate([([], "count_all")])
        twice = counted.filter(pc.greater(counted["count_all"], 1))["dimension_id"]
        raise _collision(dimensions.filter(pc.is_in(dimensions["dimension_id"], value_set=twice.combine_chunks())))

    def _refuse_difference(self, dimensions: pa.Table, position: pa.ChunkedArray) -> None:
        """An id that is known is known for the same dimension."""
        present = dimensions.filter(pc.is_valid(position))
        known = self._known.take(pc.drop_null(position))
        for name in DIMENSION_COLUMNS:
            same = pc.equal(present[name], known[name])
            if not pc.all(same, min_count=0).as_py():
                raise _collision(pa.concat_tables(table.filter(pc.invert(same)) for table in (present, known)))


def _collision(dimensions: pa.Table) -> DimensionCollision:
    named = "; ".join(" / ".join(row[name] for name in DIMENSION_COLUMNS) for row in dimensions.to_pylist()[:3])
    return DimensionCollision(f"different dimensions share one id: {named}")
