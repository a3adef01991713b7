"""The interface of an ecosystem: settings, capabilities, policies, and four gather functions.

Ecosystems are found in the entry-point group ``chargeback.ecosystems`` (or, as files on the server, in
``plugins_path``). They never access the store: the service calls them, and they return records or tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from threading import Event
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.billing import BillingLine
from chargeback.model.days import Clock, DayRange, utc_now
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.model.topics import TopicPlan


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an ecosystem can do; the core uses these values and never the ecosystem's name.

    Attributes:
        topic_overlay: whether it can attribute cost to topics.
        constructs_costs: whether its billing lines are calculated from rates and measurements, because there is no
            billing API.
        payer_tiers: the identity types that pay if no identity was active on any resource, tier by tier.
        metrics_identity_type: the type of identities that only the metrics name.
        billing_history_days: how many days of costs the provider keeps.
        confirms_less: whether a day's bill may have lines fewer than before by mistake, as when a file is replaced by a
            part of it: it is only accepted when several runs in a row find it.
    """

    topic_overlay: bool = False
    constructs_costs: bool = False
    payer_tiers: tuple[frozenset[str], ...] = ()
    metrics_identity_type: str = "principal"
    billing_history_days: int = 364
    confirms_less: bool = False


@dataclass(frozen=True, slots=True)
class TenantContext:
    """The settings of its tenant that a gatherer sees.

    ``stop`` is set when the work must end; every wait must end then. ``state_dir`` is a folder that processes of the
    host share, for rate limits. ``today`` is the UTC day on which the run began. If ``is_awaited``, a person waits for
    the result, so nothing is retried. ``now`` returns the present time, in UTC. If ``bill_only``, only the bill is
    read, as one more bill of a tenant with usage and policies of its own.
    """

    tenant_name: str
    tenant_id: str
    currency: str
    today: date
    stop: Event
    state_dir: str
    is_awaited: bool = False
    now: Clock = utc_now
    bill_only: bool = False


@dataclass(frozen=True, slots=True)
class GatheredDay:
    """The bill of one UTC day: its lines, or the error that makes them unknown.

    A day with an ``error`` keeps the bill that was stored before.
    """

    day: date
    lines: Sequence[BillingLine] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """The measurements of one UTC day.

    ``table`` has schema :data:`chargeback.model.usage.USAGE`; a series that exists with only zeros has a row of value
    zero, one that does not exist has no row. ``dropped`` counts samples that were NaN, infinite or negative.
    """

    table: pa.Table
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the ``check --online`` report: the check, whether it passed, and its result.

    A ``warning`` is shown, but does not make the check fail.
    """

    subject: str
    ok: bool
    detail: str
    warning: bool = False


class Gatherer(Protocol):
    """Gathers the data of one tenant."""

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield every day of the range exactly once, in any order; a day without cost has no lines.

        Raises:
            SourceError: no bill could be fetched.
        """

    def inventory(self) -> ListedInventory:
        """Return complete listings of resources, identities and grants. A type that cannot be listed is a failure in
        the result, not an exception."""

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """Return every measure of the tenant's policies over one UTC day, for all resources together.

        ``inventory`` has all known entities, including deleted ones. The result is stored unchanged: a subject is an
        identity, or a text that :meth:`UsageResolver.resolve_usage` can later map to an identity; usage without an
        owner has the subject ``UNALLOCATED``. May be called from several threads at once.

        Raises:
            SourceUnavailable: the metrics source cannot be reached; the day is tried again later.
        """

    def topics(self, day: date) -> MeasuredUsage:
        """Return topic measures over one UTC day (``subject`` is the topic), for all clusters together. Only called if
        :meth:`TopicEcosystem.topic_plan` returns a plan; may be called from several threads at once.

        Raises:
            SourceError: the measures could not be fetched; the day is tried again later.
        """

    def check(self) -> Iterator[Finding]:
        """Test the credentials and addresses; yield one finding each. See
        :func:`chargeback.ecosystems.findings.attempt`."""


class Ecosystem(Protocol):
    """A plugin: the object that the entry point names."""

    @property
    def name(self) -> str:
        """The value of ``ecosystem:`` in the configuration."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    @property
    def settings_model(self) -> type[PluginSettings]:
        """The model of ``plugin_settings``; unknown keys are errors."""

    @property
    def catalogue(self) -> PolicyCatalogue:
        """Its policies, before the tenant's own."""

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """Return the policies with the changes of this tenant's settings."""

    def open(self, context: TenantContext, settings: Any) -> AbstractContextManager[Gatherer]:
        """Start work for one tenant; connections are closed at the end of the ``with``."""


@runtime_checkable
class UsageResolver(Protocol):
    """An ecosystem that measures subjects whose owners are in the inventory, such as statements by name.

    The measurements are stored unchanged, so that usage can be assigned to an owner who becomes known later, even if
    the metrics source no longer has the day.
    """

    @property
    def named_measures(self) -> frozenset[str]:
        """The measures whose subjects are stored as such names. Usage that has none of them is not resolved."""

    def resolve_usage(self, day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
        """Return stored usage of one UTC day with identities as subjects, in schema USAGE: the same for the same
        arguments.

        Usage without an owner has the subject ``UNALLOCATED``.
        """


#: Returns the stored usage of a UTC day with identities as subjects; the inventory, which may be large, is read only if
#: the owners are looked up in it.
ResolveUsage = Callable[[date, pa.Table, Callable[[], Inventory]], pa.Table]


def usage_resolver(ecosystem: Ecosystem) -> ResolveUsage | None:
    """Return what finds the owners of stored usage; None if the ecosystem stores usage with its owners."""
    if not isinstance(ecosystem, UsageResolver) or not ecosystem.named_measures:
        return None
    resolver = ecosystem

    def _resolve(day: date, usage: pa.Table, inventory: Callable[[], Inventory]) -> pa.Table:
        # Made here, not once for all calls: pyarrow would import pandas, if it is there, at the start of each process.
        named = pa.array(sorted(resolver.named_measures), pa.string())
        has_names = pc.any(pc.is_in(usage["measure"], value_set=named)).as_py()
        return resolver.resolve_usage(day, usage, inventory()) if has_names else usage

    return _resolve


@runtime_checkable
class FocusEcosystem(Protocol):
    """An ecosystem that says how its bill is written in FOCUS; without, all products belong to the service ``Other``,
    and the tenant is the issuer."""

    @property
    def focus_profile(self) -> FocusProfile:
        """Its services, units and issuer."""


@runtime_checkable
class TopicEcosystem(Ecosystem, Protocol):
    """An ecosystem whose :attr:`Capabilities.topic_overlay` is true."""

    def topic_settings(self, settings: PluginSettings) -> Any:
        """Return the settings of the overlay (with ``enabled``).

        Raises:
            ConfigurationError: they cannot be used; the tenant works without the overlay.
        """

    def topic_plan(self, settings: PluginSettings) -> TopicPlan | None:
        """Return the overlay's plan for this tenant, or None if it is disabled or its settings are not valid."""
