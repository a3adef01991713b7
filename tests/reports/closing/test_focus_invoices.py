"""Periods and statements in FOCUS: the lines of an invoice sum to what was booked."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from focus_data_toolkit import lint_focus_1_4_structure

from chargeback.model.accounting import AccountingPeriod
from chargeback.reports.closing.focus_invoices import (
    FocusBillingPeriod,
    FocusInvoiceDetail,
    billing_periods,
    focus_csv_text,
    invoice_details,
)
from chargeback.reports.statements.posted import compile_posted
from chargeback.store.control.adjustments import NewAdjustment, add_adjustment
from tests.support.months import AUGUST, OCTOBER, SEPTEMBER, Months, months

BY = "identity_id"


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Months]:
    """Yield a tenant of three months."""
    with months(tmp_path) as opened:
        yield opened


def details(tenant: Months, period: AccountingPeriod | None = None) -> list[FocusInvoiceDetail]:
    """Return the lines of the tenant's statements."""
    with tenant.books() as reader:
        return invoice_details(tenant.view, reader, BY, period)


def rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def sums(found: list[FocusInvoiceDetail], status: str) -> dict[str, Decimal]:
    """Return the sums of the statements of a status, by their numbers."""
    added: dict[str, Decimal] = {}
    for each in found:
        if each.invoice_issue_status == status:
            added[each.invoice_id] = added.get(each.invoice_id, Decimal(0)) + each.billed_cost
    return added


def adjust(tenant: Months, period: AccountingPeriod, **more: Any) -> None:
    """Add an adjustment of the booked amount of an identity."""
    new = NewAdjustment(period, period, BY, "sa-1", None, Decimal("-2.50"), "credit", None, "Agreed", None, **more)
    with tenant.store.control.write() as connection:
        add_adjustment(connection, new, created_by="ann", at=tenant.clock())


def test_the_lines_of_a_statement_are_its_cents(tenant: Months) -> None:
    """The lines of a statement, open or closed, sum to its cents; corrections and adjustments are separate lines."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7.004", sa_2="4")
    adjust(tenant, SEPTEMBER)
    found = details(tenant)
    with tenant.books() as reader:
        stated = {
            period: {each.number: each.rounded for each in compile_posted(tenant.view, reader, period, BY).items}
            for period in (AUGUST, SEPTEMBER)
        }
    assert sums(found, "Issued") == stated[AUGUST]
    assert sums(found, "Open") == stated[SEPTEMBER]
    of_one = [each for each in found if each.invoice_issue_status == "Open" and each.x_value == "sa-1"]
    assert [(each.charge_category, each.billed_cost, each.x_exact_cost) for each in of_one] == [
        ("Usage", Decimal("12.00"), Decimal(12)),
        ("Adjustment", Decimal("1.00"), Decimal("1.004")),
        ("Credit", Decimal("-2.50"), Decimal("-2.50")),
    ]
    assert of_one[1].reference_invoice_id == f"CB-acme-{AUGUST.id}-sa-1"
    assert of_one[0].reference_invoice_id == of_one[0].invoice_id


def test_a_statement_of_a_month_that_was_opened_again_is_void(tenant: Months) -> None:
    """The statement of a reopened month stays as voided, and its replacement refers to it."""
    tenant.close(AUGUST)
    tenant.reopen(AUGUST)
    assert {each.invoice_issue_status for each in details(tenant)} == {"Voided"}
    tenant.close(AUGUST)
    by_status = {each.invoice_issue_status: each for each in details(tenant, AUGUST) if each.x_value == "sa-1"}
    assert by_status.keys() == {"Voided", "Issued"}
    assert by_status["Issued"].invoice_id == f"CB-acme-{AUGUST.id}-sa-1-2"
    assert by_status["Issued"].reference_invoice_id == by_status["Voided"].invoice_id == f"CB-acme-{AUGUST.id}-sa-1"
    assert by_status["Voided"].invoice_detail_last_updated > by_status["Voided"].invoice_detail_created


def test_months_are_open_or_closed(tenant: Months) -> None:
    """Closed months and the first open one are listed; before the first close, none is."""
    with tenant.books() as reader:
        assert billing_periods(tenant.view, reader) == []
    tenant.close(AUGUST)
    tenant.close(SEPTEMBER)
    tenant.reopen(SEPTEMBER)
    with tenant.books() as reader:
        found = billing_periods(tenant.view, reader)
    assert [(each.billing_period_start.month, each.billing_period_status) for each in found] == [
        (8, "Closed"),
        (9, "Open"),
    ]
    assert found[0].billing_period_end == SEPTEMBER.window.start
    assert found[1].billing_period_last_updated > found[1].billing_period_created


def test_the_lines_of_a_closed_month_stay(tenant: Months) -> None:
    """A late bill or another closed month does not change the lines of a closed one."""
    tenant.close(AUGUST)
    before = details(tenant, AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    tenant.close(SEPTEMBER)
    assert details(tenant, AUGUST) == before
    assert {each.billing_period_start.month for each in details(tenant)} == {8, 9, OCTOBER.start.month}


@pytest.mark.parametrize("dataset", ["BillingPeriod", "InvoiceDetail"])
def test_an_independent_lint_finds_nothing(tenant: Months, dataset: str) -> None:
    """Names, types, allowed values and nulls conform to FOCUS 1.4."""
    tenant.close(AUGUST)
    tenant.reopen(AUGUST)
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    adjust(tenant, SEPTEMBER)
    with tenant.books() as reader:
        text = (
            focus_csv_text(billing_periods(tenant.view, reader), FocusBillingPeriod)
            if dataset == "BillingPeriod"
            else focus_csv_text(invoice_details(tenant.view, reader, BY), FocusInvoiceDetail)
        )
    found = rows(text)
    assert found
    report = lint_focus_1_4_structure(dataset, found)
    assert report.ok, report
    broken = [{**row, "InvoiceIssuerName": ""} for row in found]
    assert not lint_focus_1_4_structure(dataset, broken).ok
