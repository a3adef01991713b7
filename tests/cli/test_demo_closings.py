"""The demo's closed months, on a small demo that reaches into three of them."""

from __future__ import annotations

import json
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Final

from chargeback.cli.demo_story import apply_demo_categories, close_demo_months, dispute_and_adjust, tag_teams
from chargeback.cli.statements import opened
from chargeback.config import load_configuration
from chargeback.demo.config import demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.run_request import RunRequest
from chargeback.reports.closing.documents import check_closings
from chargeback.reports.closing.preview import prepare
from chargeback.reports.closing.statements import statements_of
from chargeback.store.control.closings import read_receipts
from chargeback.store.tenant import open_store
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.pipeline import run_pipeline

#: From 28 November on.
SPEC: Final = DemoSpec(today=TODAY, size="small", days=64)
NOVEMBER, DECEMBER, JANUARY = map(AccountingPeriod.named, ("2025-11", "2025-12", "2026-01"))


def test_the_demo_has_two_closed_months_and_what_happens_after_a_closing(tmp_path: Path) -> None:
    """December is complete, and November accepted without the days before the demo. A late bill is a correction of
    January, which also has an adjustment; a statement of December is disputed. Nothing is closed a second time."""
    file, now = tmp_path / "chargeback.yaml", FixedClock()
    with DemoServer(Organisation.generate(SPEC)) as server:
        file.write_text(demo_configuration(server.info, tmp_path), encoding="utf-8")
        with run_pipeline(file, "acme"):
            pass
        tenant = load_configuration(file).tenants["acme"]
        tag_teams(tenant, SPEC.seed)
        apply_demo_categories(tenant, SPEC.seed)
        closed = close_demo_months(tenant, now)
        assert closed is not None
        assert closed.periods == (NOVEMBER, DECEMBER)
        before = server.changes.cost_rows(closed.late_bill)
        server.changes.bill_late(closed.late_bill)
        (late,) = [each for each in server.changes.cost_rows(closed.late_bill) if each not in before]
        with run_pipeline(file, "acme", RunRequest(start=closed.late_bill, end=closed.late_bill)):
            pass
    dispute_and_adjust(tenant, DECEMBER, now)
    assert close_demo_months(tenant, now) is None
    with closing(open_store(tenant)) as store, store.control.read() as connection:
        november, december = map(json.loads, read_receipts(connection))
    assert {each.partition(":")[0] for each in november["accepted"]} == {"day-missing"}
    assert (len(november["accepted"]), november["reason"]) == (27, "The demo begins in this month")
    assert (december["accepted"], december["reason"]) == ([], None)
    assert december["invoices"]["invoices"] == ["INV-202512"]
    assert abs(Decimal(december["invoices"]["difference"])) < Decimal("0.01")
    with opened(tenant) as (view, reader, posted):
        assert list(check_closings(view, posted)) == []
        preview = prepare(view, posted, JANUARY, NOW).answer
        assert [(each.period_id, each.amount) for each in preview.corrections] == [("2025-12", late["amount"])]
        (adjustment,) = preview.adjustments
        assert (adjustment["amount"], adjustment["applies_to"]) == ("250.00", "2025-12")
        (disputed,) = [
            each
            for each in statements_of(view, reader, posted, DECEMBER, "category:cost_center", None).items
            if each.verdict is not None
        ]
    assert (disputed.verdict, disputed.recipient.value) == ("disputed", adjustment["from"])
    assert adjustment["reference"] == disputed.number
