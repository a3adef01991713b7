"""Which resources and identities appear in chargebacks."""

from __future__ import annotations

from chargeback.model.days import InstantRange
from chargeback.store.control.tags import IDENTITY, RESOURCE
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.filters import Filters
from chargeback.store.queries.scan import SOURCE, Scan


def charged_entities(
    cursor: Cursor, facts: FactTables, window: InstantRange, identity_id: str | None
) -> list[tuple[str, str]]:
    """(entity type, id) of every resource and identity in the rows of ``window``; only in those of one identity where
    it is given.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), window)
    if not scan.files:
        return []
    condition = scan.condition() & Filters(identity_id=identity_id).condition()
    sql = f"""
        WITH pairs AS MATERIALIZED (SELECT DISTINCT resource_id, identity_id FROM {SOURCE} WHERE {condition.sql})
        SELECT DISTINCT '{RESOURCE}', resource_id FROM pairs
        UNION ALL SELECT DISTINCT '{IDENTITY}', identity_id FROM pairs
        ORDER BY ALL
    """
    return [(entity_type, entity_id) for entity_type, entity_id in cursor.rows(sql, condition.parameters)]
