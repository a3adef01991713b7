"""A column added to a table is empty on earlier days, and every reader reads days of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from chargeback.model.days import DayRange
from chargeback.store.facts import tables as module
from chargeback.store.facts.published import publish
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, SCHEMAS, AddedColumn, FactTables, read_day
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, catalogue_of, new_facts, replace_day, write_shares

DAY = date(2026, 1, 1)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FactTables]:
    """Yield tables with a day before and one after two columns were added, one of them with a constant before."""
    tables = new_facts(tmp_path / "facts")
    write_shares(tables, [Share(DAY, "sa-1", "1"), Share(NEXT, "sa-2", "2")])
    publish(tables.place, catalogue_of(tables), {}, from_scratch=False)
    before = SCHEMAS[CHARGEBACKS_TABLE]
    rows = read_day(tables, CHARGEBACKS_TABLE, NEXT)
    schema = before.append(pa.field("zone", pa.string())).append(pa.field("kind", pa.string()))
    monkeypatch.setitem(SCHEMAS, CHARGEBACKS_TABLE, schema)
    monkeypatch.setattr(
        module, "ADDED", [AddedColumn(CHARGEBACKS_TABLE, "zone"), AddedColumn(CHARGEBACKS_TABLE, "kind", "classic")]
    )
    monkeypatch.setattr("chargeback.store.queries.engine.ADDED", module.ADDED)
    added = rows.append_column("zone", pa.array(["a"])).append_column("kind", pa.array(["diskless"]))
    replace_day(tables, CHARGEBACKS_TABLE, NEXT, added)
    yield tables


def test_each_file_knows_its_columns(facts: FactTables) -> None:
    """A day is read with the present columns."""
    assert [file.schema_version for file in facts.snapshot(CHARGEBACKS_TABLE).files] == [0, 2]
    for day, zone, kind in ((DAY, None, "classic"), (NEXT, "a", "diskless")):
        (row,) = read_day(facts, CHARGEBACKS_TABLE, day).to_pylist()
        assert (row["zone"], row["kind"]) == (zone, kind)


def test_a_query_reads_days_of_both(facts: FactTables) -> None:
    """A query works on both kinds of days, also if it uses the new columns, and if no file has them."""
    with QueryEngine(threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        files = facts.snapshot(CHARGEBACKS_TABLE).files
        sql = f"SELECT date, zone, kind, amount FROM {SOURCE} ORDER BY date"
        found = cursor.rows(sql, {"files": files})
        assert found == [(DAY, None, "classic", Decimal(1)), (NEXT, "a", "diskless", Decimal(2))]
        assert cursor.rows(sql, {"files": files[:1]}) == found[:1]
        assert cursor.rows(sql, {"files": files[1:]}) == found[1:]
        reader = TenantReader(cursor, facts, TagIndex())
        everything = Selection.of_days(DayRange(DAY, NEXT + timedelta(days=1)))
        assert b"".join(reader.export(CHARGEBACKS, everything)).count(b"\n") == 3


def test_other_engines_see_the_columns(facts: FactTables) -> None:
    """The published table gets the columns with the first day that has them."""
    publish(facts.place, catalogue_of(facts), {}, from_scratch=False)
    query = QueryBuilder().register("rows", DeltaTable(facts.root / CHARGEBACKS_TABLE))
    found = pa.table(query.execute("SELECT zone, kind, amount FROM rows ORDER BY amount")).to_pylist()
    assert [(row["zone"], row["kind"]) for row in found] == [(None, None), ("a", "diskless")]
