"""Our own months and statements in FOCUS 1.4: the datasets *Billing Period* and *Invoice Detail*.

A statement is an invoice: its number is the ``InvoiceId``, and each of its lines, corrections and adjustments is a row,
in the booked cents. Statements of closed months are issued. Those of a reopened month are voided, and the ones that
supersede them refer to them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

from pydantic import Field, field_serializer

from chargeback.model.accounting import AccountingPeriod
from chargeback.reports.answers import Exact
from chargeback.reports.closing.documents import kept_statements
from chargeback.reports.focus.lookups import FocusTenant, billed_account, kept_lookups
from chargeback.reports.focus.metadata import FocusRecord, InstantText
from chargeback.reports.statements.content import StatementAnswer, Statements
from chargeback.reports.statements.numbering import closed_number
from chargeback.reports.statements.posted import compile_posted
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import CLOSED, REOPENED, ClosedPeriod, Closing, read_closings
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.sql_format import END_OF_LINE

USAGE: Final = "Usage"
CREDIT: Final = "Credit"
ADJUSTMENT: Final = "Adjustment"
#: FOCUS requires payment terms of every invoice; a chargeback is settled within the company.
_TERMS: Final = "Internal"


class FocusBillingPeriod(FocusRecord):
    """A month of the books."""

    billing_period_created: InstantText
    billing_period_end: InstantText = Field(description="Exclusive.")
    billing_period_last_updated: InstantText = Field(description="When it was last closed, reopened or sealed.")
    billing_period_start: InstantText
    billing_period_status: Literal["Open", "Closed"]
    invoice_issuer_name: str


class FocusInvoiceDetail(FocusRecord):
    """A line of a statement."""

    billed_cost: Exact = Field(description="The booked cents; the lines of a statement sum to it.")
    billing_account_id: str
    billing_currency: str = Field(examples=["USD"])
    billing_period_end: InstantText = Field(description="Exclusive.")
    billing_period_start: InstantText = Field(description="The start of the month in which it is booked.")
    charge_category: Literal["Usage", "Credit", "Adjustment"] = Field(
        description="`Adjustment`: a correction of an earlier month, or a manual adjustment."
    )
    invoice_detail_created: InstantText
    invoice_detail_description: str | None
    invoice_detail_grain: dict[str, str] | None = Field(
        description="The columns of Cost and Usage by which the row is summed, in addition to those of the statement."
    )
    invoice_detail_id: str
    invoice_detail_last_updated: InstantText
    invoice_id: str = Field(
        description="The number of the statement.", examples=["CB-acme-2026-10-cost_center.payments"]
    )
    invoice_issue_date: InstantText | None
    invoice_issue_status: Literal["Open", "Issued", "Voided"]
    invoice_issuer_name: str
    payment_due_date: InstantText | None
    payment_terms: str
    reference_invoice_id: str = Field(
        description="The statement that it corrects, or that its statement supersedes; else its own statement."
    )
    x_by: str = Field(serialization_alias="x_By", description="The grouping of the statement.")
    x_exact_cost: Exact = Field(serialization_alias="x_ExactCost", description="The cost with all digits.")
    x_value: str = Field(serialization_alias="x_Value", description="The value of the statement.")

    @field_serializer("invoice_detail_grain", when_used="json")
    def _as_text(self, grain: dict[str, str] | None) -> str | None:
        return None if grain is None else json.dumps(grain, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Issued:
    """The statements of a month: the instant from which they are valid, and their state."""

    period: AccountingPeriod
    found: Statements
    status: Literal["Open", "Issued", "Voided"]
    account: str
    created: datetime
    updated: datetime


def billing_periods(tenant: TenantView, reader: PostedReader) -> list[FocusBillingPeriod]:
    """Return the months of the books, and the first open one; empty if no month was ever closed.

    Raises:
        StorageError: the control database cannot be read.
    """
    entries = _entries(tenant, reader)
    latest = {each.period: each for each in entries}
    months = sorted({*latest, *([reader.books.first_open] if reader.books.first_open else [])})
    return [
        FocusBillingPeriod(
            billing_period_created=month.window.start,
            billing_period_end=month.window.end,
            billing_period_last_updated=latest[month].at if month in latest else month.window.start,
            billing_period_start=month.window.start,
            billing_period_status="Open" if reader.books.find(month) is None else "Closed",
            invoice_issuer_name=_issuer(tenant),
        )
        for month in months
    ]


def invoice_details(
    tenant: TenantView, reader: PostedReader, by: str, period: AccountingPeriod | None = None
) -> list[FocusInvoiceDetail]:
    """Return the lines of all statements by a grouping, or of those of one month: the stored ones of each closing, and
    the present ones of the first open month.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped by these columns.
    """
    return [row for each in _issued(tenant, reader, by, period) for row in _rows(tenant, reader, each)]


def focus_csv_text(items: Sequence[FocusRecord], kind: type[FocusRecord]) -> str:
    """Return records as CSV under the names of FOCUS, with unchanged texts."""
    names = list(kind.model_json_schema(by_alias=True, mode="serialization")["properties"])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=END_OF_LINE)
    writer.writerow(names)
    for item in items:
        values: Mapping[str, Any] = item.model_dump(mode="json", by_alias=True)
        writer.writerow(["" if values[name] is None else values[name] for name in names])
    return text.getvalue()


def _entries(tenant: TenantView, reader: PostedReader) -> list[Closing]:
    """Return the entries of the books up to their instant."""
    with tenant.store.control.read() as connection:
        entries = read_closings(connection)
    at = reader.books.at
    return [each for each in entries if at is None or each.at <= at]


def _issued(tenant: TenantView, reader: PostedReader, by: str, only: AccountingPeriod | None) -> Iterator[_Issued]:
    entries, times = _entries(tenant, reader), dict[AccountingPeriod, int]()
    with tenant.store.control.read() as connection:
        account_id = billed_account(connection, FocusTenant.of_view(tenant))["id"]
        for number, entry in enumerate(entries):
            if entry.kind != CLOSED:
                continue
            times[entry.period] = times.get(entry.period, 0) + 1
            closed = ClosedPeriod(entry, times[entry.period])
            found = kept_statements(reader.place, connection, closed, by) if only in {None, entry.period} else None
            if found is None:
                continue
            later = (each for each in entries[number:] if each.period == entry.period and each.kind == REOPENED)
            reopened = next(later, None)
            lookups = kept_lookups(reader.place, connection, closed)
            yield _Issued(
                entry.period,
                found,
                "Issued" if reopened is None else "Voided",
                account_id if lookups is None else lookups["account"][0]["id"],
                entry.at,
                entry.at if reopened is None else reopened.at,
            )
        open_month = reader.books.first_open
    if open_month is not None and only in {None, open_month}:
        found = compile_posted(tenant, reader, open_month, by)
        at = found.heading.issued_at or open_month.window.start
        yield _Issued(open_month, found, "Open", account_id, open_month.window.start, at)


def _rows(tenant: TenantView, reader: PostedReader, issued: _Issued) -> Iterator[FocusInvoiceDetail]:
    for statement in issued.found.items:
        own = {
            "billing_account_id": issued.account,
            "billing_currency": statement.currency,
            "billing_period_start": issued.period.window.start,
            "billing_period_end": issued.period.window.end,
            "invoice_detail_created": issued.created,
            "invoice_detail_last_updated": issued.updated,
            "invoice_id": statement.number,
            "invoice_issue_date": None if issued.status == "Open" else issued.created,
            "invoice_issue_status": issued.status,
            "invoice_issuer_name": statement.issuer or _issuer(tenant),
            "payment_due_date": None,
            "payment_terms": _TERMS,
            "x_by": statement.by,
            "x_value": statement.recipient.value,
        }
        for number, line in enumerate(_lines(tenant, reader, statement), 1):
            yield FocusInvoiceDetail(**own, invoice_detail_id=f"{statement.number}/{number}", **line)


def _lines(tenant: TenantView, reader: PostedReader, statement: StatementAnswer) -> Iterator[dict[str, Any]]:
    """Yield the fields of each line, correction and adjustment of a statement."""
    its_own = statement.supersedes or statement.number
    for line in statement.lines:
        yield {
            **_cost(line.rounded, line.amount),
            "charge_category": CREDIT if tenant.focus.is_credit(line.product_type) else USAGE,
            "invoice_detail_description": f"{line.product_category}: {line.product_type} ({line.kind})",
            "invoice_detail_grain": {"SkuMeter": line.product_type, "x_ProductCategory": line.product_category},
            "reference_invoice_id": its_own,
        }
    for correction in statement.corrections or ():
        month = AccountingPeriod.named(correction.period_id)
        closed = reader.books.find(month)
        times = 1 if closed is None else closed.times
        value = statement.recipient.value
        yield {
            **_cost(correction.rounded, correction.amount),
            "charge_category": ADJUSTMENT,
            "invoice_detail_description": correction.sentence,
            "invoice_detail_grain": None,
            "reference_invoice_id": closed_number(statement.tenant_name, month.id, statement.by, value, times),
        }
    for adjustment in statement.adjustments or ():
        yield {
            **_cost(adjustment.rounded, adjustment.amount),
            "charge_category": CREDIT if adjustment.kind == "credit" else ADJUSTMENT,
            "invoice_detail_description": adjustment.reason,
            "invoice_detail_grain": None,
            "reference_invoice_id": its_own,
        }


def _cost(rounded: Decimal, exact: Decimal) -> dict[str, Decimal]:
    return {"billed_cost": rounded, "x_exact_cost": exact}


def _issuer(tenant: TenantView) -> str:
    return tenant.issuer or tenant.tenant_name
