"""The journal of a month: its statements as entries of double-entry bookkeeping, in the cents of the statements.

Every statement is a debit of its value's account, and their sum a credit of the clearing account. What is negative is
on the other side, so no amount of a line is below zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from chargeback.config.journal import JournalProfile
from chargeback.model.cents import render_cents, rounded_cents
from chargeback.model.money import total
from chargeback.reports.csv_text import csv_text
from chargeback.reports.statements.as_html import title
from chargeback.reports.statements.as_json import heading_json
from chargeback.reports.statements.content import Heading, Recipient, Statements
from chargeback.reports.statements.numbering import journal_number

EXPENSE: Final = "expense"
CLEARING: Final = "clearing"

COLUMNS: Final = (
    *("number", "line", "period", "status", "kind", "account", "debit", "credit", "currency"),
    *("value", "name", "gl", "statement", "text"),
)
_NUMBERS: Final = ("debit", "credit")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal. Either ``debit`` or ``credit`` is above zero, in cents; the other is zero. The clearing
    line has neither a recipient nor a statement."""

    kind: str
    account: str
    debit: Decimal
    credit: Decimal
    text: str
    recipient: Recipient | None = None
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of a month. Its debits are its credits."""

    number: str
    heading: Heading
    entries: Sequence[Entry]

    @property
    def debits(self) -> Decimal:
        """The sum of the debits, in cents."""
        return rounded_cents(total(each.debit for each in self.entries), self.heading.currency)

    @property
    def credits(self) -> Decimal:
        """The sum of the credits, in cents."""
        return rounded_cents(total(each.credit for each in self.entries), self.heading.currency)


def journal_of(found: Statements, profile: JournalProfile) -> Journal:
    """Return the journal of a month's statements: a line for each that is not zero in cents, in their order, and the
    clearing line at the end."""
    heading = found.heading
    note = f" ({heading.status})"
    entries = [
        Entry(
            EXPENSE,
            dict(each.recipient.gl).get(profile.account_id, profile.expense_account),
            *_sides(each.amount.cents),
            f"Kafka {heading.period}: {title(each.recipient)}{note}",
            each.recipient,
            each.number,
        )
        for each in found.items
        if each.amount.cents
    ]
    if found.total.cents:
        debit, credit = _sides(found.total.cents.copy_negate())
        entries.append(Entry(CLEARING, profile.clearing_account, debit, credit, f"Kafka {heading.period}{note}"))
    return Journal(journal_number(heading.tenant, heading.period, heading.by, heading.revision), heading, entries)


def journal_json(found: Journal) -> dict[str, Any]:
    """Return a journal as JSON values; amounts are texts in cents."""
    return {
        **heading_json(found.heading),
        "number": found.number,
        "lines": [_line(place, each, found) for place, each in enumerate(found.entries, 1)],
        "debit": render_cents(found.debits),
        "credit": render_cents(found.credits),
    }


def journal_csv(found: Journal) -> str:
    """Return a journal as CSV."""
    rows = [
        _line(place, each, found) | {"gl": dict(each.recipient.gl) or None if each.recipient else None}
        for place, each in enumerate(found.entries, 1)
    ]
    common = {"number": found.number, "period": found.heading.period, "status": found.heading.status}
    return csv_text(COLUMNS, [common | row for row in rows], numbers=_NUMBERS)


def _line(place: int, each: Entry, found: Journal) -> dict[str, Any]:
    recipient = each.recipient
    return {
        "line": place,
        "kind": each.kind,
        "account": each.account,
        "debit": render_cents(each.debit),
        "credit": render_cents(each.credit),
        "currency": found.heading.currency,
        "value": None if recipient is None else recipient.value,
        "name": None if recipient is None else recipient.name,
        "gl": {} if recipient is None else dict(recipient.gl),
        "contacts": [] if recipient is None else list(recipient.contacts),
        "statement": each.statement,
        "text": each.text,
    }


def _sides(amount: Decimal) -> tuple[Decimal, Decimal]:
    """Return an amount as debit and credit."""
    nothing = amount - amount  # with the same decimal places
    return (amount, nothing) if amount >= 0 else (nothing, amount.copy_negate())
