"""Plans: apply a simulation by putting exactly the simulated policies in force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final

from pydantic import Field
from sqlalchemy import Connection

from chargeback import __version__
from chargeback.allocation.policies import UNKNOWN, Policy, PolicyCatalogue, PolicyVersion
from chargeback.errors import PlanRefused, PlanStale, ReachesIntoClosed
from chargeback.reports.answers import ResponseModel
from chargeback.reports.simulation import SimulationAnswer
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.audit import POLICIES_APPLIED, POLICIES_WITHDRAWN, AuditEntry, record
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.closings import read_books
from chargeback.store.control.day_revisions import read_policy_versions
from chargeback.store.control.days import DayDataset, DayState, mark_due, read_days
from chargeback.store.control.policies import (
    AppliedVersion,
    add_applied,
    policies_revision,
    read_applied,
    remove_applied,
)

#: How many product types an error names.
_NAMED: Final = 3


class Plan(ResponseModel):
    """The part of a simulation that is needed to apply it."""

    asked: dict[str, Any]
    answer: SimulationAnswer


@dataclass(frozen=True)
class PlanOrder:
    """How to apply a plan.

    Attributes:
        digest: the digest of the reviewed simulation.
        effective_from: the first UTC day on which the policies are in force; None if they have dates themselves.
        reason: why they change; None if they have reasons themselves.
        restate_closed: whether days of closed months may be calculated again.
        who: the actor who applies it.
    """

    digest: str
    effective_from: date | None
    reason: str | None
    restate_closed: bool
    who: str


class NewVersion(ResponseModel):
    """A version of the tenant's own policies that is in force from now on."""

    effective_from: date = Field(description="Its first UTC day.")
    reason: str
    hash: str


class AppliedPlan(ResponseModel):
    """The versions of policies that were put in force."""

    versions: list[NewVersion]
    recalculated: list[date] = Field(description="The days that the next run calculates again.")


def apply_plan(
    connection: Connection, tenant: TenantView, candidate: PolicyCatalogue, plan: Plan, order: PlanOrder, now: datetime
) -> AppliedPlan:
    """Put simulated policies in force, in a transaction that the caller commits. ``candidate`` is their complete
    catalogue.

    Raises:
        PlanRefused: they cannot begin as ordered.
        PlanStale: the data of the simulation has changed.
        ReachesIntoClosed: days of closed months would be calculated again, which the order does not allow.
    """
    lock_tenant(connection)
    present = tenant.ruled(policies_revision(connection)).rules.catalogue
    states = {each.tracking_date: each for each in read_days(connection)}
    _check_whole(plan, candidate, order.digest)
    _check_base(plan.answer, present, states.values())
    versions = versions_of(present, candidate, order)
    again = [day for day, state in states.items() if state.was_calculated and day >= versions[0].effective_from]
    _check_days(plan.answer, again)
    _check_books(connection, tenant, plan.answer, versions, again, order)
    for each in versions:
        policies = {name: json.loads(policy.text) for name, policy in sorted(each.policies.items())}
        applied = AppliedVersion(each.effective_from, each.reason, policies, order.digest, order.who, now)
        add_applied(connection, applied)
        entry = AuditEntry(
            POLICIES_APPLIED, f"policies/{each.effective_from}", None, applied.raw | {"plan": order.digest}
        )
        record(connection, order.who, [entry])
    mark_due(connection, DayDataset.CHARGEBACKS, again)
    new = [NewVersion(effective_from=each.effective_from, reason=each.reason, hash=each.hash) for each in versions]
    return AppliedPlan(versions=new, recalculated=sorted(again))


def withdraw(connection: Connection, tenant: TenantView, effective_from: date, who: str) -> None:
    """Remove a version that was applied and has calculated no day yet, in a transaction that the caller commits.

    Raises:
        LookupError: there is none that begins on the day.
        PlanRefused: it has calculated days.
    """
    lock_tenant(connection)
    found = next((each for each in read_applied(connection) if each.effective_from == effective_from), None)
    if found is None:
        raise LookupError(f"no version that begins on {effective_from} was applied")
    catalogue = tenant.ruled(policies_revision(connection)).rules.catalogue
    calculated = read_policy_versions(connection, effective_from)
    days = [
        day for day, by in calculated.items() if by == catalogue.version_hash(day) and _begun(catalogue, day, found)
    ]
    if days:
        raise PlanRefused(
            f"the version from {effective_from} has calculated {_days(days)}, and stays: "
            "let other policies begin later, or on the same day by a plan that calculates these days again"
        )
    remove_applied(connection, effective_from)
    record(connection, who, [AuditEntry(POLICIES_WITHDRAWN, f"policies/{effective_from}", found.raw, None)])


def versions_of(present: PolicyCatalogue, candidate: PolicyCatalogue, order: PlanOrder) -> list[PolicyVersion]:
    """Return the versions that, in addition to the present policies, put those of the candidate in force: from the day
    of the order on, or from the days in the candidate.

    Raises:
        PlanRefused: there are none, or they cannot be put in force.
    """
    versions = _dated(present, candidate) if order.effective_from is None else [_beginning(present, candidate, order)]
    if not any(each.policies for each in versions):
        raise PlanRefused("nothing would change: these policies are in force")
    after = replace(present, versions=tuple(_in_order([*present.versions, *versions])))
    for each in versions:
        mine, tried = after.on(each.effective_from), candidate.on(each.effective_from)
        differs = [name for name in {*mine.policies, *tried.policies} if _hash(mine, name) != _hash(tried, name)]
        if differs:
            raise PlanRefused(
                f"together with the present policies, {', '.join(sorted(differs)[:_NAMED])} would not be split as they "
                "were simulated: name the product types themselves, not by a pattern"
            )
    return versions


def _beginning(present: PolicyCatalogue, candidate: PolicyCatalogue, order: PlanOrder) -> PolicyVersion:
    """Return the version that begins on the day of an order, with all policies that differ from those without a
    date."""
    day = order.effective_from
    if day is None or not order.reason:
        raise PlanRefused("a version has a reason: say in a sentence why the policies change")
    later = [each.effective_from for each in present.versions if each.effective_from >= day]
    if later:
        raise PlanRefused(
            f"the version from {later[-1]} would take its place: let it begin later, or withdraw that one first"
        )
    before, tried = present.undated.on(day), candidate.on(day)
    names = [name for name in sorted({*before.policies, *tried.policies}) if _hash(before, name) != _hash(tried, name)]
    return PolicyVersion(day, order.reason, {name: tried.find(name) or UNKNOWN for name in names})


def _dated(present: PolicyCatalogue, candidate: PolicyCatalogue) -> list[PolicyVersion]:
    """Return the versions of the candidate that are not in force yet."""
    if candidate.undated.hash != present.undated.hash:
        raise PlanRefused("policies without a date would change: say from which day on (effective_from)")
    known = {each.effective_from: each.hash for each in present.versions}
    tried = {each.effective_from: each for each in candidate.versions}
    for day, hash_ in known.items():
        if day not in tried or tried[day].hash != hash_:
            raise PlanRefused(f"the version from {day} is in force, and would be changed or removed: keep it")
    return _in_order(each for day, each in tried.items() if day not in known)


def _in_order(versions: Iterable[PolicyVersion]) -> list[PolicyVersion]:
    return sorted(versions, key=lambda each: each.effective_from)


def _hash(catalogue: PolicyCatalogue, name: str) -> str:
    policy: Policy = catalogue.find(name) or UNKNOWN
    return policy.hash


def _begun(catalogue: PolicyCatalogue, day: date, version: AppliedVersion) -> bool:
    """Return whether a version is the one that is in force on a day."""
    found = catalogue.version_on(day)
    return found is not None and found.effective_from == version.effective_from


def _check_whole(plan: Plan, candidate: PolicyCatalogue, digest: str) -> None:
    """Check that a plan is unchanged, and was simulated with the present data."""
    answer = plan.answer
    if answer.digest != digest or answer.content_digest != digest or answer.base.candidate != candidate.hash:
        raise PlanRefused("the plan is not what was simulated: simulate again, and leave the file as it is")
    if plan.asked.get("cost_categories") or plan.asked.get("tags"):
        raise PlanRefused(
            "it has tags or cost categories, which are changed where they are kept: simulate policies alone"
        )
    if plan.asked.get("as_of") is not None:
        raise PlanRefused("the plan uses data as of an earlier instant (as_of): simulate with the present data")


def _check_base(answer: SimulationAnswer, present: PolicyCatalogue, states: Iterable[DayState]) -> None:
    """Check that the data of a plan has not changed."""
    base = answer.base
    if base.software != __version__:
        raise PlanStale(f"it was simulated by version {base.software}, and this is {__version__}: simulate again")
    now = {each.tracking_date: each.chargebacks.revision for each in states if each.chargebacks.is_current}
    moved = [
        {"date": each.date.isoformat(), "then": each.revision, "now": now.get(each.date)}
        for each in base.days
        if each.revision != now.get(each.date)
    ]
    if moved:
        dates = [each.date for each in base.days if each.revision != now.get(each.date)]
        raise PlanStale(f"{_days(dates)} changed since it was simulated: simulate again", moved)
    if base.policies != present.hash:
        raise PlanStale("the policies in force changed since it was simulated: simulate again")


def _check_days(answer: SimulationAnswer, again: Sequence[date]) -> None:
    """Check that every day that is calculated again was simulated."""
    tried = {each.date for each in answer.base.days}
    missing = sorted(set(again) - tried)
    if missing:
        left_out = {each.date: each.reason for each in answer.left_out}
        why = f": {left_out[missing[0]]}" if missing[0] in left_out else ""
        raise PlanRefused(
            f"{_days(missing)} would be calculated again, but were not simulated{why}: simulate all days from "
            f"{again[0]} to {again[-1]}, or let the policies begin later"
        )


def _check_books(
    connection: Connection,
    tenant: TenantView,
    answer: SimulationAnswer,
    versions: Sequence[PolicyVersion],
    again: Sequence[date],
    order: PlanOrder,
) -> None:
    """Check that no closed month is changed, unless the order allows it, and never a sealed one."""
    books = read_books(connection)
    begins = versions[0].effective_from
    if books.first_open is None or begins >= books.first_open.start:
        return
    sealed = [each.period.id for each in books.closed if each.seal is not None and begins <= each.period.last_day]
    if sealed and any(each <= books.closed[-1].period.last_day for each in again):
        raise PlanRefused(f"{sealed[-1]} is sealed, and not calculated again: let the policies begin after it")
    if not (order.restate_closed and order.reason):
        raise ReachesIntoClosed(
            f"the policies would begin in a closed month: let them begin on {books.first_open.start}, or send "
            "restate_closed with a reason, and what moves is posted as a correction",
            [each.model_dump(mode="json") for each in answer.corrections],
            currency=tenant.currency,
            begins=books.first_open.start,
        )


def _days(days: Sequence[date]) -> str:
    """Return days in words."""
    return str(days[0]) if len(days) == 1 else f"{len(days)} days ({min(days)} to {max(days)})"
