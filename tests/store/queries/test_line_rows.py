"""The rows of a line are those of its day that the reader sees."""

from __future__ import annotations

from datetime import date

from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.chargebacks import rows_of_line
from chargeback.store.queries.datasets import CHARGEBACKS
from tests.support.facts import Share, write_shares
from tests.support.readers import Read

DAY, NEXT = date(2026, 1, 30), date(2026, 1, 31)


def test_rows_of_one_line(facts: FactTables, read: Read) -> None:
    """Not those of other lines or days; none of a day without rows."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1", portion=1),
            Share(DAY, "sa-1", "1", portion=2),
            Share(DAY, "sa-2", "1", line="other"),
            Share(NEXT, "sa-3", "1"),
        ],
    )
    columns = ("identity_id", "portion")
    assert read(lambda reader: rows_of_line(reader, CHARGEBACKS, DAY, "line-1", columns)) == {("sa-1", 1), ("sa-1", 2)}
    assert read(lambda reader: rows_of_line(reader, CHARGEBACKS, date(2026, 2, 1), "line-1", columns)) == set()
