"""The journal of a month: its statements as entries of double-entry bookkeeping, in the cents of the statements.

Every statement is a debit of its value's account, and their sum a credit of the clearing account. What is negative is
on the other side, so no amount of a line is below zero.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from chargeback.config.journal import JournalProfile
from chargeback.model.cents import rounded_cents
from chargeback.model.money import total
from chargeback.reports.csv_text import csv_text
from chargeback.reports.statements.as_html import title
from chargeback.reports.statements.content import JournalAnswer, JournalLine, Statements
from chargeback.reports.statements.numbering import journal_number

EXPENSE: Final = "expense"
CLEARING: Final = "clearing"

COLUMNS: Final = (
    *("number", "line", "period", "status", "kind", "account", "debit", "credit", "currency"),
    *("value", "name", "gl", "statement", "text"),
)
_NUMBERS: Final = ("debit", "credit")


def journal_of(found: Statements, profile: JournalProfile) -> JournalAnswer:
    """Return the journal of a month's statements: a line for each that is not zero in cents, in their order, and the
    clearing line at the end."""
    heading = found.heading
    note = f" ({heading.status})"
    booked = [each for each in found.items if each.rounded]
    lines = []
    for place, each in enumerate(booked, 1):
        recipient = each.recipient
        debit, credit = _sides(each.rounded)
        lines.append(
            JournalLine(
                line=place,
                kind=EXPENSE,
                account=recipient.gl.get(profile.account_id, profile.expense_account),
                debit=debit,
                credit=credit,
                currency=heading.currency,
                value=recipient.value,
                name=recipient.name,
                gl=recipient.gl,
                contacts=recipient.contacts,
                statement=each.number,
                text=f"Kafka {heading.period}: {title(recipient)}{note}",
            )
        )
    if found.total.rounded:
        debit, credit = _sides(found.total.rounded.copy_negate())
        lines.append(
            JournalLine(
                line=len(lines) + 1,
                kind=CLEARING,
                account=profile.clearing_account,
                debit=debit,
                credit=credit,
                currency=heading.currency,
                value=None,
                name=None,
                gl={},
                contacts=[],
                statement=None,
                text=f"Kafka {heading.period}{note}",
            )
        )
    return JournalAnswer(
        **dict(heading),
        number=journal_number(heading.tenant_name, heading.period, heading.by, heading.revision),
        lines=lines,
        debit=rounded_cents(total(each.debit for each in lines), heading.currency),
        credit=rounded_cents(total(each.credit for each in lines), heading.currency),
    )


def journal_csv(found: JournalAnswer) -> str:
    """Return a journal as CSV."""
    common = {"number": found.number, "period": found.period, "status": found.status}
    rows = [common | each.model_dump() | {"gl": each.gl or None} for each in found.lines]
    return csv_text(COLUMNS, rows, numbers=_NUMBERS)


def _sides(amount: Decimal) -> tuple[Decimal, Decimal]:
    """Return an amount as debit and credit."""
    nothing = amount - amount  # with the same decimal places
    return (amount, nothing) if amount >= 0 else (nothing, amount.copy_negate())
