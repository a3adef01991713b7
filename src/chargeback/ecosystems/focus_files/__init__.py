"""Any bill in FOCUS: files that a provider exports, with usage from any metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.plugin import CAPABILITIES, ConstructedEcosystem
from chargeback.ecosystems.focus_files.gatherer import open_bill, tenant_catalogue
from chargeback.ecosystems.focus_files.settings import FocusFilesSettings

ecosystem: Final = ConstructedEcosystem(
    "focus",
    FocusFilesSettings,
    PolicyCatalogue({}, {}),
    policies_of=tenant_catalogue,
    start=open_bill,
    capabilities=replace(CAPABILITIES, constructs_costs=False, billing_history_days=731, confirms_less=True),
)

__all__ = ["FocusFilesSettings", "ecosystem"]
