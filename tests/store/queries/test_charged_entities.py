"""Which resources and identities appear in chargebacks."""

from __future__ import annotations

from datetime import date

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.chargebacks import charged_entities
from chargeback.store.queries.selection import Selection, equal
from tests.support.facts import Share, write_shares
from tests.support.readers import Read

DAY = date(2026, 1, 1)
WINDOW = instants(DAY, DAY)


def test_every_entity_once(read: Read, facts: FactTables) -> None:
    """Each resource and identity of the range, UNALLOCATED included; only of one identity's rows where it is given."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1"),
            Share(DAY, "sa-1", "1", resource="lkc-2"),
            Share(DAY, "UNALLOCATED", "1"),
            Share(date(2026, 1, 2), "sa-9", "1"),
        ],
    )
    everyone = read(lambda reader: charged_entities(reader, Selection(WINDOW)))
    assert sorted(everyone) == [
        ("identity", "UNALLOCATED"),
        ("identity", "sa-1"),
        ("resource", "lkc-1"),
        ("resource", "lkc-2"),
    ]
    unallocated = Selection(WINDOW, equal(identity_id="UNALLOCATED"))
    assert ("resource", "lkc-2") not in read(lambda reader: charged_entities(reader, unallocated))
    nobody = Selection(instants(date(2025, 1, 1), DAY), equal(identity_id="nobody"))
    assert read(lambda reader: charged_entities(reader, nobody)) == []
