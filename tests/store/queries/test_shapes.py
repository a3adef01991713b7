"""A row's description gives the same values by the database and by Python."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from chargeback.store.queries.shapes import AMOUNT, INSTANT, NUMBER, Column, Shape
from tests.store.queries.conftest import Ask

SHAPE = Shape(
    [Column("amount", AMOUNT), Column("moment", INSTANT), Column("name")],
    [Column("z", NUMBER, source="number"), Column("cost", AMOUNT, source="amount"), Column("a", source="name")],
)


@pytest.mark.parametrize("amount", ["0", "-0.000000000001", "12.5", "99999999999999999999999999", None])
@pytest.mark.parametrize("name", ['a "quoted" \\ name\n', "ü", None])
def test_both_renderings_agree(ask: Ask, amount: str | None, name: str | None) -> None:
    """Metadata as JSON for files is the metadata of pages; what is null is left out of it."""
    row = (
        "(SELECT $amount::VARCHAR::DECIMAL(38, 12) AS amount, make_timestamptz(1767225600500000) AS moment, "
        "$name::VARCHAR AS name, 3 AS number)"
    )
    values = {"amount": amount, "name": name}
    (plain,) = ask(lambda cursor: cursor.rows(f"SELECT {SHAPE.plain} FROM {row}", values))
    ((text,),) = ask(lambda cursor: cursor.rows(f"SELECT {SHAPE.metadata_json} FROM {row}", values))
    item = SHAPE.item(plain)
    assert text == json.dumps(item["metadata"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert item["moment"] == "2026-01-01T00:00:00.5Z"
    assert item["amount"] is None if amount is None else Decimal(item["amount"]) == Decimal(amount)
    assert ("cost" in item["metadata"], "a" in item["metadata"]) == (amount is not None, name is not None)
