"""Usage of one day on one resource."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from chargeback.ecosystems.constructed.meter import Shares
from chargeback.ecosystems.constructed.plugin import measured_usage
from chargeback.model.usage import USAGE

DAY = date(2026, 11, 10)


def rows(**measures: Shares) -> list[tuple[str, str, str, Decimal]]:
    """What comes out, without the date."""
    table = measured_usage(DAY, "kafka-prod", measures).table
    assert table.schema.equals(USAGE)
    return [(row["measure"], row["resource_id"], row["subject"], row["value"]) for row in table.to_pylist()]


def test_each_measure_by_identity() -> None:
    """Rows are ordered by measure and identity; a series that is all zero has a row of zero."""
    found = rows(bytes_out=Shares({"carol": Decimal(7)}), bytes_in=Shares({"bob": Decimal(0), "alice": Decimal("1.5")}))
    assert found == [
        ("bytes_in", "kafka-prod", "alice", Decimal("1.5")),
        ("bytes_in", "kafka-prod", "bob", Decimal(0)),
        ("bytes_out", "kafka-prod", "carol", Decimal(7)),
    ]


def test_what_belongs_to_nobody_keeps_its_weight() -> None:
    """Beside series that name somebody, those that do not are nobody's, not their neighbours'."""
    found = rows(bytes_in=Shares({"alice": Decimal(3), "": Decimal(4), "UNALLOCATED": Decimal(1)}))
    assert [(subject, value) for _, _, subject, value in found] == [
        ("UNALLOCATED", Decimal(5)),
        ("alice", Decimal(3)),
    ]


def test_a_metric_that_names_nobody_measured_nothing() -> None:
    """Without a single label value there is no usage at all: the cost goes down the chain instead of to nobody."""
    assert rows(bytes_in=Shares({"": Decimal(4)})) == []


def test_dropped_values_are_counted() -> None:
    """What did not count is added up over the measures."""
    measured = measured_usage(DAY, "c", {"bytes_in": Shares({}, 2), "bytes_out": Shares({}, 3)})
    assert measured.dropped == 5
