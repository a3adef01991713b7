"""Parquet files: typed columns, the same amounts in every reader, and constant memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chargeback.model.days import instants
from chargeback.model.money import total
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries import export
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.export import parquet_file
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, TagFilter
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, write_shares
from tests.support.readers import Read

DAY = date(2026, 1, 1)
JANUARY = Selection(instants(DAY, date(2026, 1, 31)))
TAGS = TagIndex.undated({"sa-1": {"team": "a=b;c", "x": "=1+1"}}, {"lkc-1": {"team": "lost", "env": "prod"}})
#: Amounts that a binary floating-point number cannot represent, some with the maximum number of digits.
AMOUNTS = ("0.1", "-0.000000000001", "12345678901234567890123456.123456789012", "-12345678901234567890123456", "2")


def parquet(read: Read, selection: Selection = JANUARY, columns: tuple[str, ...] = (), tags: TagIndex = TAGS) -> bytes:
    """Return the content of a file."""
    content: bytes = read(lambda reader: b"".join(reader.export(CHARGEBACKS, selection, columns, form="parquet")), tags)
    return content


def write_rows(facts: FactTables, days: int, per_day: int) -> None:
    """Write rows of some identities, with every kind of amount."""
    write_shares(
        facts,
        [
            Share(day, f"sa-{n % 7}", AMOUNTS[n % len(AMOUNTS)], resource=f"lkc-{n % 3}", line=f"line-{n}")
            for day in days_from(DAY, days)
            for n in range(per_day)
        ],
    )


def test_types(read: Read, facts: FactTables) -> None:
    """Amounts are decimals, timestamps are UTC instants, tags a map, metadata a record; texts are unchanged."""
    write_shares(facts, [Share(DAY, "=1+1", "-1.5", usage=None, environment=None), Share(DAY, "sa-1", "2")])
    table = pq.read_table(io.BytesIO(parquet(read, columns=CHARGEBACKS.export_columns)))
    assert table.schema.field("amount").type == pa.decimal128(38, 12)
    assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    first, second = table.to_pylist(maps_as_pydicts="strict")
    assert (first["identity_id"], first["amount"]) == ("=1+1", Decimal("-1.500000000000"))
    assert first["timestamp"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert first["tags"] == {"env": "prod", "team": "lost"}
    assert second["tags"] == {"env": "prod", "team": "a=b;c", "x": "=1+1"}
    assert first["metadata"] == {
        "chain_position": 0,
        "environment_id": None,
        "identity_usage": None,
        "line_id": "line-1",
        "policy": "abc123",
        "portion": 0,
        "portion_share": Decimal("0.700000000000"),
        "total_usage": None,
    }


def test_every_reader_has_the_figures_of_the_list(read: Read, facts: FactTables, tmp_path: Path) -> None:
    """DuckDB, Polars and pandas read the rows of the list from Parquet, and from CSV and JSON lines."""
    write_rows(facts, days=3, per_day=50)
    names = ("timestamp", "identity_id", "resource_id", "amount")
    items, _ = read(lambda reader: reader.list_rows(CHARGEBACKS, JANUARY, Page(0, 1000)), TAGS)
    rows = [
        (datetime.fromisoformat(each["timestamp"]), each["identity_id"], each["resource_id"], Decimal(each["amount"]))
        for each in items
    ]
    for form in ("csv", "jsonl", "parquet"):
        content = read(lambda reader, form=form: b"".join(reader.export(CHARGEBACKS, JANUARY, form=form)), TAGS)
        (tmp_path / f"rows.{form}").write_bytes(content)

    file = tmp_path / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        (kind,) = connection.sql(f"SELECT DISTINCT typeof(tags) FROM '{file}'").fetchall()
        assert kind == ("MAP(VARCHAR, VARCHAR)",)
        for source in (file, tmp_path / "rows.csv", tmp_path / "rows.jsonl"):
            instant = "make_timestamp(epoch_us(timestamp::TIMESTAMPTZ))"
            sql = f"SELECT {instant}, identity_id, resource_id, amount::DECIMAL(38, 12) FROM {_text_reader(source)}"
            found = connection.sql(sql).fetchall()
            assert [(when.replace(tzinfo=UTC), *others) for when, *others in found] == rows
    frame = pl.read_parquet(file, columns=list(names))
    assert frame.schema["amount"] == pl.Decimal(38, 12)
    assert frame.select(names).rows() == rows
    assert frame["amount"].sum() == total([row[3] for row in rows])
    table = pd.read_parquet(file, columns=list(names))
    assert list(table[list(names)].itertuples(index=False, name=None)) == rows
    texts = pd.read_csv(tmp_path / "rows.csv", dtype={"amount": str}, keep_default_na=False)
    assert [Decimal(text) for text in texts["amount"]] == [row[3] for row in rows]
    records = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [Decimal(each["amount"]) for each in records] == [row[3] for row in rows]


def _text_reader(file: Path) -> str:
    """Return the DuckDB function that reads amounts as text."""
    match file.suffix:
        case ".csv":
            return f"read_csv('{file}', all_varchar = true)"
        case ".jsonl":
            return f"read_json('{file}', format = 'newline_delimited', columns = {{" + (
                "timestamp: 'VARCHAR', identity_id: 'VARCHAR', resource_id: 'VARCHAR', amount: 'VARCHAR'})"
            )
    return f"'{file}'"


def test_no_rows_are_a_file_with_columns(read: Read, facts: FactTables) -> None:
    """A file without rows has the columns and types of every other file."""
    empty = pq.read_schema(io.BytesIO(parquet(read, columns=("amount", "tags"))))
    write_rows(facts, days=1, per_day=3)
    nobody = replace(JANUARY, tags=(TagFilter("team", frozenset(["nobody"])),))
    table = pq.read_table(io.BytesIO(parquet(read, nobody, ("amount", "tags"))))
    assert (table.num_rows, table.schema.names) == (0, ["amount", "tags"])
    assert table.schema == empty == pq.read_schema(io.BytesIO(parquet(read, columns=("amount", "tags"))))


def test_an_unfinished_file_cannot_be_read(read: Read, facts: FactTables) -> None:
    """Without its last piece a file cannot be read, so that a part is not mistaken for the whole."""
    write_rows(facts, days=1, per_day=3)
    pieces = read(lambda reader: [bytes(each) for each in reader.export(CHARGEBACKS, JANUARY, form="parquet")])
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(b"".join(pieces[:-1])))


@pytest.mark.extensive
def test_memory_does_not_grow_with_the_rows(read: Read, facts: FactTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many times the rows give many more row groups, but use no more memory at a time."""
    monkeypatch.setattr(export, "_BATCH", 2048)
    write_rows(facts, days=16, per_day=2048)

    def _peak(days: int) -> tuple[int, int]:
        """Return the number of row groups, and the most memory in bytes that was used at a time."""
        selection = Selection(instants(DAY, days_from(DAY, days)[-1]))
        held, groups = 0, 0

        def _read(reader: TenantReader) -> None:
            nonlocal held, groups
            for _ in reader.export(CHARGEBACKS, selection, form="parquet"):
                groups += 1
                held = max(held, pa.total_allocated_bytes())

        tracemalloc.start()
        read(_read, TAGS)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return groups, held + peak

    _peak(1)
    few, small = _peak(2)
    many, large = _peak(16)
    assert many >= 4 * few
    assert large < 1.5 * small


def test_batches_become_row_groups() -> None:
    """Each batch of a schema becomes a row group."""
    schema = pa.schema([("a", pa.int64())])
    batches = [pa.RecordBatch.from_pydict({"a": [n, n + 1]}, schema=schema) for n in (1, 3)]
    file = pq.ParquetFile(io.BytesIO(b"".join(parquet_file(schema, batches))))
    assert (file.num_row_groups, file.read().to_pydict()) == (2, {"a": [1, 2, 3, 4]})
