"""A tenant as seen by the front ends, and its storage opened for one use case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, NoReturn, Protocol, Self, cast

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.config import Tenant
from chargeback.config.closing import ClosingProfile
from chargeback.config.contracts import ContractSettings
from chargeback.config.journal import JournalProfile
from chargeback.config.notifications import SinkSettings
from chargeback.config.settings import FormatSettings
from chargeback.config.shadows import Shadow
from chargeback.ecosystems.focus import FocusProfile
from chargeback.emitters.prometheus import Exposition
from chargeback.errors import NothingGathered
from chargeback.model.anomalies import Criteria
from chargeback.model.currency import Rates
from chargeback.model.days import DayRange
from chargeback.model.run_request import RunRequest
from chargeback.recompute.rules import AllocationRules, RulesInForce, present_tenant
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.posted import PostedReader, open_posted
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.tenant import TenantStore, open_store


class PipelinePort(Protocol):
    """Something that can run pipelines."""

    def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object]) -> None:
        """Start a run; returns when it holds the tenant's lease. ``begin`` is called immediately before the start; if
        it raises, the run is not started.

        Raises:
            LeaseHeld: a run is in progress.
            EngineBusy: the maximum number of runs is in progress.
            TenantSuspended: the tenant is suspended; the message has the reason.
            PoliciesChanged: policies with dates are not those by which days were calculated.
            NoRunner: this process runs no pipelines.
            StorageError: the tenant's storage cannot be used.
        """


@dataclass(frozen=True)
class SimulationOrder:
    """The parameters of a simulation of some days; it uses the data ``as_of`` an instant, or the present data.

    Attributes:
        policies: the ``allocation_policies`` to simulate; None for those in force.
        isolate: the only product types whose policies are simulated; empty for all.
        categories: the documents of cost categories by their keys.
        tags: (entity type, entity id, key, value or None for no tag) on all days.
    """

    policies: Mapping[str, Any] | list[Any] | None
    days: DayRange
    by: tuple[str, ...]
    as_of: datetime | None = None
    isolate: tuple[str, ...] = ()
    categories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tags: tuple[tuple[str, str, str, str | None], ...] = ()


class SimulatorPort(Protocol):
    """Something that simulates the days of one tenant."""

    def check(self, order: SimulationOrder) -> PolicyCatalogue:
        """Check the policies of an order; return the complete catalogue.

        Raises:
            ConfigurationError: they are not valid.
        """

    def start(self, number: str, order: SimulationOrder, begin: Callable[[], object]) -> None:
        """Start the simulation that is kept under a number; return immediately. ``begin`` is called immediately before
        the start; if it raises, nothing is started.

        Raises:
            EngineBusy: the maximum number of simulations is waiting.
        """


@dataclass(frozen=True)
class TenantView:
    """One tenant as seen by the front ends. ``pipeline`` is None if this process runs none (mode ``api``),
    ``simulator`` if it runs no simulations; ``exposition`` has the metrics for Prometheus, if any; ``rules`` are those
    by which its days are calculated, and ``in_force`` has the present ones, if they may change. ``focus``, ``journal``
    and ``closing`` configure the bill in FOCUS, journals and closings; ``issuer`` issues its statements, in the format
    ``statement_format``. ``shadows`` are calculated in addition to its policies; ``sinks`` get its notifications;
    ``contracts`` are those with the provider; ``criteria`` are those of anomalies; ``currencies`` are the rates of
    currencies other than ``currency``."""

    tenant_name: str
    tenant_id: str
    ecosystem: str
    lookback_days: int
    store: TenantStore
    pipeline: PipelinePort | None = None
    simulator: SimulatorPort | None = None
    topic_attribution_status: str = "disabled"
    topic_attribution_error: str | None = None
    exposition: Exposition | None = None
    currency: str = "USD"
    currencies: Mapping[str, Rates] = field(default_factory=dict)
    rules: AllocationRules = field(default_factory=AllocationRules)
    in_force: RulesInForce | None = None
    focus: FocusProfile = field(default_factory=FocusProfile)
    journal: JournalProfile = field(default_factory=JournalProfile)
    closing: ClosingProfile = field(default_factory=ClosingProfile)
    issuer: str | None = None
    statement_format: FormatSettings = field(default_factory=FormatSettings)
    shadows: tuple[Shadow, ...] = ()
    sinks: Mapping[str, SinkSettings] = field(default_factory=dict, repr=False)
    contracts: tuple[ContractSettings, ...] = ()
    criteria: Criteria = field(default_factory=Criteria)

    @classmethod
    def of(
        cls,
        tenant: Tenant,
        store: TenantStore,
        rules: AllocationRules,
        *,
        pipeline: PipelinePort | None = None,
        simulator: SimulatorPort | None = None,
        exposition: Exposition | None = None,
        in_force: RulesInForce | None = None,
    ) -> Self:
        """Return a configured tenant, whose storage is open, and whose days are calculated by ``rules``."""
        settings = tenant.settings
        return cls(
            tenant_name=tenant.name,
            tenant_id=settings.tenant_id,
            ecosystem=settings.ecosystem,
            lookback_days=settings.lookback_days,
            store=store,
            pipeline=pipeline,
            simulator=simulator,
            topic_attribution_status=tenant.topic_status.value,
            topic_attribution_error=tenant.topic_error,
            exposition=exposition,
            currency=settings.currency,
            currencies=settings.rates,
            rules=rules,
            in_force=in_force,
            focus=tenant.focus,
            journal=tenant.journal,
            closing=tenant.closing,
            issuer=settings.statements.issuer,
            statement_format=settings.statements.format,
            shadows=tenant.shadows,
            sinks=settings.notifications,
            contracts=settings.contracts,
            criteria=settings.anomalies.criteria,
        )

    def ruled(self, revision: int) -> Self:
        """Return the tenant with the rules of a revision of its applied policies."""
        rules = self.rules if self.in_force is None else self.in_force.at(revision)
        return self if rules is self.rules else replace(self, rules=rules)

    @property
    def whole_store(self) -> TenantStore:
        """The storage with the facts. Callers that read it without a reader apply the scope themselves."""
        return self.store

    def fenced(self) -> TenantView:
        """Return the view for routes, which can use only the control database of its ``store``. Facts are read by
        readers, which have the caller's scope."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return _FencedView(**values | {"store": replace(self.store, facts=_FENCE)}, behind=self.store)


@dataclass(frozen=True)
class _FencedView(TenantView):
    behind: TenantStore = field(kw_only=True)

    @property
    def whole_store(self) -> TenantStore:
        return self.behind


class _Fence:
    """Replaces the fact tables, and raises at every access."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"facts are read through a reader, which knows the caller's scope, not by {name}")


_FENCE: Final = cast(FactTables, cast(Any, _Fence()))


@contextmanager
def open_tenant(
    tenant: Tenant, as_of: datetime | None = None
) -> Iterator[tuple[TenantView, TenantReader, PostedReader]]:
    """Open the storage of a tenant: its view, a reader, and a reader of posted costs, as of an instant (None: now).

    Raises:
        NothingGathered: there is none yet.
        StorageError: it cannot be used.
    """
    database = tenant.storage.database_file
    if database is not None and not database.exists():
        raise NothingGathered(f"tenant {tenant.name}: no data has been gathered yet")
    token, caches = CancellationToken(), LookupCaches()
    with closing(open_store(tenant)) as store, QueryEngine() as engine:
        present = present_tenant(tenant, store.control)
        in_force = RulesInForce(tenant, store.control, AllocationRules.of(tenant))
        view = TenantView.of(present, store, AllocationRules.of(present), in_force=in_force)
        with open_reader(engine, store, token, caches, as_of=as_of) as reader:
            yield view, reader, open_posted(reader, store, token, caches, as_of)
