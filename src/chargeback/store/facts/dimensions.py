"""The register of dimensions: every combination that was ever charged, under its id.

It finds one dimension without reading the days, and detects two dimensions that would share an id.
"""

from __future__ import annotations

from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from chargeback.errors import DimensionCollision
from chargeback.model.chargeback import DIMENSION_CHECK_SQL, DIMENSION_COLUMNS, DIMENSIONS
from chargeback.store.control.catalogue import NewFile, add
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import read_file, write_file
from chargeback.store.facts.tables import DIMENSIONS_TABLE, FactTables, completed, conform, schema_version


def stored_dimensions(tables: FactTables) -> pa.Table:
    """Every dimension of the register, in schema DIMENSIONS.

    Raises:
        DamagedFacts: a file of it is missing, or not what was written.
        StorageError: it cannot be read.
    """
    files = tables.snapshot(DIMENSIONS_TABLE).files
    with translate_file_errors(DIMENSIONS_TABLE):
        return pa.concat_tables(
            [DIMENSIONS.empty_table(), *(completed(DIMENSIONS_TABLE, read_file(file)) for file in files)]
        )


def write_register(tables: FactTables, rows: pa.Table) -> NewFile:
    """Write a file of dimensions, which is not part of the register yet.

    Raises:
        StorageError: it cannot be written.
    """
    with translate_file_errors(DIMENSIONS_TABLE):
        return write_file(
            tables.place,
            DIMENSIONS_TABLE,
            conform(rows, DIMENSIONS),
            None,
            schema_version(DIMENSIONS_TABLE),
            tables.control.owner,
        )


class DimensionRegister:
    """The dimensions known so far. One per run, under its lease.

    Raises:
        StorageError: what is stored cannot be read.
    """

    def __init__(self, tables: FactTables) -> None:
        self._tables = tables
        self._file: NewFile | None = None
        self._unwritten: list[pa.Table] = []
        stored = stored_dimensions(tables)
        self._ids = stored["dimension_id"].combine_chunks()
        self._checks = _checks_of(stored)

    def add(self, dimensions: pa.Table) -> None:
        """Add those of a calculated day's dimensions (each once) that are not known yet; :meth:`write` and
        :meth:`record` store them.

        Raises:
            DimensionCollision: two different dimensions have the same id.
        """
        position = pc.index_in(dimensions["dimension_id"], value_set=self._ids)
        self._check_difference(dimensions, position)
        new = dimensions.filter(pc.is_null(position)).combine_chunks()
        if new.num_rows == 0:
            return
        in_order = new.sort_by("dimension_id")
        self._check_repetition(in_order)
        self._unwritten.append(in_order.select(DIMENSIONS.names))  # with encoded texts: writing takes a third
        # Not as in the file: tomorrow's come in the order of today's, and are compared as they lie.
        self._ids = pa.concat_arrays([self._ids, new["dimension_id"].combine_chunks()])
        self._checks = pa.concat_arrays([self._checks, new["dimension_check"].combine_chunks()])

    def write(self) -> None:
        """Write a file of the added dimensions, which is part of the register once it is recorded.

        Raises:
            StorageError: it cannot be written.
        """
        if self._unwritten:
            rows = pa.concat_tables(self._unwritten).sort_by("dimension_id")
            self._file = write_register(self._tables, rows)

    def record(self, connection: Connection, at: datetime) -> None:
        """Make the written file part of the register, from the instant ``at`` on."""
        if self._file is not None:
            add(connection, [(DIMENSIONS_TABLE, None, self._file)], at)

    def recorded(self) -> None:
        """Forget what is committed; what is not, is written again with the next."""
        if self._file is not None:
            self._file = None
            self._unwritten.clear()

    def _check_repetition(self, dimensions: pa.Table) -> None:
        """Check that each id comes once; equal ones would be neighbours, in the order of ids."""
        ids = dimensions["dimension_id"].combine_chunks()
        is_repeated = pc.equal(ids[1:], ids[:-1])
        if pc.any(is_repeated, min_count=0).as_py():
            twice = ids[1:].filter(is_repeated)
            raise _collision(dimensions.filter(pc.is_in(ids, value_set=twice)))

    def _check_difference(self, dimensions: pa.Table, position: pa.ChunkedArray) -> None:
        """Check that a stored id has the same dimension."""
        present = dimensions.filter(pc.is_valid(position))
        same = pc.equal(present["dimension_check"], self._checks.take(pc.drop_null(position)))
        if not pc.all(same, min_count=0).as_py():
            different = present.filter(pc.invert(same)).select(DIMENSIONS.names).cast(DIMENSIONS)
            unwritten = [each.cast(DIMENSIONS) for each in self._unwritten]
            stored = pa.concat_tables([stored_dimensions(self._tables), *unwritten])
            known = stored.filter(pc.is_in(stored["dimension_id"], value_set=different["dimension_id"]))
            raise _collision(pa.concat_tables([different, known]))


def _checks_of(dimensions: pa.Table) -> pa.Array:
    if dimensions.num_rows == 0:
        return pa.array([], pa.uint64())  # The first run of a tenant does without another engine.
    with duckdb.connect() as database:
        database.register("dimensions", dimensions)
        found = database.sql(f"SELECT {DIMENSION_CHECK_SQL} AS dimension_check FROM dimensions").to_arrow_table()
    return found["dimension_check"].combine_chunks()


def _collision(dimensions: pa.Table) -> DimensionCollision:
    named = "; ".join(" / ".join(row[name] for name in DIMENSION_COLUMNS) for row in dimensions.to_pylist()[:3])
    return DimensionCollision(f"different dimensions share one id: {named}")
