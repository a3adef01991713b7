"""Allocation as one Python loop per row, with decimals: the obvious first implementation.

It splits by weight, gives the rounding remainder to the first identity, and inserts each row into the star schema. It
has neither chains of methods nor portions, so it does less than the calculation with which it is compared.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from decimal import Decimal
from typing import Any

from chargeback.allocation.day import Evidence

_CENT = Decimal("0.000000000001")


def allocate(evidence: Evidence, database: sqlite3.Connection) -> int:
    """Split every line and insert the rows; return their number."""
    usage: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for row in evidence.usage.to_pylist():
        usage[row["resource_id"]][row["subject"]] += row["value"]
    members: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for row in evidence.members.to_pylist():
        members[row["resource_id"]][row["identity_id"]] = Decimal(1)
    rows = 0
    for line in evidence.billing.to_pylist():
        by_usage = "NETWORK" in line["product_type"] or "CKU" in line["product_type"]
        weights = (usage if by_usage else members).get(line["resource_id"]) or members["*"]
        for record in _split(line, weights):
            _insert(database, record)
            rows += 1
    database.commit()
    return rows


def _split(line: dict[str, Any], weights: dict[str, Decimal]) -> list[dict[str, Any]]:
    total, left = sum(weights.values()), line["total_cost"]
    records = []
    for identity, weight in weights.items():
        share = (line["total_cost"] * weight / total).quantize(_CENT)
        left -= share
        records.append({**line, "identity_id": identity, "amount": share})
    records[0]["amount"] += left
    return records


def _insert(database: sqlite3.Connection, record: dict[str, Any]) -> None:
    key = (record["resource_id"], record["product_type"], record["identity_id"])
    found = database.execute(
        "SELECT id FROM dimension WHERE resource_id = ? AND product_type = ? AND identity_id = ?", key
    ).fetchone()
    if found is None:
        found = (
            database.execute(
                "INSERT INTO dimension (resource_id, product_type, identity_id) VALUES (?, ?, ?)", key
            ).lastrowid,
        )
    database.execute("INSERT INTO fact VALUES (?, ?, ?)", (record["date"].isoformat(), found[0], str(record["amount"])))


def new_database(path: str) -> sqlite3.Connection:
    """Return an empty star schema."""
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE dimension (id INTEGER PRIMARY KEY, resource_id TEXT, product_type TEXT, identity_id TEXT);
        CREATE UNIQUE INDEX dimension_key ON dimension (resource_id, product_type, identity_id);
        CREATE TABLE fact (day TEXT, dimension_id INTEGER, amount TEXT);
        CREATE INDEX fact_by_day ON fact (day, dimension_id);
        """
    )
    return database
