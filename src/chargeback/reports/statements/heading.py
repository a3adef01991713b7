"""The heading of all statements of a month, and their comparison with the provider's bill."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from sqlalchemy import Connection

from chargeback.config.settings import FormatSettings
from chargeback.model.currency import month_name
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import difference, total
from chargeback.reports.reconciliation import grouped_reconciliation, state_of, states_seen
from chargeback.reports.statements.amounts import StatementGrouping
from chargeback.reports.statements.content import StatedAmount, StatementFormat, StatementHeading, StatementTieOut
from chargeback.reports.statements.numbering import revision_of
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.cost_categories import read_changes
from chargeback.store.control.day_revisions import RETENTION, Revision, read_day_revisions
from chargeback.store.control.days import DayDataset, DayState
from chargeback.store.queries.reader import TenantReader


def heading_of(
    tenant: TenantView, reader: TenantReader, connection: Connection, days: DayRange, grouping: StatementGrouping
) -> tuple[StatementHeading, int | None]:
    """Return the heading of a month's statements at the instant that the reader sees, and the revision that they
    supersede, if it has the same values, or None."""
    states = states_seen(reader, connection, days)
    calculated = sorted(day for day, state in states.items() if state.was_calculated)
    revisions = _revisions(reader, connection, days, states)
    versions = None
    if grouping.category is not None and grouping.version is not None:
        versions = read_changes(connection, grouping.category.key, grouping.version)
    instants = [each.calculated_at for each in revisions]
    instants += [versions[-1][0]] if instants and versions else []
    revision, superseded = revision_of(revisions, versions)
    heading = StatementHeading(
        tenant_name=tenant.tenant_name,
        by=grouping.by,
        period=month_name(days.start),
        start_date=days.start,
        end_date=days.end - ONE_DAY,
        days=len(days),
        calculated_days=len(calculated),
        data_through=calculated[-1] if calculated else None,
        issued_at=max(instants, default=None),
        status="PROVISIONAL",
        basis="accrual",
        currency=tenant.currency,
        revision=revision,
        category_version=grouping.version,
        scope=None if reader.scope is None else reader.scope.as_json(),
        format=None if tenant.statement_format == FormatSettings() else StatementFormat.like(tenant.statement_format),
    )
    return heading, superseded


def _revisions(
    reader: TenantReader, connection: Connection, days: DayRange, states: Mapping[date, DayState]
) -> list[Revision]:
    """Return the revisions of days that took effect up to the instant that the reader sees. Days past their retention
    have no states any more: all of their revisions took effect."""
    recorded = read_day_revisions(connection, DayDataset.CHARGEBACKS, days)
    last = {
        each.tracking_date: each.revision
        for each in recorded
        if each.cause == RETENTION and (reader.past_states is None or each.tracking_date in states)
    }
    last |= {day: state.chargebacks.revision for day, state in states.items() if state.chargebacks.revision}
    return [each for each in recorded if each.revision <= last.get(each.tracking_date, 0)]


def tie_out(
    tenant: TenantView, reader: TenantReader, connection: Connection, days: DayRange, amounts: Collection[StatedAmount]
) -> StatementTieOut:
    """Return the statements of these amounts compared with the bill of a month.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    states = states_seen(reader, connection, days)
    found = grouped_reconciliation(reader, connection, states, tenant.rules.catalogue, days)
    calculated = [day for day in found.items if not day.waits]
    statements = StatedAmount.sum(amounts, tenant.currency)
    billed = StatedAmount.alone(total(day.billed for day in calculated), tenant.currency)
    outdated = StatedAmount.alone(total(day.charged for day in found.items if day.waits), tenant.currency)
    return StatementTieOut(
        state=state_of(found.total),
        difference=difference(statements.amount, total([billed.amount, outdated.amount])),
        statements=statements,
        billed=billed,
        outdated=outdated,
        pending=StatedAmount.alone(found.total.pending, tenant.currency),
    )
