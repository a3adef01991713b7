"""The statements and the journal of a month: accrued, posted, or as stored at its closing."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Literal

from sqlalchemy import Connection

from chargeback.access.scope import RowScope
from chargeback.model.accounting import AccountingPeriod
from chargeback.reports.closing.documents import kept_journal, kept_statements
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.statements.content import (
    JournalAnswer,
    StatementAnswer,
    StatementReply,
    Statements,
    current_verdict,
)
from chargeback.reports.statements.journal import journal_of
from chargeback.reports.statements.posted import compile_posted
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.budgets import list_budgets
from chargeback.store.control.statement_replies import RecordedReply, read_replies
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.reader import TenantReader

Basis = Literal["accrual", "posted"]


def basis_of(reader: PostedReader, period: AccountingPeriod, requested: Basis | None) -> Basis:
    """Return the basis of statements: the requested one, by default posted costs for a month of the books."""
    if requested is not None:
        return requested
    start = reader.books.start
    return "accrual" if start is None or period < start else "posted"


def statements_of(
    tenant: TenantView,
    reader: TenantReader,
    posted: PostedReader,
    period: AccountingPeriod,
    by: str,
    requested: Basis | None,
) -> Statements:
    """Return the statements of a month, with the present budgets of their values. ``reader`` and ``posted`` see the
    same instant.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped so, or the month is before the books.
    """
    with tenant.store.control.read() as connection:
        budgets = _budgets(connection, period, by, reader.scope)
    if basis_of(posted, period, requested) == "accrual":
        found = compile_statements(tenant, reader, period.start, by)
    else:
        found = _posted(tenant, reader, posted, period, by)
    return replace(found, budgets=budgets)


def _budgets(connection: Connection, period: AccountingPeriod, by: str, scope: RowScope | None) -> dict[str, Decimal]:
    """Return the amounts of the budgets of a month that are about a single value and within a scope."""
    found = {}
    for each in list_budgets(connection):
        amount = None if each.budget is None else each.budget.amount_of(period)
        if each.budget is None or amount is None or list(each.budget.scope) != [by]:
            continue
        (values,) = each.budget.scope.values()
        is_seen = scope is None or all(name == by and values[0] in allowed for name, allowed in scope.conditions)
        if len(values) == 1 and is_seen:
            found[values[0]] = amount
    return found


def _posted(
    tenant: TenantView, reader: TenantReader, posted: PostedReader, period: AccountingPeriod, by: str
) -> Statements:
    """Return posted statements, for readers without a scope as stored when the month was closed."""
    closed = posted.books.find(period)
    if closed is not None and reader.sees_everything:
        with tenant.store.control.read() as connection:
            kept = kept_statements(tenant.whole_store.facts.place, connection, closed, by)
            replies = read_replies(connection, period.id, by)
        if kept is not None:
            return replace(
                kept, items=[_with_replies(each, replies.get(each.recipient.value, [])) for each in kept.items]
            )
    return compile_posted(tenant, posted, period, by)


def journal_for(
    tenant: TenantView,
    reader: TenantReader,
    posted: PostedReader,
    period: AccountingPeriod,
    by: str,
    requested: Basis | None,
) -> JournalAnswer:
    """Return the journal of a month, from the statements of :func:`statements_of`."""
    closed = posted.books.find(period)
    if closed is not None and reader.sees_everything and basis_of(posted, period, requested) == "posted":
        with tenant.store.control.read() as connection:
            kept = kept_journal(tenant.whole_store.facts.place, connection, closed, by)
        if kept is not None:
            return kept
    return journal_of(statements_of(tenant, reader, posted, period, by, requested), tenant.journal)


def _with_replies(statement: StatementAnswer, replies: list[RecordedReply]) -> StatementAnswer:
    """Return a stored statement with the replies to it since."""
    said = [StatementReply.of(each, statement.digest) for each in replies]
    return statement.model_copy(update={"replies": said, "verdict": current_verdict(said)})
