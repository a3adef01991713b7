"""The data of emitters; reading ends when the run is stopped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from chargeback.emitters.contract import Period
from chargeback.errors import QueryTimeout, Stopped
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.emit_facts import StoredFacts, facts_for
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import StopSignal
from chargeback.reports.focus.lookups import FocusTenant
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from tests.support.clock import TODAY, FixedClock
from tests.support.deployments import Deployment
from tests.support.facts import Share, write_shares
from tests.support.serving import wait_until

DAY = date(2026, 1, 26)
PERIOD = Period.containing(DAY, "daily")
ROWS = 20_000


@pytest.fixture
def run(deployment: Deployment) -> RunContext:
    """Return a run of a tenant with many rows on one day."""
    write_shares(deployment.store.facts, [Share(DAY, f"sa-{n:05}", "1") for n in range(ROWS)])
    lease = acquire(deployment.store.control, LeaseOwner.this_process())
    nobody: Callable[[object], None] = lambda _: None  # noqa: E731
    return RunContext(
        deployment.tenant, deployment.store, lease, RunRequest(), TODAY, StopSignal(), nobody, FixedClock()
    )


def test_everything_there_is_to_ask(run: RunContext) -> None:
    """Emitters can read rows, CSV, sums and the inventory of a day."""
    with facts_for(run) as facts:
        facts.check()
        assert sum(batch.num_rows for batch in facts.rows(PERIOD)) == ROWS
        assert b"".join(facts.csv(PERIOD)).count(b"\r\n") == ROWS + 1
        (total,) = facts.charged(DayRange(DAY, DAY + ONE_DAY), ())
        assert (total.day, total.values, total.amount) == (DAY, (), Decimal(ROWS))
        assert len(list(facts.charged(DayRange(DAY, DAY + ONE_DAY), ("identity_id",), 10))) == 11
        assert list(facts.billed(DayRange(DAY, DAY + ONE_DAY), ("product_type",))) == []
        assert facts.existing([DAY])[DAY].resources == {}


def test_a_stream_ends_when_the_run_is_asked_to(run: RunContext) -> None:
    """A stop interrupts a stream and prevents new ones; the error is that of a stop."""
    with facts_for(run) as facts:
        rows = facts.rows(PERIOD)
        next(rows)
        run.stop.set()
        for ask in (facts.check, lambda: list(facts.rows(PERIOD)), lambda: facts.existing([DAY])):
            with pytest.raises(Stopped):
                ask()
        rows.close()  # type: ignore[attr-defined]


def test_a_query_is_cancelled_in_the_background(run: RunContext) -> None:
    """A query is interrupted by a stop, even if the emitter never checks for one."""
    with facts_for(run) as facts:
        token: CancellationToken = facts._token
        run.stop.set()
        wait_until(lambda: token.cancelled)


def test_a_query_that_is_cancelled_without_a_stop_is_told_as_such(run: RunContext) -> None:
    """Without a stop, a cancelled query raises a timeout."""
    token, engine = CancellationToken(), QueryEngine()
    facts = StoredFacts(run.store, engine, token, run.check, FocusTenant.of(run.tenant))
    token.cancel()
    with pytest.raises(QueryTimeout):
        list(facts.csv(PERIOD))
    engine.close()
