"""A simulated day has exactly the rows that a run with the same policies writes; nothing else changes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.allocation.policies import parse_policies
from chargeback.errors import SourceUnavailable
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.recompute.rules import AllocationRules
from chargeback.recompute.simulate import Simulated, Trial, simulate_days
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE
from tests.support.damage import file_of, remove
from tests.support.sources import DAY, Laboratory, line

FIRST = DAY - 3 * ONE_DAY
DAYS = DayRange(FIRST, DAY + ONE_DAY)
PRODUCTS = ("KAFKA_NETWORK_WRITE", "KAFKA_STORAGE", "KAFKA_NUM_CKUS", "SOMETHING_NEW")
METHODS = ("usage(bytes_in)", "usage(bytes_in + bytes_out)", "even(active)", "even(period)", "owner", "proportional")


def random_policies(chance: random.Random) -> dict[str, Any]:
    """Return random policies for some product types."""

    def _portion(share: str) -> dict[str, Any]:
        return {"share": share, "try": chance.sample(METHODS, chance.randint(1, 3))}

    shares = (["1"], ["0.3", "0.7"], ["0.333333333333", "0.333333333333", "0.333333333334"])
    chosen = chance.sample(PRODUCTS, chance.randint(1, 3))
    return {name: {"portions": [_portion(share) for share in chance.choice(shares)]} for name in chosen}


def random_bill(laboratory: Laboratory, chance: random.Random) -> None:
    """Set random bills, with refunds, and measurements that may be missing."""
    sources = laboratory.sources
    for day in DAYS:
        sources.lines[day] = [
            line(f"{Decimal(chance.randint(-300, 9000)) / 100}", day=day, product=product)
            for product in PRODUCTS
            if chance.random() < 0.8
        ]
    subjects = [("lkc-1", f"sa-{name}") for name in "abc" if chance.random() < 0.7]
    sources.totals = {name: {each: chance.randint(1, 9) for each in subjects} for name in ("bytes_in", "bytes_out")}
    sources.fault = chance.choice([None, None, SourceUnavailable("HTTP 503", source="metrics")])


def trial(laboratory: Laboratory, policies: Any) -> Trial:
    """Return a trial of these policies on all days."""
    own = parse_policies(policies, "p")
    tenant = laboratory.tenant
    settings = tenant.plugin_settings.model_copy(update={"allocation_policies": policies})
    return Trial(tenant.ecosystem.tenant_catalogue(settings), tuple(own.names), DAYS)


def simulated(laboratory: Laboratory, policies: Any, folder: Path) -> Simulated:
    """Return the days under the simulated policies."""
    rules = AllocationRules.of(laboratory.tenant)
    return simulate_days(laboratory.store, rules, trial(laboratory, policies), folder)


def everything(laboratory: Laboratory) -> Mapping[str, bytes]:
    """Return all files of the storage, except the shared-memory files of SQLite."""
    root = Path(laboratory.store.facts.root).parent
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {f"{path.relative_to(root)}": path.read_bytes() for path in files}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.drill) for seed in range(6, 60))])
def test_a_simulated_day_has_the_bytes_of_a_real_one(tmp_path: Path, seed: int) -> None:
    """Simulated files equal real ones, for random policies and bills with gaps in the evidence."""
    chance = random.Random(seed)
    with Laboratory(tmp_path / "one", days=4) as now, Laboratory(tmp_path / "other", days=4) as other:
        random_bill(now, chance)
        vars(other.sources).update(vars(now.sources))
        now.run()
        policies: Any = random_policies(chance)
        if chance.random() < 0.5:
            begins = FIRST + chance.randint(0, 3) * ONE_DAY
            policies = [{"effective_from": begins, "reason": "Try", "policies": policies}]
        before = everything(now)
        found = simulated(now, policies, tmp_path / "simulated")
        assert everything(now) == before, "something was written"
        assert [each.day for each in found.days] == [day for day in DAYS if now.sources.lines[day]]
        other.set_policies(policies)
        other.run()
        for each in found.days:
            assert each.billed == sum(one.total_cost for one in now.sources.lines[each.day])
            stored = other.store.facts.snapshot(CHARGEBACKS_TABLE).of_day(each.day)
            real = [Path(file.path).read_bytes() for file in stored]
            mine = [] if each.file is None else [Path(each.file.path).read_bytes()]
            assert mine == real, each.day


def test_a_day_without_evidence_is_left_out(tmp_path: Path) -> None:
    """A day with a lost bill, or not calculated from its present bill, is left out with the reason."""
    with Laboratory(tmp_path / "laboratory", days=4) as laboratory:
        laboratory.sources.lines = {day: [line("10", day=day)] for day in DAYS}
        laboratory.run()
        remove(Path(file_of(laboratory.store.facts, BILLING_TABLE, FIRST).path))
        found = simulated(laboratory, {}, tmp_path / "simulated")
        shutil.rmtree(tmp_path / "simulated")
        laboratory.sources.lines[DAY] = [line("11", day=DAY), line("1", day=DAY, resource="lkc-2")]
        laboratory.sources.fault = SourceUnavailable("HTTP 503", source="metrics")
        laboratory.configure(allocation_retry_limit=3)
        laboratory.run()
        later = simulated(laboratory, {}, tmp_path / "simulated")
    assert list(found.left_out) == [FIRST]
    assert "the bill of that day cannot be read" in found.left_out[FIRST]
    assert later.left_out[DAY] == "it is not calculated from its present bill"


def test_a_measure_that_was_never_gathered_is_named(tmp_path: Path) -> None:
    """A measure that was never gathered is reported, not taken as zero."""
    policies = {"KAFKA_NETWORK_WRITE": {"portions": [{"share": "1", "try": ["usage(requests)", "usage(bytes_in)"]}]}}
    with Laboratory(tmp_path / "laboratory") as laboratory:
        laboratory.sources.lines[DAY] = [line("10")]
        laboratory.run()
        found = simulated(laboratory, policies, tmp_path / "simulated")
    assert [sorted(each.unmeasured) for each in found.days] == [["requests"]]
