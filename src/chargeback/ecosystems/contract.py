"""What an ecosystem gives: settings, capabilities, policies, and four gather functions.

An ecosystem is found through the entry-point group ``chargeback.ecosystems`` (or, for files dropped on a server,
through ``plugins_path``). It never sees the store: it is asked, and answers with records or tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from threading import Event
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.settings import PluginSettings
from chargeback.model.billing import BillingLine
from chargeback.model.days import Clock, DayRange, utc_now
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.model.topics import TopicPlan


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an ecosystem can do; the core looks here and never at its name.

    Attributes:
        topic_overlay: it can attribute cost to topics.
        constructs_costs: its billing lines are made from rates and measurements, there is no billing API.
        payer_tiers: the identity types that pay when nobody was active on anything, tier by tier.
        metrics_identity_type: the identity type of somebody whom only the metrics know.
        billing_history_days: how far back the provider answers for costs.
    """

    topic_overlay: bool = False
    constructs_costs: bool = False
    payer_tiers: tuple[frozenset[str], ...] = ()
    metrics_identity_type: str = "principal"
    billing_history_days: int = 364


@dataclass(frozen=True, slots=True)
class TenantContext:
    """What a gatherer may know of the tenant it works for.

    ``stop`` is set when the work must end: every wait ends with it. ``state_dir`` is a folder of the host that
    processes share, for rate limits. ``today`` is the UTC day on which the run began. ``is_awaited`` tells that a
    person waits for the answer: nothing is tried twice. ``now`` tells the present, in UTC.
    """

    tenant_name: str
    tenant_id: str
    currency: str
    today: date
    stop: Event
    state_dir: str
    is_awaited: bool = False
    now: Clock = utc_now


@dataclass(frozen=True, slots=True)
class GatheredDay:
    """The bill of one UTC day: its lines, or why there are none to be trusted.

    A day with an ``error`` keeps what was stored for it before.
    """

    day: date
    lines: Sequence[BillingLine] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """What was measured over one UTC day.

    ``table`` has schema :data:`chargeback.model.usage.USAGE`; a series that exists and is all zero has a row of
    value zero, one that does not exist has none. ``dropped`` counts samples that were NaN, infinite or negative.
    """

    table: pa.Table
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the ``check --online`` report: what was tried, whether it worked, and what was seen.

    A ``warning`` works, but deserves a look: it is shown, and does not make the check fail.
    """

    subject: str
    ok: bool
    detail: str
    warning: bool = False


class Gatherer(Protocol):
    """An ecosystem at work for one tenant."""

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """Every day of the range exactly once, in any order; a day without cost has no lines.

        Raises:
            SourceError: the bill could not be had at all.
        """

    def inventory(self) -> ListedInventory:
        """Complete listings of resources, identities and grants. A type that cannot be listed is a failure in the
        answer, not an exception."""

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """Every measure of the tenant's policies over one UTC day, for all resources together.

        ``inventory`` is everything known, the deleted included. What is answered is kept as it is: a subject is an
        identity, or what an identity can be told from later, by :meth:`UsageResolver.resolve_usage`; usage of nobody
        is given to ``UNALLOCATED``. May be called from several threads at once.

        Raises:
            SourceUnavailable: the metrics source cannot be reached; the day is tried again later.
        """

    def topics(self, day: date) -> MeasuredUsage:
        """Topic measures over one UTC day (``subject`` is the topic), for all clusters together. Only asked where
        :meth:`TopicEcosystem.topic_plan` gives a plan; may be called from several threads at once.

        Raises:
            SourceError: the measures could not be had; the day is tried again later.
        """

    def check(self) -> Iterator[Finding]:
        """Try the credentials and addresses, one finding each. See :func:`chargeback.ecosystems.findings.attempt`."""


class Ecosystem(Protocol):
    """A plugin: what the entry point names."""

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
        """The policies as this tenant's settings change them."""

    def open(self, context: TenantContext, settings: Any) -> AbstractContextManager[Gatherer]:
        """Start work for one tenant; connections are closed at the end of the ``with``."""


@runtime_checkable
class UsageResolver(Protocol):
    """An ecosystem that measures things whose owners only the inventory tells, such as statements by name.

    The measurements are kept as they came, so that an owner who becomes known later gets what is theirs, also when the
    metrics source has forgotten the day.
    """

    def resolve_usage(self, day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
        """Kept usage of one UTC day with identities as subjects, in schema USAGE: the same for the same arguments.

        What belongs to nobody is ``UNALLOCATED``'s.
        """


@runtime_checkable
class TopicEcosystem(Ecosystem, Protocol):
    """An ecosystem whose :attr:`Capabilities.topic_overlay` is true."""

    def topic_settings(self, settings: PluginSettings) -> Any:
        """The settings of the overlay (with ``enabled``), or a text: why they cannot be used."""

    def topic_plan(self, settings: PluginSettings) -> TopicPlan | None:
        """What the overlay does for this tenant; none where it is switched off or its settings are wrong."""
