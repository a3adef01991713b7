"""What was measured: the stored usage of each UTC day, by measure, resource and subject."""

from __future__ import annotations

from typing import Final

from chargeback.store.facts.tables import USAGE_TABLE
from chargeback.store.queries.datasets import AMOUNT, Column, Dataset

#: A measurement is about a whole UTC day and is never summed with others: measures have different units.
MEASUREMENTS: Final = Dataset(
    USAGE_TABLE,
    columns=(
        Column("date", source="date::VARCHAR"),
        Column("measure"),
        Column("resource_id"),
        Column("subject"),
        Column("value", AMOUNT, places=6),
    ),
    amount="value",
    filters=("measure", "resource_id", "subject"),
)
