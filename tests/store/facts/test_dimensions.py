"""The register of dimensions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.allocation.day import Evidence
from chargeback.errors import DimensionCollision
from chargeback.model.chargeback import DIMENSIONS
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import DIMENSIONS_TABLE, FactTables
from tests.allocation.bills import bill, calculate, members, usage
from tests.store.facts.test_tables import DAY


def charged(billed: str) -> pa.Table:
    """The dimensions of a bill that ``a`` and ``b`` share."""
    return calculate(Evidence(DAY, bill(billed), usage(""), members("* period a b"))).dimensions


def numbered(dimensions: pa.Table, ids: list[int]) -> pa.Table:
    """The same dimensions under other ids."""
    return dimensions.set_column(0, DIMENSIONS.field("dimension_id"), pa.array(ids, pa.int64()))


@pytest.fixture
def tables(tmp_path: Path) -> FactTables:
    """Empty tables."""
    tables = FactTables(tmp_path)
    tables.create()
    return tables


def test_a_dimension_is_registered_once(tables: FactTables) -> None:
    """Days that repeat a dimension, in this run or another, add nothing."""
    register = DimensionRegister(tables, epoch=1)
    register.register(charged("r BASE 1"))
    register.register(charged("r BASE 2"))
    DimensionRegister(tables, epoch=2).register(charged("r BASE 3 \n s BASE 1"))
    snapshot = tables.snapshot(DIMENSIONS_TABLE)
    assert [file.rows for file in snapshot.files] == [2, 2]


def test_two_dimensions_with_one_id_are_an_error(tables: FactTables) -> None:
    """A collision within a day is named and nothing is written."""
    register = DimensionRegister(tables, epoch=1)
    with pytest.raises(DimensionCollision, match="share one id"):
        register.register(numbered(charged("r BASE 1 \n s BASE 1"), [1, 2, 3, 1]))
    assert tables.snapshot(DIMENSIONS_TABLE).rows == 0


def test_a_known_id_of_another_dimension_is_an_error(tables: FactTables) -> None:
    """A collision with what is stored is named, also in another run, and nothing is written."""
    DimensionRegister(tables, epoch=1).register(numbered(charged("r BASE 1"), [1, 2]))
    register = DimensionRegister(tables, epoch=2)
    with pytest.raises(DimensionCollision, match="s / KAFKA"):
        register.register(numbered(charged("s BASE 1"), [2, 3]))
    assert tables.snapshot(DIMENSIONS_TABLE).rows == 2
