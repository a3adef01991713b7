"""Rows in an indexed SQLite star schema: the obvious first implementation.

Amounts are REAL: that is fast, and inexact.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

_DIMENSIONS: Final = (
    *("resource_id", "environment_id", "product_category", "product_type"),
    *("identity_id", "cost_type", "allocation_method", "allocation_detail"),
)

_SCHEMA: Final = f"""
    CREATE TABLE dimension (dimension_id INTEGER PRIMARY KEY, {", ".join(f"{name} TEXT" for name in _DIMENSIONS)});
    CREATE TABLE fact (day TEXT, dimension_id INTEGER, amount REAL);
"""
_INDEXES: Final = """
    CREATE INDEX fact_by_day ON fact (day, dimension_id);
    CREATE INDEX fact_by_dimension ON fact (dimension_id);
    CREATE INDEX dimension_by_identity ON dimension (identity_id);
    CREATE INDEX dimension_by_resource ON dimension (resource_id);
    ANALYZE;
"""


class Star:
    """One tenant's rows in a SQLite file, which is created if it does not exist."""

    def __init__(self, file: Path, chargebacks: list[str]) -> None:
        if not file.exists():
            making = file.with_suffix(".making")
            making.unlink(missing_ok=True)
            with sqlite3.connect(making) as database:
                database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
                for name in chargebacks:
                    _load(database, Path(name))
                database.executescript(_INDEXES)
            database.close()
            making.rename(file)
        self._db = sqlite3.connect(file)
        self._db.execute("PRAGMA cache_size = -200000")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def aggregate(self, column: str, unit: str, first: date, last: date) -> list[Any]:
        """Return sums by a column and day, the newest ten thousand."""
        assert unit == "day"
        return self._db.execute(
            f"""SELECT day, {column}, sum(amount), count(*), sum(CASE WHEN cost_type = 'usage' THEN amount END)
                FROM fact JOIN dimension USING (dimension_id) WHERE day BETWEEN ? AND ?
                GROUP BY 1, 2 ORDER BY 1 DESC, 2 LIMIT 10000""",
            (first.isoformat(), last.isoformat()),
        ).fetchall()

    def page(self, filters: dict[str, str], first: date, last: date, offset: int, limit: int) -> list[Any]:
        """Return one page by time and ids, and the number of rows."""
        where = " AND ".join(["day BETWEEN ? AND ?", *(f"{name} = ?" for name in filters)])
        source = f"FROM fact JOIN dimension USING (dimension_id) WHERE {where}"
        values = (first.isoformat(), last.isoformat(), *filters.values())
        self._db.execute(f"SELECT count(*) {source}", values).fetchall()
        return self._db.execute(
            f"SELECT * {source} ORDER BY day, identity_id, dimension_id LIMIT {limit} OFFSET {offset}", values
        ).fetchall()

    def export(self) -> int:
        """Join every row to a line of text in Python, as CSV does; return the number of rows."""
        rows = 0
        for row in self._rows():
            ",".join(map(str, row))
            rows += 1
        return rows

    def _rows(self) -> Iterator[Any]:
        yield from self._db.execute("SELECT * FROM fact JOIN dimension USING (dimension_id) ORDER BY day LIMIT 300000")


def _load(database: sqlite3.Connection, file: Path) -> None:
    day = date.fromisoformat(file.parent.name.removeprefix("date=")).isoformat()
    table = pq.read_table(file, partitioning=None, columns=["dimension_id", "amount", *_DIMENSIONS])
    ids = table["dimension_id"].to_pylist()
    described = zip(ids, *(table[name].to_pylist() for name in _DIMENSIONS), strict=True)
    marks = ", ".join("?" * (1 + len(_DIMENSIONS)))
    database.executemany(f"INSERT OR IGNORE INTO dimension VALUES ({marks})", described)
    amounts = table["amount"].cast("double").to_pylist()
    database.executemany("INSERT INTO fact VALUES (?, ?, ?)", zip([day] * len(ids), ids, amounts, strict=True))


def days_of(first: date, last: date) -> list[str]:
    """Return ISO dates from first to last."""
    return [(first + timedelta(days=offset)).isoformat() for offset in range((last - first).days + 1)]
