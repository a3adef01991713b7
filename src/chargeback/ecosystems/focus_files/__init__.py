"""Any bill in FOCUS: files that a provider exports, with usage from any metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.plugin import CAPABILITIES, ConstructedEcosystem, ConstructedGatherer
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.focus_files.settings import FocusFilesSettings, tenant_catalogue


def _open(context: TenantContext, settings: FocusFilesSettings) -> ConstructedGatherer:
    from chargeback.ecosystems.focus_files.gatherer import open_bill  # what reads files takes its time to import

    return open_bill(context, settings)


ecosystem: Final = ConstructedEcosystem(
    "focus",
    FocusFilesSettings,
    PolicyCatalogue({}, {}),
    policies_of=tenant_catalogue,
    start=_open,
    capabilities=replace(CAPABILITIES, constructs_costs=False, billing_history_days=731, confirms_less=True),
)

__all__ = ["FocusFilesSettings", "ecosystem"]
