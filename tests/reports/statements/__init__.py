"""Tests of statements, and their heading."""

from __future__ import annotations

from datetime import date
from typing import Any

from chargeback.reports.statements.content import StatementHeading


def heading_of_october(**changes: Any) -> StatementHeading:
    """Return the heading of statements of October 2026 by cost centre, with all days calculated."""
    usual: dict[str, Any] = {
        "tenant_name": "acme",
        "by": "category:cost_center",
        "period": "2026-10",
        "start_date": date(2026, 10, 1),
        "end_date": date(2026, 10, 31),
        "days": 31,
        "calculated_days": 31,
        "data_through": date(2026, 10, 31),
        "issued_at": None,
        "status": "PROVISIONAL",
        "basis": "accrual",
        "currency": "USD",
        "revision": 2,
        "category_version": None,
        "scope": None,
    }
    return StatementHeading(**usual | changes)
