"""Days past their retention are removed everywhere, and nothing else is."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from chargeback.demo.faults import Fault
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.retain import oldest_kept
from chargeback.pipeline.run_messages import RunOutcome, Stage
from chargeback.recompute.verify import PAST_RETENTION, verify
from chargeback.store.control.audit import KEPT as KEPT_ENTRIES
from chargeback.store.control.audit import AuditEntry, record
from chargeback.store.control.catalogue import end_days, instant_of_change
from chargeback.store.control.days import delete_days
from chargeback.store.control.events import Event, add_events
from chargeback.store.control.schema import audit, events, grants, topic_failures
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, MEMBERS_TABLE, SCHEMAS, USAGE_TABLE
from chargeback.store.facts.upkeep import STAMP
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.deployments import DAYS, Deployment

CUTOFF = 5
KEPT_DAYS = 8
OLDEST = TODAY - timedelta(days=KEPT_DAYS)
WINDOW = [TODAY - timedelta(days=offset) for offset in range(DAYS, CUTOFF, -1)]
KEPT = [day for day in WINDOW if day >= OLDEST]


def stored_days(deployment: Deployment) -> dict[str, list[date]]:
    """Return the days of each fact table."""
    facts = deployment.store.facts
    return {name: facts.snapshot(name).days for name, schema in SCHEMAS.items() if "date" in schema.names}


@pytest.mark.everyday
def test_days_past_retention_go_everywhere(calculated: Deployment) -> None:
    """A shorter retention removes older days from every table, and their states; the kept days are unchanged."""
    before = {day: calculated.rows(day) for day in KEPT}
    calculated.configure(retention_days=KEPT_DAYS)
    result = calculated.run()
    assert (result.outcome, result.dates_calculated) == (RunOutcome.COMPLETED, 0)
    assert [state.tracking_date for state in calculated.states()] == KEPT
    days = stored_days(calculated)
    for name in (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE, CHARGEBACKS_TABLE):
        assert days[name] == KEPT, name
    assert all(min(of_table, default=OLDEST) >= OLDEST for of_table in days.values())
    assert {day: calculated.rows(day) for day in KEPT} == before
    assert any(progress.stage is Stage.RETENTION for progress in calculated.progress)


def test_retention_writes_only_when_something_expires(calculated: Deployment) -> None:
    """A run in which no day expires commits nothing."""
    versions = {name: calculated.store.facts.snapshot(name).version for name in SCHEMAS}
    calculated.progress.clear()
    calculated.run()
    assert {name: calculated.store.facts.snapshot(name).version for name in SCHEMAS} == versions
    assert not [progress for progress in calculated.progress if progress.stage is Stage.RETENTION]


def test_facts_without_a_state_are_found(calculated: Deployment) -> None:
    """Days without a state, as an earlier version might have left them, are removed as well."""
    calculated.configure(retention_days=KEPT_DAYS)
    with calculated.store.control.write() as connection:
        assert delete_days(connection, OLDEST) == len(WINDOW) - len(KEPT)
    calculated.run()
    assert stored_days(calculated)[CHARGEBACKS_TABLE] == KEPT


def test_whatever_is_kept_by_day_is_forgotten(calculated: Deployment) -> None:
    """Failures of removed days are deleted, and so is access that had ended before."""
    now = NOW
    ended = {"grant_id": "g-old", "resource_id": "r", "identity_id": "i", "last_seen_at": now}
    with calculated.store.control.write() as connection:
        for day in (WINDOW[0], KEPT[0]):
            connection.execute(insert(topic_failures).values(tracking_date=day, cluster_id="lkc-1", failures=1))
        connection.execute(insert(grants).values(**ended, deleted_at=now - timedelta(days=KEPT_DAYS + 2)))
        connection.execute(insert(grants).values(**(ended | {"grant_id": "g-new"}), deleted_at=now))
        delete_days(connection, OLDEST)
        assert list(connection.execute(select(topic_failures.c.tracking_date)).scalars()) == [KEPT[0]]
        left = set(connection.execute(select(grants.c.grant_id).where(grants.c.resource_id == "r")).scalars())
    assert left == {"g-new"}


def test_verify_sets_days_past_retention_apart(calculated: Deployment) -> None:
    """A day past retention that is not removed yet is listed as such, and is never wrong."""
    with calculated.store.control.write() as connection:
        end_days(connection, [CHARGEBACKS_TABLE], OLDEST, instant_of_change(connection, NOW))
    checks = list(verify(calculated.store, OLDEST))
    assert [check.state == PAST_RETENTION for check in checks] == [check.day < OLDEST for check in checks]
    assert any(check.difference for check in checks)
    assert not [check for check in checks if check.is_wrong]


def test_upkeep_is_done_once_a_day(calculated: Deployment) -> None:
    """New tables need no upkeep; a run does it if the last one was a day ago."""
    root = calculated.store.facts.root
    first = datetime.fromisoformat((root / STAMP).read_text().strip())
    for hours, seen_to in ((23, first), (25, first + timedelta(hours=25))):
        calculated.clock = FixedClock(first + timedelta(hours=hours))
        calculated.run()
        assert datetime.fromisoformat((root / STAMP).read_text().strip()) == seen_to


@pytest.mark.everyday
def test_a_run_that_cannot_gather_forgets_nothing(calculated: Deployment) -> None:
    """If the provider does not respond, the clock may be wrong, so days that look old stay."""
    kept = calculated.store.facts.snapshot(CHARGEBACKS_TABLE).days
    calculated.configure(retention_days=6, lookback_days=6)
    calculated.server.faults.add("/billing/v1/costs", Fault(status=403, times=None))
    assert calculated.run().outcome is RunOutcome.FAILED
    assert calculated.store.facts.snapshot(CHARGEBACKS_TABLE).days == kept


def test_trouble_with_the_storage_is_survived(calculated: Deployment) -> None:
    """Failed upkeep is an error of the run, and its days are still calculated."""
    stamp: Path = calculated.store.facts.root / STAMP
    stamp.unlink()
    stamp.mkdir()
    result = calculated.run(RunRequest(WINDOW[-1], WINDOW[-1], recalculate=True))
    assert (result.outcome, result.dates_calculated) == (RunOutcome.COMPLETED_WITH_ERRORS, 1)
    assert ["retention is incomplete" in error for error in result.errors] == [True]


def test_the_oldest_kept_day() -> None:
    """With a retention of n days, the oldest day that is kept is n days ago."""
    assert oldest_kept(TODAY, KEPT_DAYS) == OLDEST


def test_entries_of_the_audit_log_and_events_expire(calculated: Deployment) -> None:
    """The next run deletes entries and events that are too old."""
    ages = {"kept": KEPT_ENTRIES - timedelta(hours=1), "old": KEPT_ENTRIES + timedelta(seconds=1)}
    with calculated.store.control.write() as connection:
        for name, age in ages.items():
            record(connection, "api", [AuditEntry("tag.created", name)], FixedClock(NOW - age))
            add_events(connection, [Event("period.ready", name, {"days": 30}, name)] * 2, NOW - age)
    calculated.run()
    with calculated.store.control.read() as connection:
        for column in (audit.c.target, events.c.subject):
            assert connection.execute(select(column)).scalars().all() == ["kept"]
