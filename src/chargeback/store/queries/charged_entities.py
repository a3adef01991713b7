"""Which resources and identities appear in chargebacks."""

from __future__ import annotations

from chargeback.store.control.tags import IDENTITY, RESOURCE
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection


def charged_entities(reader: TenantReader, selection: Selection) -> list[tuple[str, str]]:
    """Return (entity type, id) of every resource and identity in the selected chargeback rows.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    scan = reader.scan(CHARGEBACKS, selection)
    if not scan.files:
        return []
    condition = scan.condition()
    sql = f"""
        WITH pairs AS MATERIALIZED (SELECT DISTINCT resource_id, identity_id FROM {SOURCE} WHERE {condition.sql})
        SELECT DISTINCT '{RESOURCE}', resource_id FROM pairs
        UNION ALL SELECT DISTINCT '{IDENTITY}', identity_id FROM pairs
        ORDER BY ALL
    """
    return [(entity_type, entity_id) for entity_type, entity_id in reader.cursor.rows(sql, condition.parameters)]
