"""An ecosystem with constructed costs: one resource and its users, billed and measured day by day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.identities import PAYER_TIERS
from chargeback.ecosystems.constructed.settings import PRINCIPAL, ConstructedSettings
from chargeback.ecosystems.constructed.usage import measured_usage
from chargeback.ecosystems.contract import Capabilities, Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory

CAPABILITIES: Final = Capabilities(constructs_costs=True, payer_tiers=PAYER_TIERS, metrics_identity_type=PRINCIPAL)
_UNKNOWN_TO_FOCUS: Final = FocusProfile()
_Settings = TypeVar("_Settings", bound=ConstructedSettings)


@dataclass(frozen=True)
class ConstructedGatherer:
    """Implements :class:`chargeback.ecosystems.contract.Gatherer`; a context manager that closes its connections.

    The ecosystem supplies its own parts: the bill of some days, the usage of a day, the inventory, and the checks.
    """

    connections: ExitStack
    bill_of: Callable[[DayRange], Iterator[GatheredDay]]
    usage_of: Callable[[date], MeasuredUsage]
    listing: Callable[[], ListedInventory]
    checks: Callable[[], Iterator[Finding]]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.connections.close()

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield the bill of each day."""
        return self.bill_of(days)

    def inventory(self) -> ListedInventory:
        """Return the one resource, its parts, and its users."""
        return self.listing()

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """Return the usage of a day. It is measured by identity: the inventory is not needed."""
        return self.usage_of(day)

    def topics(self, day: date) -> MeasuredUsage:
        """Return an empty table: cost is not attributed to topics here."""
        return measured_usage(day, "", {})

    def check(self) -> Iterator[Finding]:
        """Yield one finding per query and source."""
        return self.checks()


@dataclass(frozen=True)
class ConstructedEcosystem(Generic[_Settings]):
    """Implements :class:`chargeback.ecosystems.contract.Ecosystem`.

    ``policies_of`` returns a tenant's policies from its settings, ``start`` starts work for it.
    """

    name: str
    settings_model: type[_Settings]
    catalogue: PolicyCatalogue
    policies_of: Callable[[_Settings], PolicyCatalogue]
    start: Callable[[TenantContext, _Settings], ConstructedGatherer]
    capabilities: Capabilities = CAPABILITIES
    focus_profile: FocusProfile = _UNKNOWN_TO_FOCUS

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """Return the policies from this tenant's settings."""
        return self.policies_of(self._typed_settings(settings))

    def open(self, context: TenantContext, settings: Any) -> ConstructedGatherer:
        """Start work for one tenant."""
        return self.start(context, self._typed_settings(settings))

    def _typed_settings(self, settings: Any) -> _Settings:
        if not isinstance(settings, self.settings_model):
            raise TypeError(f"these are not settings of {self.name}: {type(settings).__name__}")
        return settings
