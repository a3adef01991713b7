"""A whole service for a generated organisation, as ``chargeback demo`` makes it, in this process.

Used by the tests of the contract and by the tool that writes ``docs/api.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from chargeback.api.app_factory import create_app_from
from chargeback.api.services import Authenticate
from chargeback.categories.parsing import parse_category
from chargeback.config import Configuration, load_configuration
from chargeback.config.journal import JournalProfile
from chargeback.demo.config import demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.budgets import Budget
from chargeback.model.days import Clock
from chargeback.model.inventory import Identity, Resource
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.engine import Engine
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.reports.categories.editing import save_categories
from chargeback.store.control.budgets import write_budget
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.notes import NoteWrite, create_note
from chargeback.store.tenant import open_store
from tests.support.clock import TODAY, DayClock
from tests.support.databases import open_migrated, scratch_database
from tests.support.receiver import SECRET, Receiver
from tests.support.serving import served

DAYS = 16
CUTOFF_DAYS = 5


@dataclass(frozen=True)
class Deployment:
    """A running service in mode ``both`` at ``address``, with its configuration, engine, present day and clock."""

    address: str
    configuration: Configuration
    engine: Engine
    today: date
    clock: Clock

    @contextmanager
    def served(self, *, mode: str, authenticate: Authenticate | None = None, **api: Any) -> Iterator[str]:
        """Serve the same tenants again, in another mode, for other callers, or with other settings of ``api``; yield
        the address."""
        other = replace(self.configuration, api=self.configuration.api.model_copy(update=api))
        app = create_app_from(other, mode, self.engine if mode == "both" else None, self.clock)
        if authenticate is not None:
            app.state.services = replace(app.state.services, authenticate=authenticate)
        with served(app) as address:
            yield address

    @contextmanager
    def journals_by(self, tenant: str, profile: JournalProfile) -> Iterator[str]:
        """Serve the same tenants again, with another journal profile for one of them; yield the address."""
        app = create_app_from(self.configuration, "api", None, self.clock)
        services = app.state.services
        tenants = {**services.tenants, tenant: replace(services.tenants[tenant], journal=profile)}
        app.state.services = replace(services, tenants=tenants)
        with served(app) as address:
            yield address

    def know(self, tenant: str, ids: Iterable[str]) -> None:
        """Add a resource and an identity with each of these ids to a tenant's inventory."""
        names = list(ids)
        with closing(open_store(self.configuration.tenants[tenant])) as store, store.control.write() as connection:
            ensure_known(
                connection,
                self.clock(),
                billed=[Resource(name, "made_for_tests") for name in names],
                charged=[Identity(name, "made_for_tests") for name in names],
            )

    def categorise(self, tenant: str, key: str, document: Any) -> None:
        """Give a tenant a cost category."""
        with closing(open_store(self.configuration.tenants[tenant])) as store, store.control.write() as connection:
            save_categories(connection, [parse_category(key, document)], who="test")

    def budget(self, tenant: str, budget_id: str) -> None:
        """Give a tenant a budget of all its costs."""
        budget = Budget(budget_id, "Everything", monthly=Decimal(1000))
        with closing(open_store(self.configuration.tenants[tenant])) as store, store.control.write() as connection:
            write_budget(connection, budget_id, budget, expected=None, who="test")

    def note(self, tenant: str, text: str) -> None:
        """Give a tenant a note on a day without costs."""
        with closing(open_store(self.configuration.tenants[tenant])) as store, store.control.write() as connection:
            create_note(connection, NoteWrite(date(2020, 1, 1), date(2020, 1, 1), text), "test")


@contextmanager
def deployed(
    folder: Path,
    tenants: tuple[str, ...] = ("acme", "scratch", "plain", "wrong"),
    *,
    kind: str = "sqlite",
    today: date = TODAY,
    lookbacks: Mapping[str, int] = MappingProxyType({"scratch": CUTOFF_DAYS + 2}),
    clock: Clock | None = None,
) -> Iterator[Deployment]:
    """Yield the service. Everything of ``acme`` is calculated; tenants in ``lookbacks`` have as many days as their
    lookback reaches beyond the cutoff; the others were never run.

    Its control databases are of one ``kind``. Without another ``clock``, its clock stays on ``today``.
    """
    organisation = Organisation.generate(DemoSpec(today=today, size="small", days=DAYS))
    with DemoServer(organisation) as provider, Receiver() as receiver, ExitStack() as databases:
        file = folder / "chargeback.yaml"
        base = yaml.safe_load(demo_configuration(provider.info, folder, shadow=True))
        hook = {"type": "webhook", "url": receiver.url, "secrets": [SECRET], "allow_private": True}
        base["tenants"]["acme"]["notifications"] = {"finance-desk": hook | {"kinds": ["period.closed"]}}
        base["tenants"]["acme"]["contracts"] = [_contract(today)]
        storage = {name: databases.enter_context(_storage(kind, folder / name)) for name in tenants}
        file.write_text(yaml.safe_dump(_with_tenants(base, storage, lookbacks)), encoding="utf-8")
        configuration = load_configuration(file)
        clock = clock or DayClock(today)
        engine = Engine(configuration, None, clock=clock)
        try:
            for tenant in configuration.tenants.values():
                open_migrated(tenant).close()
            # A resource that is billed but missing counts as deleted from the second run on.
            for names in ([name for name in tenants if name == "acme" or name in lookbacks], ["acme"]):
                results = engine.run_once(names, RunRequest())
                assert all(result.outcome is RunOutcome.COMPLETED for result in results), results
            with served(create_app_from(configuration, "both", engine, clock)) as address:
                yield Deployment(address, configuration, engine, today, clock)
        finally:
            engine.stop()


def _contract(today: date) -> dict[str, Any]:
    """Return a contract for the year, with a commitment for each month."""
    commitment = {"id": "all", "amount": "10000", "interval": "monthly", "counts": "before_credits"}
    days = {"start_date": date(today.year, 1, 1), "end_date": date(today.year, 12, 31)}
    return {"id": "provider", "issuer": "Confluent", **days, "commitments": [commitment]}


@contextmanager
def _storage(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """Return storage for one tenant."""
    folder.mkdir()
    with scratch_database(kind, folder) as address:
        yield {"connection_string": address, "facts_path": str(folder / "facts")}


def _with_tenants(
    base: dict[str, Any], storage: Mapping[str, dict[str, str]], lookbacks: Mapping[str, int]
) -> dict[str, Any]:
    """Return the configuration with these tenants; topics are disabled for ``plain`` and invalid for ``wrong``."""
    tenants = {}
    for name, place in storage.items():
        tenant = yaml.safe_load(yaml.safe_dump(base["tenants"]["acme"]))
        tenant["tenant_id"] = name
        tenant["storage"] = place
        # The last days are in January, for which GBP has no rate.
        tenant["currencies"] = {"EUR": {"2025-12": "0.8513", "2026-01": "0.85137"}, "GBP": {"2025-12": "0.74"}}
        if name != "acme":
            tenant["lookback_days"] = lookbacks.get(name, CUTOFF_DAYS + 2)
        if name == "plain":
            tenant["plugin_settings"]["topic_attribution"] = {"enabled": False}
        if name == "wrong":
            tenant["plugin_settings"]["topic_attribution"] = {"enabled": True, "missing_metrics_behavior": "guess"}
        tenants[name] = tenant
    return base | {"logging": {"level": "WARNING"}, "tenants": tenants}
