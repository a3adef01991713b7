"""The datasets whose days have revisions, and the tables that each revision replaces together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chargeback.store.control.days import DayDataset
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
)


@dataclass(frozen=True, slots=True)
class RevisedDataset:
    """A dataset whose days have revisions.

    Attributes:
        name: its name in the table of revisions.
        table: the table with its rows.
        usage: the table with its measurements.
        evidence: all tables that its rows were calculated from.
        payer: the columns of whoever has an amount.
    """

    name: DayDataset
    table: str
    usage: str
    evidence: tuple[str, ...]
    payer: tuple[str, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose files a revision names: the evidence, then the rows."""
        return (*self.evidence, self.table)


REVISED_CHARGEBACKS: Final = RevisedDataset(
    DayDataset.CHARGEBACKS,
    CHARGEBACKS_TABLE,
    USAGE_TABLE,
    (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE),
    ("identity_id",),
)
REVISED_TOPICS: Final = RevisedDataset(
    DayDataset.TOPICS,
    TOPICS_TABLE,
    TOPIC_USAGE_TABLE,
    (BILLING_TABLE, TOPIC_USAGE_TABLE),
    ("cluster_resource_id", "topic_name"),
)
#: All of them by their names.
REVISED: Final[Mapping[str, RevisedDataset]] = {
    dataset.name: dataset for dataset in (REVISED_CHARGEBACKS, REVISED_TOPICS)
}
#: By which revisions the files of each table are chosen: the bill by those of the charges that were made from it.
REVISED_BY: Final = {name: dataset for dataset in (REVISED_TOPICS, REVISED_CHARGEBACKS) for name in dataset.tables}
