"""One day of a tenant from its evidence: the bill, the measurements, who belonged to what, and the policies.

The pipeline stores the result. Use the same calculation to explain a row or to try other policies.
"""

from __future__ import annotations

from datetime import date

import pyarrow as pa

from chargeback.allocation.day import CalculatedDay, DayCalculator, Evidence
from chargeback.allocation.members import Membership
from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.contract import Ecosystem, usage_resolver
from chargeback.errors import StorageError
from chargeback.model.inventory import Inventory
from chargeback.store.control.days import DayState
from chargeback.store.facts.tables import BILLING_TABLE, FactTables, read_day


def billed_lines(facts: FactTables, state: DayState) -> pa.Table:
    """Return the bill of a day.

    Raises:
        StorageError: it is lost or incomplete.
    """
    billing = read_day(facts, BILLING_TABLE, state.tracking_date)
    if billing.num_rows != state.billing_lines:
        raise StorageError(f"{state.billing_lines} billing lines were stored, but {billing.num_rows} found")
    return billing


class DayRecomputer:
    """Calculates days of one tenant from evidence, one after the other. Writes nothing.

    ``catalogue`` has the policies: the tenant's own, or others to try. ``inventory`` has all known entities, including
    deleted ones. Only :meth:`resolve` may be called from several threads.
    """

    def __init__(
        self, facts: FactTables, ecosystem: Ecosystem, catalogue: PolicyCatalogue, inventory: Inventory
    ) -> None:
        self._facts = facts
        self._resolve = usage_resolver(ecosystem)
        self._inventory = inventory
        self._membership = Membership(inventory, ecosystem.capabilities.payer_tiers)
        self.catalogue = catalogue
        self.calculator = DayCalculator(catalogue)

    def close(self) -> None:
        """Release the engine's memory."""
        self.calculator.close()

    def resolve(self, day: date, usage: pa.Table) -> pa.Table:
        """Return stored usage with identities as its subjects where the inventory has the owners."""
        return usage if self._resolve is None else self._resolve(day, usage, lambda: self._inventory)

    def evidence(
        self, state: DayState, usage: pa.Table, members: pa.Table | None, *, metrics_available: bool
    ) -> Evidence:
        """Return a day's evidence: the stored bill, ``usage``, and ``members``, by default taken from the inventory.

        Raises:
            StorageError: the bill is lost.
        """
        day, billing = state.tracking_date, billed_lines(self._facts, state)
        owned = self.resolve(day, usage)
        if members is None:
            members = self._membership.members_on(day, owned, set(billing["resource_id"].to_pylist()))
        return Evidence(day, billing, owned, members, metrics_available)

    def calculate(self, evidence: Evidence) -> CalculatedDay:
        """Return the rows of a day: the same for the same evidence and policies.

        Raises:
            AllocationError: the amounts of the day do not fit 38 digits.
        """
        return self.calculator.calculate(evidence)
