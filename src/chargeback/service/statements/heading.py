"""What all statements of a month have in common, and how they compare with the provider's bill."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from sqlalchemy import Connection

from chargeback.model.days import DayRange
from chargeback.model.money import total
from chargeback.service.reconciliation import grouped_reconciliation, state_of, states_seen
from chargeback.service.statements.amounts import Grouping
from chargeback.service.statements.content import Heading, Stated, TieOut
from chargeback.service.statements.numbering import revision_of
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.cost_categories import read_version
from chargeback.store.control.day_revisions import CHARGEBACK_REVISIONS, read_day_revisions
from chargeback.store.queries.reader import TenantReader


def month_name(day: date) -> str:
    """Return the month of a day, such as ``2026-10``."""
    return day.isoformat()[: len("2026-10")]


def heading_of(
    tenant: TenantView, reader: TenantReader, connection: Connection, days: DayRange, grouping: Grouping
) -> Heading:
    """Return the heading of a month's statements, at the instant that the reader sees."""
    states = states_seen(reader, connection, days)
    calculated = sorted(day for day, state in states.items() if state.was_calculated)
    instants = [
        revision.calculated_at
        for revision in read_day_revisions(connection, CHARGEBACK_REVISIONS, days)
        if revision.tracking_date in states and revision.revision <= states[revision.tracking_date].revision
    ]
    if instants and grouping.category is not None and grouping.version is not None:
        version = read_version(connection, grouping.category.key, grouping.version)
        instants += [] if version is None else [version.at]
    return Heading(
        tenant.tenant_name,
        grouping.by,
        month_name(days.start),
        days,
        len(calculated),
        calculated[-1] if calculated else None,
        max(instants, default=None),
        tenant.currency,
        revision_of((state.revision for state in states.values()), grouping.version),
        grouping.version,
        None if reader.scope is None else reader.scope.as_json(),
    )


def tie_out(
    tenant: TenantView, reader: TenantReader, connection: Connection, days: DayRange, amounts: Collection[Stated]
) -> TieOut:
    """Return the statements of these amounts beside the bill of a month.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    states = states_seen(reader, connection)
    found = grouped_reconciliation(reader, connection, states, tenant.rules.catalogue, days)
    calculated = [day for day in found.items if not day.waits]
    return TieOut(
        statements=Stated.sum(amounts),
        billed=Stated.alone(total(day.billed for day in calculated)),
        outdated=Stated.alone(total(day.charged for day in found.items if day.waits)),
        pending=Stated.alone(found.total.pending),
        state=state_of(found.total),
    )
