"""The journal of a month: its statements as entries of double-entry bookkeeping, in the cents of the statements.

Every statement is a debit of its value's account, and their sum a credit of the clearing account; corrections of
earlier months and adjustments are separate lines. Negative amounts are on the other side, so no amount of a line is
below zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chargeback.config.journal import JournalProfile
from chargeback.model.cents import rounded_cents
from chargeback.model.inventory import NO_VALUES
from chargeback.model.money import total
from chargeback.reports.answers import csv_text
from chargeback.reports.statements.as_html import title
from chargeback.reports.statements.content import JournalAnswer, JournalLine, StatementAnswer, Statements
from chargeback.reports.statements.numbering import again, journal_number

EXPENSE: Final = "expense"
CORRECTION: Final = "correction"
ADJUSTMENT: Final = "adjustment"
CLEARING: Final = "clearing"

COLUMNS: Final = (
    *("number", "line", "period", "status", "kind", "account", "debit", "credit", "currency"),
    *("value", "name", "gl", "statement", "text", "charge_period"),
)
_NUMBERS: Final = ("debit", "credit")


@dataclass(frozen=True)
class _Entry:
    """An amount to book: its kind, its account, the amount in cents, a text, and its statement."""

    kind: str
    account: str
    amount: Decimal
    text: str
    statement: StatementAnswer | None = None
    charge_period: str | None = None


def journal_of(found: Statements, profile: JournalProfile) -> JournalAnswer:
    """Return the journal of a month's statements: their lines that are not zero in cents, in the order of statements,
    and the clearing lines at the end."""
    heading = found.heading
    expenses = [entry for each in found.items for entry in _entries(each, profile)]
    by_account: dict[str, list[Decimal]] = {}
    for each in expenses:
        by_account.setdefault(_cleared_by(each, profile), []).append(each.amount)
    # Reallocations sum to zero: the other side is a separate entry.
    clearing = [
        _Entry(CLEARING, account, _negative(amounts, heading.currency), f"Kafka {heading.period}")
        for account, amounts in sorted(by_account.items(), key=lambda item: item[0] != profile.clearing_account)
    ]
    note = f" ({heading.status})"
    booked = [each for each in (*expenses, *clearing) if each.amount]
    lines = [_line(place, each, heading.currency, note) for place, each in enumerate(booked, 1)]
    end = f"-r{heading.revision}" if heading.times_closed is None else again(heading.times_closed)
    return JournalAnswer(
        **dict(heading) | {"format": None},  # the format of pages
        number=journal_number(heading.tenant_name, heading.period, heading.by, end),
        lines=lines,
        debit=rounded_cents(total(each.debit for each in lines), heading.currency),
        credit=rounded_cents(total(each.credit for each in lines), heading.currency),
    )


def _entries(statement: StatementAnswer, profile: JournalProfile) -> Iterator[_Entry]:
    """Yield the entries of a statement: its costs, by product if products have accounts, each correction and each
    adjustment."""
    recipient = statement.recipient
    name, month = title(recipient), f"Kafka {statement.period}"
    own = recipient.gl.get(profile.account_id, profile.expense_account)
    if recipient.value in NO_VALUES and profile.suspense_account is not None:
        own = profile.suspense_account
    regular = statement.rounded if statement.regular is None else statement.regular.rounded
    if profile.product_accounts:
        for line in statement.lines:
            account = profile.product_accounts.get(line.product_type, own)
            yield _Entry(EXPENSE, account, line.rounded, f"{month}: {name}, {line.product_type}", statement)
    else:
        yield _Entry(EXPENSE, own, regular, f"{month}: {name}", statement)
    for correction in statement.corrections or ():
        text = f"{month}: {name}, correction of {correction.period_id}"
        yield _Entry(CORRECTION, own, correction.rounded, text, statement, correction.period_id)
    for adjustment in statement.adjustments or ():
        text = f"{month}: {name}, {adjustment.kind}: {adjustment.reason}"
        yield _Entry(ADJUSTMENT, own, adjustment.rounded, text, statement, adjustment.applies_to)


def _negative(amounts: Sequence[Decimal], currency: str) -> Decimal:
    return rounded_cents(total(amounts), currency).copy_negate()


def _cleared_by(entry: _Entry, profile: JournalProfile) -> str:
    """Return the account of the other side of an entry."""
    is_adjustment = entry.kind == ADJUSTMENT and profile.adjustment_account is not None
    return profile.adjustment_account or "" if is_adjustment else profile.clearing_account


def _line(place: int, entry: _Entry, currency: str, note: str) -> JournalLine:
    statement = entry.statement
    debit, credit = _sides(entry.amount)
    recipient = None if statement is None else statement.recipient
    return JournalLine.model_validate(
        {
            "line": place,
            "kind": entry.kind,
            "account": entry.account,
            "debit": debit,
            "credit": credit,
            "currency": currency,
            "value": None if recipient is None else recipient.value,
            "charge_period": entry.charge_period,
            "name": None if recipient is None else recipient.name,
            "gl": {} if recipient is None else recipient.gl,
            "contacts": [] if recipient is None else recipient.contacts,
            "statement": None if statement is None else statement.number,
            "text": f"{entry.text}{note}",
        }
    )


def journal_csv(found: JournalAnswer) -> str:
    """Return a journal as CSV."""
    common = {"number": found.number, "period": found.period, "status": found.status}
    rows = [
        common | each.model_dump() | {"gl": each.gl or None, "charge_period": each.charge_period}
        for each in found.lines
    ]
    return csv_text(COLUMNS, rows, numbers=_NUMBERS)


def _sides(amount: Decimal) -> tuple[Decimal, Decimal]:
    """Return an amount as debit and credit."""
    nothing = amount - amount  # with the same decimal places
    return (amount, nothing) if amount >= 0 else (nothing, amount.copy_negate())
