"""Sentences of explanations without a calculation; the other tests are with the responses."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from chargeback.recompute.explain import ExplainKey, Explanation
from chargeback.recompute.stored_day import LineRows
from chargeback.reports.explain.sentence import sentence
from chargeback.reports.wording import DisplayNames


def test_without_evidence() -> None:
    """The sentence has the stored amount and the reason why it is not explained."""
    key = ExplainKey(date(2026, 11, 4), "1f", "sa-1")
    siblings = LineRows(0, Decimal(0), equals_line=None)
    found = Explanation(
        key=key,
        row=None,
        line=None,
        billed=None,
        policy=None,
        portion=None,
        missing="the bill is lost",
        siblings=siblings,
        revision=None,
        revisions=(),
        is_same=None,
    )
    assert sentence(found, DisplayNames({"sa-1": "pay"}, {}), "USD") == (
        "pay is charged nothing of line 1f on 4 November 2026. How is not known: the bill is lost."
    )
    stored = {"product_type": "WRITE", "resource_id": "lkc-1", "amount": Decimal(1234)}
    assert sentence(replace(found, row=stored, billed=stored), DisplayNames({}, {"lkc-1": "prod"}), "USD") == (
        "sa-1 is charged 1,234.00 USD of the WRITE line of prod on 4 November 2026. How is not known: the bill is lost."
    )
    mistyped = replace(found, unknown="no identity has the id sa-1")
    assert sentence(mistyped, DisplayNames({}, {}), "USD") == (
        "sa-1 is charged nothing of line 1f on 4 November 2026: no identity has the id sa-1."
    )
