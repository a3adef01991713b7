"""Gathering from an ecosystem that misbehaves: its days are refused one by one, and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest

from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage
from chargeback.errors import SourceUnavailable
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange, utc_today
from chargeback.model.inventory import Inventory, ListedInventory, Resource
from chargeback.model.usage import USAGE
from chargeback.pipeline.events import RunRequest, StopSignal
from chargeback.pipeline.gather import gather
from chargeback.pipeline.job import Job
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.lease import Owner, acquire
from tests.support.deployments import Deployment


def line(day: date, **more: object) -> BillingLine:
    """One dollar for a made-up resource."""
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
    """A gatherer of a made-up ecosystem: it answers with the given days, and with nothing else."""

    answers: dict[date, GatheredDay] = field(default_factory=dict)
    fails_after: int | None = None
    listed: ListedInventory = field(default_factory=lambda: ListedInventory(Inventory(), frozenset()))

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
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
def job(deployment: Deployment) -> Job:
    """A run that has just begun."""
    deployment.store.facts.create()
    lease = acquire(deployment.store.control, Owner.this_process())
    stop = StopSignal()
    return Job(deployment.tenant, deployment.store, lease, RunRequest(), utc_today(), stop, lambda _: None)


DAY = utc_today() - timedelta(days=7)


def test_a_foreign_currency_is_an_error_of_its_day(job: Job, deployment: Deployment) -> None:
    """Lines in another currency than the tenant's are never mixed in; other days are kept."""
    gather(job, Bills({DAY: GatheredDay(DAY, [line(DAY), line(DAY, currency="EUR")])}))
    assert job.tally.errors == [f"{DAY}: billed in EUR, but the tenant's currency is USD"]
    assert not deployment.state(DAY).billing_gathered
    assert deployment.state(DAY).error is not None
    assert deployment.state(DAY - timedelta(days=1)).resources_gathered


def test_a_day_with_an_error_keeps_what_is_stored(job: Job, deployment: Deployment) -> None:
    """A day that cannot be trusted now stays as it was gathered before."""
    gather(job, Bills())
    gather(job, Bills({DAY: GatheredDay(DAY, error="it spans several days")}))
    state = deployment.state(DAY)
    assert (state.billing_gathered, state.billing_lines, state.error) == (True, 1, "it spans several days")


def test_a_provider_that_hangs_up_fails_the_gathering_but_keeps_the_days_it_gave(
    job: Job, deployment: Deployment
) -> None:
    """Days that came before the failure are kept; none of the window is ready to be calculated."""
    gather(job, Bills(fails_after=2))
    assert job.tally.gathering_error == "the provider hung up"
    assert [state.billing_gathered for state in deployment.states()] == [True, True]
    assert not any(state.resources_gathered for state in deployment.states())


def test_a_billed_resource_that_no_listing_names_is_in_the_inventory(job: Job, deployment: Deployment) -> None:
    """It gets the type that its line tells."""
    gather(job, Bills({DAY: GatheredDay(DAY, [line(DAY, resource_id="x", resource_type="gadget")])}))
    with deployment.store.control.read() as connection:
        types = {resource.resource_id: resource.resource_type for resource in read_inventory(connection).resources}
    assert types == {"x": "gadget", "thing-1": "unknown"}


def test_a_billed_resource_that_its_complete_listing_does_not_have_is_gone(job: Job, deployment: Deployment) -> None:
    """It is deleted from the start; of a type that was not listed nothing is known."""
    listed = ListedInventory(Inventory([Resource("here", "gadget")]), frozenset({"gadget"}))
    gather(job, Bills({DAY: GatheredDay(DAY, [line(DAY, resource_id="gone", resource_type="gadget")])}, listed=listed))
    with deployment.store.control.read() as connection:
        gone = {r.resource_id: r.deleted_at is not None for r in read_inventory(connection).resources}
    assert gone == {"here": False, "gone": True, "thing-1": False}
