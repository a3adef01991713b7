"""Other engines read the same data from the tables; `make readers` runs the larger ones."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from chargeback.demo.organisation import Organisation
from chargeback.store.facts.tables import FactTables
from tests.support.deployments import organisation
from tests.support.readable import MONEY, Sums, own_sums, readable_tenant

__all__ = ["organisation"]


@pytest.fixture(scope="module")
def facts(organisation: Organisation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FactTables]:
    """Yield the facts of a calculated tenant."""
    with readable_tenant(organisation, tmp_path_factory.mktemp("readers") / "tenant") as made:
        yield made


def polars_sums(facts: FactTables) -> Sums:
    """Return the sums by Polars, from the log."""
    found: Sums = {}
    for name, money in MONEY.items():
        days = pl.scan_delta(str(facts.root / name)).group_by("date").agg(pl.len(), pl.col(money).sum()).collect()
        found[name] = {str(day): (rows, total) for day, rows, total in days.rows()}
    return found


def datafusion_sums(facts: FactTables) -> Sums:
    """Return the sums by DataFusion, in SQL."""
    found: Sums = {}
    for name, money in MONEY.items():
        query = QueryBuilder().register(name, DeltaTable(facts.root / name))
        days = pa.table(
            query.execute(f"SELECT date, count(*) AS rows, sum({money}) AS total FROM {name} GROUP BY date")
        )
        found[name] = {str(row["date"]): (row["rows"], row["total"]) for row in days.to_pylist()}
    return found


@pytest.mark.extensive
def test_polars_reads_the_same(facts: FactTables) -> None:
    """The sums of each day are equal to the last digit."""
    assert polars_sums(facts) == own_sums(facts)


def test_datafusion_reads_the_same(facts: FactTables) -> None:
    """The sums of each day are equal to the last digit."""
    assert datafusion_sums(facts) == own_sums(facts)


def test_the_log_is_needed(facts: FactTables) -> None:
    """The tables of these tests have unreferenced files, which a reader of the folders would include."""
    for name in MONEY:
        there = {str(path) for path in (facts.root / name).glob("date=*/*.parquet")}
        assert there > {file.path for file in facts.snapshot(name).files}
        assert all(len(days) > 3 for days in own_sums(facts).values())
