"""The register of dimensions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from chargeback.allocation.day import Evidence
from chargeback.errors import DimensionCollision
from chargeback.model.chargeback import DIMENSIONS
from chargeback.model.days import utc_now
from chargeback.store.control.catalogue import instant_of_change
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import DIMENSIONS_TABLE, FactTables
from tests.allocation.bills import bill, calculate, members, usage
from tests.store.facts.test_tables import DAY


def charged(billed: str) -> pa.Table:
    """Return the dimensions of a bill that ``a`` and ``b`` share."""
    return calculate(Evidence(DAY, bill(billed), usage(""), members("* period a b"))).dimensions


def numbered(dimensions: pa.Table, ids: list[int]) -> pa.Table:
    """Return the same dimensions with other ids."""
    return dimensions.set_column(0, DIMENSIONS.field("dimension_id"), pa.array(ids, pa.int64()))


def register(tables: FactTables, *days: pa.Table) -> None:
    """Register the dimensions of some days, as one run and one batch."""
    opened = DimensionRegister(tables)
    for dimensions in days:
        opened.add(dimensions)
    opened.write()
    with tables.control.write() as connection:
        opened.record(connection, instant_of_change(connection, utc_now()))
    opened.recorded()
    tables.changed()


def test_a_dimension_is_registered_once(tables: FactTables) -> None:
    """Repeated dimensions add nothing, in this run or another; the new ones of a batch are one file."""
    register(tables, charged("r BASE 1"), charged("r BASE 2"))
    register(tables, charged("r BASE 3 \n s BASE 1"), charged("t BASE 1"))
    register(tables, charged("t BASE 1"))
    snapshot = tables.snapshot(DIMENSIONS_TABLE)
    assert sorted(file.rows for file in snapshot.files) == [2, 4]


def test_two_dimensions_with_one_id_are_an_error(tables: FactTables) -> None:
    """A collision within a day is reported, and nothing is written."""
    with pytest.raises(DimensionCollision, match="share one id"):
        register(tables, numbered(charged("r BASE 1 \n s BASE 1"), [1, 2, 3, 1]))
    assert tables.snapshot(DIMENSIONS_TABLE).rows == 0


def test_a_known_id_of_another_dimension_is_an_error(tables: FactTables) -> None:
    """A collision with stored dimensions, or an earlier day of the batch, is reported, and the day adds nothing."""
    known = numbered(charged("r BASE 1"), [1, 2])
    with pytest.raises(DimensionCollision, match="s / KAFKA"):
        register(tables, known, numbered(charged("s BASE 1"), [2, 3]))
    register(tables, known)
    with pytest.raises(DimensionCollision, match="s / KAFKA"):
        register(tables, numbered(charged("s BASE 1"), [2, 3]))
    assert tables.snapshot(DIMENSIONS_TABLE).rows == 2
