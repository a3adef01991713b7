"""The statements and the journal of a month, as they are asked for: accrued, posted, or as they were kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

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
from chargeback.store.control.statement_replies import Reply, read_replies
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.reader import TenantReader

Basis = Literal["accrual", "posted"]


def basis_of(reader: PostedReader, period: AccountingPeriod, asked: Basis | None) -> Basis:
    """Return which statements are meant: those that were asked for; of a month of the books, what was posted."""
    if asked is not None:
        return asked
    start = reader.books.start
    return "accrual" if start is None or period < start else "posted"


def statements_of(
    tenant: TenantView,
    reader: TenantReader,
    posted: PostedReader,
    period: AccountingPeriod,
    by: str,
    asked: Basis | None,
) -> Statements:
    """Return the statements of a month. ``reader`` and ``posted`` see the same instant.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped so, or the month is before the books.
    """
    if basis_of(posted, period, asked) == "accrual":
        return compile_statements(tenant, reader, period.start, by)
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
    asked: Basis | None,
) -> JournalAnswer:
    """Return the journal of a month, as :func:`statements_of` its statements."""
    closed = posted.books.find(period)
    if closed is not None and reader.sees_everything and basis_of(posted, period, asked) == "posted":
        with tenant.store.control.read() as connection:
            kept = kept_journal(tenant.whole_store.facts.place, connection, closed, by)
        if kept is not None:
            return kept
    return journal_of(statements_of(tenant, reader, posted, period, by, asked), tenant.journal)


def _with_replies(statement: StatementAnswer, replies: list[Reply]) -> StatementAnswer:
    """Return a statement as it was kept, with what was said of it since."""
    said = [StatementReply.of(each, statement.digest) for each in replies]
    return statement.model_copy(update={"replies": said, "verdict": current_verdict(said)})
