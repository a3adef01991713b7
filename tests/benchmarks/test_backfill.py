"""The floor of a backfill makes the same rows."""

from __future__ import annotations

from pathlib import Path

from benchmarks.backfill import calculate_again
from benchmarks.shapes import Shape
from benchmarks.storage import tables_in
from benchmarks.tenants import generate

from chargeback.store.facts.tables import CHARGEBACKS_TABLE, read_day


def test_the_floor_makes_the_same_rows(tmp_path: Path) -> None:
    """Calculating the stored days again, without the pipeline, gives the rows that are stored."""
    shape = Shape("tiny", identities=20, clusters=3, members=4, days=2, resources=5, topics=4)
    generate(shape, tmp_path / "tenant")
    stored, copy = (
        tables_in(tmp_path / "tenant" / "facts", tmp_path / "tenant" / "control.db"),
        tables_in(tmp_path / "copy"),
    )
    assert calculate_again(stored, copy) > 0
    for day in shape.dates():
        assert read_day(copy, CHARGEBACKS_TABLE, day).equals(read_day(stored, CHARGEBACKS_TABLE, day))
