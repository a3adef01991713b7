"""Days of a tenant by other policies: calculated from the evidence that is kept, and written nowhere but to a folder of
the caller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

from chargeback.allocation.columns import total_of
from chargeback.allocation.day import CalculatedDay, DayCalculator, Evidence
from chargeback.allocation.policies import Policy, PolicyCatalogue, parse_policies
from chargeback.categories.document import CostCategory
from chargeback.config import Tenant
from chargeback.config.configuration import POLICIES
from chargeback.errors import HistoryGone
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory
from chargeback.recompute.rules import AllocationRules
from chargeback.recompute.stored_day import LineNotFound, StoredDay
from chargeback.store.control.days import read_days
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.places import Folder
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, prepare_day
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS
from chargeback.store.tenant import TenantStore


@dataclass(frozen=True)
class SimulatedDay:
    """A day that was calculated.

    Attributes:
        revision: the revision whose evidence it is made of; None if it is not known.
        file: the file of its rows; None if it has none.
        billed: the cost of its lines.
        before: the policies by which its product types would be split now.
        after: those by which they were split here.
        unmeasured: the measures that these need, and that were never gathered for the day.
    """

    day: date
    revision: int | None
    file: DayFile | None
    billed: Decimal
    before: Mapping[str, Policy]
    after: Mapping[str, Policy]
    unmeasured: frozenset[str]


@dataclass(frozen=True)
class Trial:
    """Policies that are tried on some days: the whole ``candidate``, and the ``names`` of what the tenant itself would
    say; with what is known of the days, or was known ``as_of`` an instant. Costs are grouped with other ``categories``,
    by their keys, and other ``tags``, as a :class:`~chargeback.reports.tenant_view.SimulationOrder` has them."""

    candidate: PolicyCatalogue
    names: tuple[str, ...]
    days: DayRange
    as_of: datetime | None = None
    categories: Mapping[str, CostCategory] = field(default_factory=dict)
    tags: tuple[tuple[str, str, str, str | None], ...] = ()

    @classmethod
    def of(cls, tenant: Tenant, policies: object, days: DayRange, as_of: datetime | None = None) -> Self:
        """Return the trial of what the ``allocation_policies`` of a tenant would be.

        Raises:
            ConfigurationError: they are not valid; every mistake is at its place in them.
        """
        candidate = tenant.catalogue_of(policies)
        names = parse_policies(cast(Mapping[str, Any] | list[Any], policies), POLICIES).names
        return cls(candidate, tuple(names), days, as_of)


@dataclass
class Simulated:
    """What was calculated of a range of days; ``left_out`` has the reason for each billed day that was not."""

    days: list[SimulatedDay] = field(default_factory=list)
    left_out: dict[date, str] = field(default_factory=dict)


#: Called with the number of days that are done, and that of all.
Progress = Callable[[int, int], None]


def _quietly(_done: int, _all: int) -> None:
    """Report no progress."""


def simulate_days(
    store: TenantStore, rules: AllocationRules, trial: Trial, folder: Path, progress: Progress = _quietly
) -> Simulated:
    """Calculate the billed days of a trial; ``rules`` are the present ones. The rows have the bytes that a run would
    write; they are files below ``folder``.

    Raises:
        AllocationError: the amounts of a day do not fit 38 digits.
        StorageError: the tenant's storage cannot be read, or the folder not be written.
    """
    with store.control.read() as connection:
        states = [each for each in read_days(connection, trial.days) if each.billing_gathered]
    inventory = cache(store.inventory)
    found = Simulated()
    with closing(DayCalculator(trial.candidate)) as calculator:
        for number, state in enumerate(states):
            progress(number, len(states))
            day = state.tracking_date
            if trial.as_of is None and not state.chargebacks.is_current:
                found.left_out[day] = "it is not calculated from its present bill"
                continue
            again = calculate_again(store, rules, calculator, day, inventory, trial.as_of)
            if isinstance(again, str):
                found.left_out[day] = again
                continue
            revision = None if again.stored.revision is None else again.stored.revision.revision
            found.days.append(_simulated(store, rules, again.evidence, again.calculated, revision, Folder(folder)))
        progress(len(states), len(states))
    return found


@dataclass(frozen=True)
class CalculatedAgain:
    """A stored day, what it was calculated from, and what other policies make of that."""

    stored: StoredDay
    evidence: Evidence
    calculated: CalculatedDay


def calculate_again(
    store: TenantStore,
    rules: AllocationRules,
    calculator: DayCalculator,
    day: date,
    inventory: Callable[[], Inventory],
    as_of: datetime | None = None,
) -> CalculatedAgain | str:
    """Calculate a stored day from its evidence, by the policies of a calculator; return why that is not possible.

    Raises:
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the tenant's storage cannot be read.
    """
    try:
        stored = StoredDay(store, REVISED_CHARGEBACKS, day, as_of)
    except (LineNotFound, HistoryGone) as error:
        return str(error)
    evidence = _evidence(stored, day, rules, inventory)
    return evidence if isinstance(evidence, str) else CalculatedAgain(stored, evidence, calculator.calculate(evidence))


def _simulated(
    store: TenantStore,
    rules: AllocationRules,
    evidence: Evidence,
    calculated: CalculatedDay,
    revision: int | None,
    place: Folder,
) -> SimulatedDay:
    """Write the rows of a day; return what is known of it."""
    new = prepare_day(place, CHARGEBACKS_TABLE, evidence.day, calculated.rows, store.owner).file
    file = None
    if new is not None:
        path = f"{place.root}/{new.path}"
        file = DayFile(evidence.day, path, new.rows, new.size, place, new.schema_version)
    asked = frozenset(measure for policy in calculated.policies.values() for measure in policy.measures)
    return SimulatedDay(
        evidence.day,
        revision,
        file,
        total_of(evidence.billing["total_cost"]),
        rules.catalogue.on(evidence.day).policies_of(calculated.policies),
        calculated.policies,
        asked - rules.catalogue.measures - set(evidence.usage["measure"].unique().to_pylist()),
    )


def _evidence(
    stored: StoredDay, day: date, rules: AllocationRules, inventory: Callable[[], Inventory]
) -> Evidence | str:
    """Return what a day was calculated from, or why that is not known."""
    (billing, usage, members), missing = stored.evidence()
    if billing is None or usage is None or members is None:
        return missing or "a part of its evidence is lost"
    if rules.resolve is not None:
        usage = rules.resolve(day, usage, inventory)
    return Evidence(day, billing, usage, members, stored.had_metrics())
