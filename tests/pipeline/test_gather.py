"""Gathering from a faulty ecosystem: each faulty day is refused and reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.ecosystems.guarded import GuardedGatherer
from chargeback.errors import SourceUnavailable
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory, Resource
from chargeback.model.run_request import RunRequest
from chargeback.model.usage import USAGE
from chargeback.pipeline.bills import TenantBills
from chargeback.pipeline.gather import _gather_days, gather
from chargeback.pipeline.run_context import RunContext, RunRecord
from chargeback.pipeline.run_messages import StopSignal
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.lease import LeaseOwner, acquire
from tests.support.clock import TODAY, FixedClock
from tests.support.deployments import Deployment
from tests.support.sources import DAY as BILLED
from tests.support.sources import RECALCULATE, Laboratory
from tests.support.sources import line as billed


def line(day: date, **more: object) -> BillingLine:
    """Return a line of one dollar for a fictitious resource."""
    known: dict[str, object] = {
        "day": day,
        "timestamp": datetime.combine(day, time(), UTC),
        "resource_id": "thing-1",
        "product_category": "THINGS",
        "product_type": "THING",
        "total_cost": Decimal(1),
        "currency": "USD",
    }
    return BillingLine(**(known | more))  # type: ignore[arg-type]


@dataclass
class Bills:
    """A gatherer of a fictitious ecosystem, which returns the given days."""

    answers: dict[date, GatheredDay] = field(default_factory=dict)
    fails_after: int | None = None
    listed: ListedInventory = field(default_factory=lambda: ListedInventory(Inventory(), frozenset()))
    requested: list[DayRange] = field(default_factory=list)

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        self.requested.append(days)
        for number, day in enumerate(days):
            if number == self.fails_after:
                raise SourceUnavailable("the provider hung up")
            yield self.answers.get(day, GatheredDay(day, [line(day)]))

    def inventory(self) -> ListedInventory:
        return self.listed

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        return MeasuredUsage(USAGE.empty_table())

    def topics(self, day: date) -> MeasuredUsage:
        return MeasuredUsage(USAGE.empty_table())

    def check(self) -> Iterator[Finding]:
        return iter(())


@pytest.fixture
def run(deployment: Deployment) -> RunContext:
    """Return a run that has just begun."""
    lease = acquire(deployment.store.control, LeaseOwner.this_process())
    stop = StopSignal()
    return RunContext(
        deployment.tenant, deployment.store, lease, RunRequest(), TODAY, stop, lambda _: None, FixedClock()
    )


DAY = TODAY - timedelta(days=7)


def guard(gatherer: Bills, run: RunContext) -> GuardedGatherer:
    """Return the gatherer with the guard of the pipeline."""
    settings = run.tenant.settings
    context = TenantContext("acme", settings.tenant_id, settings.currency, run.today, run.stop, "")
    return GuardedGatherer("plugin made_up", gatherer, context, ())


def test_a_foreign_currency_is_an_error_of_its_day(run: RunContext, deployment: Deployment) -> None:
    """A line in another currency than the tenant's is an error of its day; other days are kept."""
    gather(run, guard(Bills({DAY: GatheredDay(DAY, [line(DAY), line(DAY, currency="EUR")])}), run))
    expected = "plugin made_up: billing: line 2: currency should be USD, the tenant's, not str 'EUR'"
    assert run.record.described_errors() == [f"{DAY}: {expected}"]
    assert not deployment.state(DAY).billing_gathered
    assert deployment.state(DAY).error == expected
    assert deployment.state(DAY - timedelta(days=1)).resources_gathered


def test_a_day_that_is_answered_twice_is_not_calculated(run: RunContext, deployment: Deployment) -> None:
    """Neither the first result nor an empty second one is accepted as the bill of the day."""

    class Twice(Bills):
        def billing(self, days: DayRange) -> Iterator[GatheredDay]:
            yield from super().billing(days)
            yield GatheredDay(DAY)

    for _ in range(2):
        run.record = RunRecord()
        gather(run, guard(Twice(), run))
        (error,) = run.record.described_errors()
        assert error.startswith(f"{DAY}: plugin made_up: billing: the day was returned twice")
        assert [state.tracking_date for state in deployment.states() if not state.billing_gathered] == [DAY]
    gather(run, guard(Bills(), run))
    assert deployment.state(DAY).billing_gathered


def test_an_error_that_nobody_foresaw_is_one_of_its_day(run: RunContext, deployment: Deployment) -> None:
    """An unexpected error affects only its day; the other days are gathered."""
    gather(run, Bills({DAY: GatheredDay(DAY, [line(DAY, total_cost="one")])}))
    assert run.record.described_errors() == [f"{DAY}: {deployment.state(DAY).error}"]
    assert run.record.errors[0].startswith("internal error: ")
    assert run.record.gathering_error is None
    assert [state.tracking_date for state in deployment.states() if not state.billing_gathered] == [DAY]


def test_a_day_with_an_error_keeps_what_is_stored(run: RunContext, deployment: Deployment) -> None:
    """A day with an error keeps the lines that were gathered before."""
    gather(run, Bills())
    gather(run, Bills({DAY: GatheredDay(DAY, error="it spans several days")}))
    state = deployment.state(DAY)
    assert (state.billing_gathered, state.billing_lines, state.error) == (True, 1, "it spans several days")


def test_consecutive_days_are_one_request(run: RunContext) -> None:
    """Days that need not be gathered again are left out, even if they lie between others."""
    bills, days = Bills(), [DAY, DAY + timedelta(days=1), DAY + timedelta(days=3)]
    assert [each.gathered.day for each in _gather_days(TenantBills(run, bills, {}), days)] == days
    assert bills.requested == [DayRange(DAY, DAY + timedelta(days=2)), DayRange(days[2], DAY + timedelta(days=4))]


def test_a_provider_that_hangs_up_fails_the_gathering_but_keeps_the_days_it_gave(
    run: RunContext, deployment: Deployment
) -> None:
    """Days before the failure are kept, and no day of the window is ready to be calculated."""
    gather(run, Bills(fails_after=2))
    assert run.record.gathering_error == "the provider hung up"
    assert [state.billing_gathered for state in deployment.states()] == [True, True]
    assert not any(state.resources_gathered for state in deployment.states())


def test_unchanged_days_are_confirmed_even_if_the_provider_hangs_up(run: RunContext, deployment: Deployment) -> None:
    """Days whose bill is the stored one are recorded as gathered again, together; those after a failure are not."""
    gather(run, Bills())
    before, later = run.now(), run.now() + timedelta(hours=1)
    run.now = lambda: later
    gather(run, Bills(fails_after=2))
    assert run.record.gathering_error == "the provider hung up"
    states = deployment.states()
    assert [state.gathered_at for state in states] == [later] * 2 + [before] * (len(states) - 2)


def test_listings_that_fail_for_one_reason_are_one_error(run: RunContext) -> None:
    """Types that could not be listed for the same reason are reported together."""
    failures = {"user": "HTTP 401", "cluster": "HTTP 401", "connector": "HTTP 500"}
    gather(run, Bills(listed=ListedInventory(Inventory(), frozenset(), failures=failures)))
    assert run.record.errors == [
        "cluster, user could not be listed; the last known inventory is used: HTTP 401",
        "connector could not be listed; the last known inventory is used: HTTP 500",
    ]


def test_a_required_listing_that_fails_stops_the_run(run: RunContext) -> None:
    """The errors of a run that calculates no new bill do not mention the last known inventory."""
    failures = {"cluster": "HTTP 403", "connector": "HTTP 500"}
    listed = ListedInventory(Inventory(), frozenset(), failures=failures, required=frozenset({"cluster"}))
    gather(run, Bills(listed=listed))
    assert run.record.gathering_error == "cluster: HTTP 403"
    assert run.record.errors == [
        "cluster could not be listed; new bills are not calculated: HTTP 403",
        "connector could not be listed; new bills are not calculated: HTTP 500",
    ]


def test_a_billed_resource_that_no_listing_names_is_in_the_inventory(run: RunContext, deployment: Deployment) -> None:
    """A billed resource that is not listed gets the type of its line."""
    gather(run, Bills({DAY: GatheredDay(DAY, [line(DAY, resource_id="x", resource_type="gadget")])}))
    with deployment.store.control.read() as connection:
        types = {resource.resource_id: resource.resource_type for resource in read_inventory(connection).resources}
    assert types == {"x": "gadget", "thing-1": "unknown"}


def test_a_billed_resource_that_its_complete_listing_does_not_have_is_gone(
    run: RunContext, deployment: Deployment
) -> None:
    """A billed resource that its complete listing lacks is deleted; resources of other types are not."""
    listed = ListedInventory(Inventory([Resource("here", "gadget")]), frozenset({"gadget"}))
    gather(run, Bills({DAY: GatheredDay(DAY, [line(DAY, resource_id="gone", resource_type="gadget")])}, listed=listed))
    with deployment.store.control.read() as connection:
        gone = {r.resource_id: r.deleted_at is not None for r in read_inventory(connection).resources}
    assert gone == {"here": False, "gone": True, "thing-1": False}


def test_days_that_left_the_window_are_calculated_once_the_listing_succeeds(tmp_path: Path) -> None:
    """A day gathered while a required listing fails waits for it, even if the day leaves the window."""
    with Laboratory(tmp_path) as laboratory:
        sources = laboratory.sources
        sources.lines[BILLED] = [billed("100")]
        sources.unlisted, sources.required = {"service_account": "HTTP 403"}, frozenset({"service_account"})
        laboratory.run()
        laboratory.configure(lookback_days=5, cutoff_days=3)
        assert laboratory.run(RECALCULATE).dates_calculated == 0
        assert (laboratory.state(BILLED).billing_gathered, laboratory.state(BILLED).resources_gathered) == (True, False)
        sources.unlisted = {}
        laboratory.run()
        assert laboratory.state(BILLED).chargebacks.is_current
        assert laboratory.charged(BILLED).keys() == {"sa-a", "sa-b", "sa-c"}
