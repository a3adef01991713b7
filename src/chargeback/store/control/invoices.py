"""The invoices of months, as people enter them: documents by month and number; the last one counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from chargeback.model.accounting import AccountingPeriod
from chargeback.store.control.audit import API, INVOICE_REMOVED, INVOICE_SAVED, AuditEntry, record
from chargeback.store.control.closings import canonical
from chargeback.store.control.schema import invoices


@dataclass(frozen=True, slots=True)
class Invoice:
    """One invoice: its month, its number, its ``content``, and by whom and when it was entered."""

    period: AccountingPeriod
    invoice_id: str
    content: Mapping[str, Any]
    who: str
    at: datetime

    @property
    def is_voided(self) -> bool:
        """Whether its issuer has voided it: then it does not count."""
        return bool(self.content["status"] == "voided")


def read_invoices(connection: Connection, period: AccountingPeriod) -> list[Invoice]:
    """Return the invoices of a month, by number."""
    rows = connection.execute(select(invoices).where(invoices.c.period == period.id))
    found = [Invoice(period, row.invoice_id, json.loads(row.document), row.who, row.at) for row in rows]
    return sorted(found, key=lambda each: each.invoice_id)


def months_with_invoices(connection: Connection) -> list[AccountingPeriod]:
    """Return the months that have invoices, ascending."""
    found = connection.execute(select(invoices.c.period).distinct().order_by(invoices.c.period))
    return [AccountingPeriod.named(each) for each in found.scalars()]


def save_invoice(connection: Connection, invoice: Invoice) -> bool:
    """Record an invoice in the place of the one with its number; return whether there was one."""
    before = _remove(connection, invoice.period, invoice.invoice_id)
    connection.execute(
        insert(invoices).values(
            period=invoice.period.id,
            invoice_id=invoice.invoice_id,
            document=canonical(dict(invoice.content)),
            who=invoice.who,
            at=invoice.at,
        )
    )
    record(
        connection,
        invoice.who,
        [AuditEntry(INVOICE_SAVED, _target(invoice.period, invoice.invoice_id), before, invoice.content)],
    )
    return before is not None


def remove_invoice(connection: Connection, period: AccountingPeriod, invoice_id: str, *, who: str = API) -> bool:
    """Remove an invoice; return whether there was one."""
    before = _remove(connection, period, invoice_id)
    if before is not None:
        record(connection, who, [AuditEntry(INVOICE_REMOVED, _target(period, invoice_id), before, None)])
    return before is not None


def _remove(connection: Connection, period: AccountingPeriod, invoice_id: str) -> dict[str, Any] | None:
    its = invoices.c
    where = (its.period == period.id, its.invoice_id == invoice_id)
    text = connection.execute(select(its.document).where(*where)).scalar()
    connection.execute(delete(invoices).where(*where))
    return None if text is None else json.loads(text)


def _target(period: AccountingPeriod, invoice_id: str) -> str:
    return f"invoice/{period.id}/{invoice_id}"
