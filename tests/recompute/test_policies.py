"""Dated policies do not change silently once they have calculated days."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chargeback.errors import PoliciesChanged
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.run_request import RunRequest
from chargeback.recompute.policies import check_policies
from chargeback.recompute.rules import AllocationRules, present_tenant
from chargeback.recompute.simulate import Trial, simulate_days
from chargeback.store.control.day_revisions import read_policy_versions
from tests.support.sources import DAY, Laboratory, line

FIRST, SECOND = DAY - 2 * ONE_DAY, DAY - ONE_DAY
NAME = "KAFKA_NETWORK_WRITE"


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant of three days, whose cluster two active identities use, 3 to 1."""
    with Laboratory(tmp_path, days=3) as opened:
        sources = opened.sources
        sources.lines = {day: [line("100", day=day)] for day in (FIRST, SECOND, DAY)}
        sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 3, ("lkc-1", "sa-b"): 1}}
        yield opened


def version(*methods: str, begins: object = SECOND, reason: str = "Try") -> dict[str, object]:
    """Return a version of the policy of the lines."""
    policies = {NAME: {"portions": [{"share": "1", "try": list(methods)}]}}
    return {"effective_from": f"{begins}", "reason": reason, "policies": policies}


EVEN, USED = version("even(active)"), version("usage(bytes_in)")


def refusal(laboratory: Laboratory) -> str:
    """Return the error message of the policy check; empty if there is none."""
    with laboratory.store.control.read() as connection:
        try:
            check_policies(connection, laboratory.tenant)
        except PoliciesChanged as error:
            return str(error)
    return ""


def test_days_are_calculated_by_the_version_of_their_day(laboratory: Laboratory) -> None:
    """A day before the first version uses the undated policies, and every other day has its version."""
    laboratory.set_policies([EVEN])
    laboratory.run()
    assert laboratory.charged(FIRST) != {"sa-a": "50", "sa-b": "50"} == laboratory.charged(SECOND)
    with laboratory.store.control.read() as connection:
        by_day = read_policy_versions(connection, FIRST)
    assert by_day[FIRST] is None
    assert by_day[SECOND] == by_day[DAY] is not None
    assert refusal(laboratory) == ""


@pytest.mark.parametrize("now", [[USED], [], [{**EVEN, "effective_from": f"{DAY}"}], {}])
def test_a_version_that_has_calculated_days_is_not_changed(laboratory: Laboratory, now: object) -> None:
    """A version cannot be edited, removed or moved; the message has the days and two ways to proceed."""
    laboratory.set_policies([EVEN])
    laboratory.run()
    laboratory.set_policies(now)
    said = refusal(laboratory)
    assert "calculated by other policies" in said
    assert f"({SECOND}" in said
    assert f"let a change begin on {DAY + ONE_DAY} or later" in said
    assert f"--recalculate --restate --from {SECOND}" in said


def test_a_version_cannot_begin_in_the_past(laboratory: Laboratory) -> None:
    """A version that begins in the past is rejected until its days are recalculated."""
    laboratory.run()
    laboratory.set_policies([version("even(active)", reason="Fairness")])
    assert "2 days were calculated by other policies" in refusal(laboratory)
    assert f"the version from {SECOND} (Fairness) is in force on them now" in refusal(laboratory)
    laboratory.run(RunRequest(SECOND, SECOND, recalculate=True, restate=True))
    assert f"1 day was calculated by other policies ({DAY} to {DAY})" in refusal(laboratory)
    laboratory.run(RunRequest(DAY, DAY, recalculate=True, restate=True))
    assert refusal(laboratory) == ""


def test_what_says_the_same_is_no_change(laboratory: Laboratory) -> None:
    """Another reason, another spelling, or two versions for the same period are not a change."""
    laboratory.set_policies([EVEN])
    laboratory.run()
    laboratory.set_policies(
        [version("even(active)", "unallocated", reason="Said better"), version("even(active)", begins=DAY)]
    )
    assert refusal(laboratory) == ""


def shipped(*methods: str) -> dict[str, object]:
    """Return the policies that an ecosystem ships for the lines."""
    return {NAME: {"portions": [{"share": "1", "try": list(methods)}]}}


def test_what_is_shipped_is_in_force_from_the_first_day_that_is_calculated_after_it(
    laboratory: Laboratory, caplog: pytest.LogCaptureFixture
) -> None:
    """Earlier days keep their policies, even if they are recalculated and more upgrades follow."""
    laboratory.run(RunRequest(FIRST, FIRST))
    before = laboratory.rows()[FIRST]
    assert laboratory.charged(FIRST) == {"sa-a": "75", "sa-b": "25"}
    laboratory.ship(shipped("even(active)"))
    laboratory.run(RunRequest(SECOND, SECOND))
    assert f"in force from {SECOND} on" in caplog.text
    laboratory.ship(shipped("unallocated"))
    laboratory.run(RunRequest(FIRST, DAY, recalculate=True, restate=True))
    assert laboratory.rows()[FIRST] == before
    assert laboratory.charged(SECOND) == {"sa-a": "50", "sa-b": "50"}
    assert laboratory.charged(DAY) == {"UNALLOCATED": "100"}
    assert refusal(laboratory) == ""


def test_an_upgrade_that_has_calculated_nothing_leaves_no_version(laboratory: Laboratory) -> None:
    """Reverting an unused upgrade, or upgrading again, leaves no version; the tenant's own policies take precedence."""
    laboratory.run(RunRequest(FIRST, FIRST))
    sources, present = laboratory.sources, laboratory.tenant
    kept, sources.lines = sources.lines, {}
    laboratory.ship(shipped("unallocated"))
    laboratory.run(RunRequest(FIRST, FIRST))
    laboratory.tenant, sources.lines = present, kept
    laboratory.run()
    assert laboratory.charged(SECOND) == laboratory.charged(FIRST)
    laboratory.set_policies(shipped("even(active)"))
    laboratory.ship(shipped("unallocated"))
    laboratory.run(RunRequest(FIRST, DAY, recalculate=True, restate=True))
    assert laboratory.charged(FIRST) == laboratory.charged(DAY) == {"sa-a": "50", "sa-b": "50"}


def test_a_simulation_knows_what_was_shipped_before(laboratory: Laboratory, tmp_path: Path) -> None:
    """A simulation uses the policies that were in force on each day."""
    laboratory.run(RunRequest(FIRST, SECOND))
    laboratory.ship(shipped("even(active)"))
    laboratory.run()
    tenant = present_tenant(laboratory.tenant, laboratory.store.control)
    days = DayRange(FIRST, DAY + ONE_DAY)
    trial = Trial.of(tenant, {"KSQL_NUM_CSUS": {"portions": [{"share": "1", "try": ["unallocated"]}]}}, days)
    found = simulate_days(laboratory.store, AllocationRules.of(tenant), trial, tmp_path)
    assert {each.day: each.after[NAME].hash for each in found.days} == {
        each.day: each.before[NAME].hash for each in found.days
    }
    rows = laboratory.rows()
    assert {each.day: Path(each.file.path).read_bytes() for each in found.days if each.file} == rows
    assert laboratory.charged(SECOND) != laboratory.charged(DAY)


def test_a_day_that_keeps_its_rows_is_of_the_version_that_was_asked_for(laboratory: Laboratory) -> None:
    """Rows that are the same by both versions are written again, with the version in force."""
    laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 3}}
    laboratory.set_policies([EVEN])
    laboratory.run()
    laboratory.set_policies([USED])
    assert refusal(laboratory)
    laboratory.run(RunRequest(recalculate=True, restate=True))
    assert refusal(laboratory) == ""
