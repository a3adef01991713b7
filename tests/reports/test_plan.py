"""A plan is applied exactly as it was simulated, or refused with the reason."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.errors import PlanRefused, PlanStale, PoliciesChanged, ReachesIntoClosed
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline.simulations import simulated
from chargeback.recompute.policies import check_policies
from chargeback.recompute.rules import AllocationRules, RulesInForce
from chargeback.recompute.simulate import Trial
from chargeback.reports.closing.close import ClosingOrder, close
from chargeback.reports.closing.sealing import seal
from chargeback.reports.plan import AppliedPlan, Plan, PlanOrder, apply_plan, withdraw
from chargeback.reports.policies import list_versions
from chargeback.reports.tenant_view import TenantView, open_tenant
from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.control.policies import policies_revision, read_applied
from tests.recompute.test_simulate import random_bill, random_policies
from tests.support.clock import NOW
from tests.support.sources import DAY, Laboratory, line

FIRST = DAY - 3 * ONE_DAY
DAYS = DayRange(FIRST, DAY + ONE_DAY)
WRITE = "KAFKA_NETWORK_WRITE"


def split(*methods: str) -> dict[str, Any]:
    """Return a policy of one portion."""
    return {"portions": [{"share": "1", "try": [*methods]}]}


EVENLY = {WRITE: split("even(active)")}


@dataclass
class Tried:
    """A plan, and the policies from which it was made."""

    plan: Plan
    candidate: PolicyCatalogue


def tried(laboratory: Laboratory, policies: Any, days: DayRange = DAYS) -> Tried:
    """Return a plan that simulates these policies on some days."""
    trial = Trial.of(laboratory.tenant, policies, days)
    answer = simulated(laboratory.tenant, trial, ["identity_id"], lambda *_: None)
    return Tried(Plan(asked={"policies": policies}, answer=answer), trial.candidate)


def order(plan: Tried, begins: date | None = None, *, restate_closed: bool = False, reason: str = "Try") -> PlanOrder:
    """Return the order to apply a plan from a day on."""
    return PlanOrder(plan.plan.answer.digest, begins, reason, restate_closed, "ann")


def view_of(laboratory: Laboratory) -> TenantView:
    """Return the tenant as a service sees it."""
    rules = AllocationRules.of(laboratory.tenant)
    in_force = RulesInForce(laboratory.tenant, laboratory.store.control, rules)
    return TenantView.of(laboratory.tenant, laboratory.store, rules, in_force=in_force)


def applied(laboratory: Laboratory, plan: Tried, wanted: PlanOrder) -> AppliedPlan:
    """Apply a plan."""
    with laboratory.store.control.write() as connection:
        return apply_plan(connection, view_of(laboratory), plan.candidate, plan.plan, wanted, NOW)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant of four days, in which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=4) as opened:
        opened.share(DAYS)
        opened.run()
        yield opened


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.drill) for seed in range(6, 60))])
def test_what_is_applied_equals_what_was_tried(tmp_path: Path, seed: int) -> None:
    """With random policies, dated or not, in addition to others in force, the days from the plan's start equal those of
    a tenant with the same configuration; earlier days keep their rows."""
    chance = random.Random(seed)
    with Laboratory(tmp_path / "one", days=4) as now, Laboratory(tmp_path / "other", days=4) as other:
        random_bill(now, chance)
        vars(other.sources).update(vars(now.sources))
        own: Any = random_policies(chance) if chance.random() < 0.5 else {}
        now.set_policies(own)
        now.run()
        policies: Any = random_policies(chance)
        begins: date | None = FIRST + chance.randint(0, 5) * ONE_DAY
        version = {"effective_from": str(begins), "reason": "Try", "policies": policies}
        other.set_policies([{"policies": own}, version])
        if chance.random() < 0.5:
            policies, begins = [{"policies": own}, version], None
        else:
            other.set_policies([{"policies": own}, version | {"policies": own_less(now, own, policies)}])
        before, plan = now.rows(), tried(now, policies)
        try:
            done = applied(now, plan, order(plan, begins))
        except PlanRefused as error:
            assert "nothing would change" in str(error) or "pattern" in str(error)
            return
        assert [each.effective_from for each in done.versions] == [date.fromisoformat(version["effective_from"])]
        after_plan = now.rows()
        assert after_plan == before, "applying a plan writes no row"
        now.run()
        other.run()
        assert now.rows() == other.rows()
        unchanged = {day: content for day, content in before.items() if day < done.versions[0].effective_from}
        assert unchanged.items() <= now.rows().items()
        assert now.run().dates_calculated == 0, "nothing is left to do"


def own_less(laboratory: Laboratory, own: dict[str, Any], policies: dict[str, Any]) -> dict[str, Any]:
    """Return ``policies`` as a version that replaces ``own``: types only in ``own`` get their shipped policy again, or
    are unallocated."""
    shipped = laboratory.tenant.ecosystem.catalogue
    dropped = own.keys() - policies.keys()
    taken_back = {name: found.text for name in dropped if (found := shipped.find(name)) is not None}
    nobody = split("unallocated")
    return policies | {name: json.loads(taken_back[name]) if name in taken_back else nobody for name in dropped}


def test_days_that_moved_meanwhile(laboratory: Laboratory) -> None:
    """If days have changed, the plan is refused with their revisions; after another simulation it is applied."""
    plan = tried(laboratory, EVENLY)
    laboratory.sources.lines[DAY] = [line("120", day=DAY)]
    laboratory.run()
    with pytest.raises(PlanStale, match=f"{DAY} changed since it was simulated: simulate again") as stale:
        applied(laboratory, plan, order(plan, FIRST))
    assert stale.value.days == ({"date": str(DAY), "then": 1, "now": 2},)
    again = tried(laboratory, EVENLY)
    assert applied(laboratory, again, order(again, FIRST)).recalculated == list(DAYS)
    with pytest.raises(PlanStale) as stale:
        applied(laboratory, again, order(again, FIRST))
    assert [each["now"] for each in stale.value.days] == [None] * 4, "they are to be calculated again"


def test_a_version_from_a_coming_day(laboratory: Laboratory) -> None:
    """A version from a future day recalculates nothing, and can be withdrawn until it has calculated a day."""
    plan, begins = tried(laboratory, EVENLY), DAY + ONE_DAY
    done = applied(laboratory, plan, order(plan, begins))
    assert done.recalculated == []
    view = view_of(laboratory)
    with laboratory.store.control.read() as connection:
        stored = read_applied(connection)
        rules = view.ruled(policies_revision(connection)).rules
        (listed,) = list_versions(rules, {}, stored)
        check_policies(connection, laboratory.tenant)
        (entry,), _ = audit_entries(connection, AuditFilter(None, None, None, None), offset=0, limit=9)
    assert (listed.effective_from, listed.applied_by, listed.reason) == (begins, "ann", "Try")
    assert (entry["what"], entry["who"]) == ("policies.applied", "ann")
    assert rules.catalogue.on(DAY).hash == view.rules.catalogue.on(DAY).hash
    assert rules.catalogue.on(begins).hash == plan.candidate.on(begins).hash
    with laboratory.store.control.write() as connection:
        with pytest.raises(LookupError, match="no version that begins on"):
            withdraw(connection, view, DAY, "ben")
        withdraw(connection, view, begins, "ben")
    with laboratory.store.control.read() as connection:
        assert read_applied(connection) == []


def test_a_version_that_has_calculated_days_stays(laboratory: Laboratory) -> None:
    """A version that has calculated days cannot be withdrawn or changed by the configuration, which may repeat it."""
    plan = tried(laboratory, EVENLY)
    applied(laboratory, plan, order(plan, DAY))
    laboratory.run()
    refused = pytest.raises(PlanRefused, match=f"has calculated {DAY}, and stays")
    with laboratory.store.control.write() as connection, refused:
        withdraw(connection, view_of(laboratory), DAY, "ben")
    version = {"effective_from": str(DAY), "reason": "Written down", "policies": EVENLY}
    with laboratory.store.control.read() as connection:
        laboratory.set_policies([version])
        check_policies(connection, laboratory.tenant)
        laboratory.set_policies([version | {"policies": {WRITE: split("even(period)")}}])
        with pytest.raises(PoliciesChanged, match="is not the one that ann applied"):
            check_policies(connection, laboratory.tenant)
        laboratory.set_policies([version | {"effective_from": str(DAY - ONE_DAY)}])
        with pytest.raises(PoliciesChanged, match="1 day was calculated by other policies"):
            check_policies(connection, laboratory.tenant)


@pytest.mark.parametrize(
    ("policies", "begins", "why"),
    [
        (EVENLY, None, "policies without a date would change"),
        ({}, DAY, "nothing would change"),
        ([{"policies": {}}], None, "nothing would change"),
        (EVENLY, FIRST - ONE_DAY, None),
    ],
)
def test_what_cannot_begin_so(laboratory: Laboratory, policies: Any, begins: date | None, why: str | None) -> None:
    """A plan that cannot begin on a day is refused with the reason."""
    plan = tried(laboratory, policies)
    if why is None:
        assert applied(laboratory, plan, order(plan, begins)).recalculated == list(DAYS)
        return
    with pytest.raises(PlanRefused, match=why):
        applied(laboratory, plan, order(plan, begins))


def test_one_version_after_another(laboratory: Laboratory) -> None:
    """A plan may not replace a later version: it must begin after it or contain it."""
    plan, begins = tried(laboratory, EVENLY), DAY + 5 * ONE_DAY
    applied(laboratory, plan, order(plan, begins))
    other = tried(laboratory, {WRITE: split("even(period)")})
    with pytest.raises(PlanRefused, match=f"the version from {begins} would take its place"):
        applied(laboratory, other, order(other, DAY + ONE_DAY))
    alone = tried(
        laboratory, [{"effective_from": str(DAY + ONE_DAY), "reason": "x", "policies": other.plan.asked["policies"]}]
    )
    with pytest.raises(PlanRefused, match=f"the version from {begins} is in force, and would be changed or removed"):
        applied(laboratory, alone, order(alone))
    later = applied(laboratory, other, order(other, begins + ONE_DAY))
    assert [each.effective_from for each in later.versions] == [begins + ONE_DAY]


def test_what_was_not_tried_is_not_calculated_again(laboratory: Laboratory) -> None:
    """A plan is refused if it recalculates days that were not simulated."""
    plan = tried(laboratory, EVENLY, DayRange.of_day(DAY))
    with pytest.raises(PlanRefused, match=r"3 days .* not simulated: simulate all days from"):
        applied(laboratory, plan, order(plan, FIRST))
    assert applied(laboratory, plan, order(plan, DAY)).recalculated == [DAY]


def test_a_plan_that_was_changed(laboratory: Laboratory) -> None:
    """A plan with changed numbers or policies is refused."""
    plan = tried(laboratory, EVENLY)
    wanted = order(plan, DAY)
    better = plan.plan.answer.model_copy(update={"moved": plan.plan.answer.moved - 1})
    other = tried(laboratory, {WRITE: split("even(period)")})
    past = Plan(asked=plan.plan.asked | {"as_of": "2026-01-01T00:00:00Z"}, answer=plan.plan.answer)
    for changed in (
        Tried(Plan(asked=plan.plan.asked, answer=better), plan.candidate),
        Tried(plan.plan, other.candidate),
        Tried(past, plan.candidate),
    ):
        with pytest.raises(PlanRefused, match="simulate"):
            applied(laboratory, changed, wanted)


def test_closed_months_are_reached_on_purpose_only(laboratory: Laboratory) -> None:
    """A plan that changes closed months is refused unless that is requested; a sealed month is never recalculated."""
    month = AccountingPeriod.of(DAY)
    later = NOW + timedelta(days=40)
    settings = laboratory.tenant.settings.closing
    laboratory.configure(closing=settings.model_copy(update={"by": ["identity_id"]}))

    def closed(kind: str) -> None:
        with open_tenant(laboratory.tenant) as (view, _, posted):
            writing = partial(view.store.control.write, durable=True)
            if kind == "close":
                wanted = ClosingOrder(month, "ann", None, None, None, ("day-missing", "cutoff-not-reached"), "x")
                close(view, lambda: nullcontext(posted), writing, wanted, lambda: later)
            else:
                seal(view, writing, month, "ann", "x", lambda: later)

    closed("close")
    plan = tried(laboratory, EVENLY)
    assert plan.plan.answer.corrections
    with pytest.raises(ReachesIntoClosed, match=f"let them begin on {month.next.start}") as reached:
        applied(laboratory, plan, order(plan, FIRST))
    assert reached.value.moved
    closed("seal")
    with pytest.raises(PlanRefused, match=f"{month.id} is sealed"):
        applied(laboratory, plan, order(plan, FIRST, restate_closed=True))
