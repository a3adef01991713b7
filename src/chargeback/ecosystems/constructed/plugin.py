"""An ecosystem with constructed costs: one resource and its users, billed and measured day by day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.constructed.identities import PAYER_TIERS
from chargeback.ecosystems.constructed.meter import Shares
from chargeback.ecosystems.constructed.promql import foreign_ranges
from chargeback.ecosystems.constructed.settings import PRINCIPAL, ConstructedSettings
from chargeback.ecosystems.contract import Capabilities, Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.ecosystems.findings import CheckWarning
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.errors import SourceDataError
from chargeback.model.days import Clock, DayRange
from chargeback.model.inventory import UNALLOCATED, Inventory, ListedInventory
from chargeback.model.usage import measurements
from chargeback.sources.prometheus import PrometheusClient

CAPABILITIES: Final = Capabilities(constructs_costs=True, payer_tiers=PAYER_TIERS, metrics_identity_type=PRINCIPAL)
_UNKNOWN_TO_FOCUS: Final = FocusProfile()
_Settings = TypeVar("_Settings", bound=ConstructedSettings)


def measured_usage(day: date, resource_id: str, measures: Mapping[str, Shares]) -> MeasuredUsage:
    """Return shares by measure as the day's usage, in the order (measure, subject).

    Values without the label count for ``UNALLOCATED``, provided that other values have it: if none has the label, the
    metric does not name identities, and nothing was measured.
    """
    rows = measurements(
        (day, measure, resource_id, subject, value)
        for measure, shares in sorted(measures.items())
        for subject, value in sorted(_subjects(shares).items())
    )
    return MeasuredUsage(rows, sum(each.dropped for each in measures.values()))


def _subjects(shares: Shares) -> dict[str, Decimal]:
    if not any(shares.values.keys()):
        return {}
    subjects: dict[str, Decimal] = {}
    for name, value in shares.values.items():
        subject = name or UNALLOCATED
        subjects[subject] = subjects.get(subject, Decimal(0)) + value
    return subjects


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


def series_of(client: PrometheusClient, query: str, now: Clock) -> str | CheckWarning:
    """Report how many series a query has ``now``; if there are none, warn with those of the last day.

    Raises:
        SourceDataError: there were none during the last day.
    """
    if found := len(client.instant(query, now())):
        return f"{found} series now"
    # The query may end in a comment, which a line break ends.
    if found := len(client.instant(f"last_over_time((\n{query}\n)[1d:15m])", now())):
        return CheckWarning(f"no series now, but {found} within the last day: is a target no longer scraped?")
    raise SourceDataError("the query gives no series, neither now nor within the last day", source="metrics")


def range_warning(subject: str, query: str, step: timedelta) -> Finding | None:
    """Return a warning if a query that is summed over steps has a range of another length, else None."""
    foreign = foreign_ranges(query, step)
    if not foreign:
        return None
    seconds = step // timedelta(seconds=1)
    return Finding(
        subject,
        ok=True,
        detail=f"its range [{foreign[0]}] differs from metrics_step_seconds ({seconds}): the steps are added up, so"
        " something is counted twice or not at all; write [{step}]",
        warning=True,
    )
