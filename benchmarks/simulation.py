"""Policies simulated on thirty days, compared with the real calculation of these days."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.measure import Figure
from benchmarks.tenants import Generated, opened
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.allocation.policies import parse_policies
from chargeback.ecosystems.confluent_cloud.gatherer import CKUS, catalogue
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.recompute.rules import AllocationRules
from chargeback.recompute.simulate import Trial, simulate_days
from chargeback.reports.simulation import simulation_answer
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import Books
from chargeback.store.facts.places import Folder
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    USAGE_TABLE,
    prepare_day,
    read_day,
)
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from chargeback.store.tenant import TenantStore

_DAYS: Final = 30
#: The base fee of clusters is shared by all active identities.
_OWN: Final = parse_policies({CKUS: {"portions": [{"share": "1", "try": ["even(active)", "unallocated"]}]}}, "policies")
_RULES: Final = AllocationRules(catalogue(), catalogue())


def simulation(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    """Simulate the last days of a tenant, by identity; the reference calculates the same days from the same evidence by
    the current policies, and writes their files.

    Raises:
        RuntimeError: a day was left out.
    """
    name = f"simulate, {tenant.shape.name}"
    end = tenant.shape.last_day + ONE_DAY
    days = DayRange(end - _DAYS * ONE_DAY, end)
    with closing(opened(tenant, scratch / f"simulate-{tenant.shape.name}.db", tenant.facts)) as store:
        real = _calculated(store, days, scratch / f"calculated-{tenant.shape.name}")
        start = time.perf_counter()
        rows = _simulated(store, days, scratch / f"simulated-{tenant.shape.name}")
        taken = time.perf_counter() - start
    note = f"{rows:,} rows; the reference calculates these days and writes them"
    yield Figure(name, f"{_DAYS} days, by identity", taken, "s", reference=real, note=note)


def _calculated(store: TenantStore, days: DayRange, folder: Path) -> float:
    """Calculate and write the days; return the seconds."""
    start, place = time.perf_counter(), Folder(folder)
    with closing(DayCalculator(catalogue())) as calculator:
        for day in days:
            billing, usage, members = (
                read_day(store.facts, table, day) for table in (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE)
            )
            calculated = calculator.calculate(Evidence(day, billing, usage, members))
            prepare_day(place, CHARGEBACKS_TABLE, day, calculated.rows, store.owner)
    return time.perf_counter() - start


def _simulated(store: TenantStore, days: DayRange, folder: Path) -> int:
    """Simulate the days; return the number of their rows."""
    token, caches = CancellationToken(), LookupCaches()
    trial = Trial(_RULES.catalogue.override(_OWN), tuple(_OWN), days)
    view = TenantView(store.tenant_name, store.tenant_id, store.ecosystem, 200, store, rules=_RULES)
    with QueryEngine() as engine, open_reader(engine, store, token, caches) as reader:
        found = simulate_days(store, _RULES, trial, folder)
        if len(found.days) != _DAYS:
            raise RuntimeError(f"only {len(found.days)} of {_DAYS} days were simulated: {found.left_out}")
        simulation_answer(view, reader, Books(), trial, found, ["identity_id"])
    return sum(each.file.rows for each in found.days if each.file is not None)
