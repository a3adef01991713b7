"""What a statement says of the days that it is made of, over real runs of the pipeline."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from chargeback.pipeline.run_messages import RunRequest
from chargeback.recompute.rules import AllocationRules
from chargeback.service.statements.as_json import statements_json
from chargeback.service.statements.compile import compile_statements
from chargeback.service.statements.content import Statements
from chargeback.service.tenant_view import TenantView
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line


def statements_of(laboratory: Laboratory, as_of: datetime | None = None) -> Statements:
    """The statements by identity of the month of the day."""
    tenant = TenantView("acme", "t", "eco", 30, laboratory.store, rules=AllocationRules.of(laboratory.tenant))
    known = (laboratory.store, CancellationToken(), LookupCaches())
    with QueryEngine() as engine, open_reader(engine, *known, as_of=as_of) as reader:
        return compile_statements(tenant, reader, DAY, "identity_id")


def test_a_new_bill_is_a_new_revision(tmp_path: Path) -> None:
    """Its number grows, and it supersedes the one before, which can still be had as it was."""
    with Laboratory(tmp_path) as laboratory:
        assert statements_of(laboratory).heading.issued_at is None
        laboratory.sources.lines[DAY] = [line("100")]
        laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 60, ("lkc-1", "sa-b"): 40}}
        laboratory.run()
        first = statements_of(laboratory)
        assert (first.heading.revision, first.heading.data_through, first.heading.calculated_days) == (1, DAY, 1)
        assert (first.heading.issued_at, first.items[0].supersedes) == (NOW, None)
        later = NOW + timedelta(hours=1)
        laboratory.clock = FixedClock(later)
        laboratory.sources.lines[DAY] = [line("120")]
        laboratory.run(RunRequest(recalculate=True))
        second = statements_of(laboratory)
        assert (second.heading.revision, second.heading.issued_at) == (2, later)
        assert [each.supersedes for each in second.items] == [each.number for each in first.items]
        assert (first.total.exact, second.total.exact) == (Decimal(100), Decimal(120))
        for found in (first, second):
            assert found.tie_out is not None
            assert (found.tie_out.state, found.tie_out.difference) == ("equal", Decimal(0))
        again = statements_of(laboratory, as_of=NOW + timedelta(minutes=30))
        assert statements_json(again) == statements_json(first)


def test_a_bill_that_is_not_calculated_is_pending(tmp_path: Path) -> None:
    """It is named beside the tie-out, and what statements have of its former bill is no difference."""
    with Laboratory(tmp_path) as laboratory:
        laboratory.sources.lines[DAY] = [line("100")]
        laboratory.run()
        with laboratory.store.control.write() as connection:
            connection.exec_driver_sql("UPDATE days SET chargeback_calculated = false")
        tie = statements_of(laboratory).tie_out
        assert tie is not None
        assert (tie.state, tie.difference, tie.pending.exact, tie.outdated.exact) == (
            "pending",
            Decimal(0),
            Decimal(100),
            Decimal(100),
        )
