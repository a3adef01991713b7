"""Any bill in FOCUS: files that a provider exports, with usage from any metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.constructed.plugin import CAPABILITIES, ConstructedEcosystem
from chargeback.ecosystems.focus_files.gatherer import open_bill
from chargeback.ecosystems.focus_files.settings import FocusFilesSettings


def tenant_catalogue(settings: FocusFilesSettings) -> PolicyCatalogue:
    """Return the tenant's ``allocation_policies``: the product types of a bill are its provider's, so none has a policy
    before."""
    return PolicyCatalogue({}, {}).override(parse_policies(settings.allocation_policies, "allocation_policies"))


ecosystem: Final = ConstructedEcosystem(
    "focus",
    FocusFilesSettings,
    PolicyCatalogue({}, {}),
    policies_of=tenant_catalogue,
    start=open_bill,
    capabilities=replace(CAPABILITIES, constructs_costs=False, billing_history_days=731),
)

__all__ = ["FocusFilesSettings", "ecosystem"]
