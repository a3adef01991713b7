"""The list of billing lines."""

from __future__ import annotations

from typing import Any

from chargeback.model.days import InstantRange
from chargeback.store.facts.tables import BILLING_TABLE, FactTables
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.filters import Filters
from chargeback.store.queries.paging import Page, page_of
from chargeback.store.queries.scan import Scan
from chargeback.store.queries.shapes import BILLING


def billing_lines(
    cursor: Cursor, facts: FactTables, window: InstantRange, filters: Filters, page: Page
) -> tuple[list[dict[str, Any]], int]:
    """One page of the lines of ``window``, by time and ids, and how many there are.

    Amounts are decimal texts. ``filters`` may name ``product_type`` and ``resource_id``.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    scan = Scan.of(facts.snapshot(BILLING_TABLE), window)
    rows, total = page_of(cursor, scan, filters.condition(), BILLING.plain, page)
    return [BILLING.item(row) for row in rows], total
