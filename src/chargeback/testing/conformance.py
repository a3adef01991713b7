"""Calls all methods of an ecosystem as the service does, and runs a small pipeline with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
from pydantic import SecretStr, ValidationError

from chargeback.config.configuration import Tenant, TopicStatus
from chargeback.config.settings import StorageSettings, TenantSettings
from chargeback.config.storage import locate
from chargeback.ecosystems.contract import (
    Ecosystem,
    Finding,
    GatheredDay,
    Gatherer,
    MeasuredUsage,
    TenantContext,
    TopicEcosystem,
)
from chargeback.ecosystems.guarded import guarded
from chargeback.ecosystems.settings import PluginSettings
from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.errors import ChargebackError
from chargeback.model.billing import BillingLine, fingerprint
from chargeback.model.days import ONE_DAY, DayRange, start_of_day, utc_now
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.model.money import exact_sum
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_context import describe_days
from chargeback.pipeline.run_messages import RunOutcome, RunResult, StopSignal
from chargeback.recompute.verify import DayCheck, verify
from chargeback.settings import FOLDER
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, read_day
from chargeback.store.tenant import TenantStore, open_store

TENANT: Final = "conformance"


@dataclass
class Report:
    """The results of an ecosystem and of the pipeline.

    Attributes:
        findings: the result of ``check``.
        inventory: the result of ``inventory``.
        days: the bill of every requested day; a day with an ``error`` has no known bill.
        usage: the measurements, by day.
        result: the first run of the pipeline.
        checks: every day's bill against its chargebacks, after the last run.
        chargebacks: the rows of every calculated day, with the columns of
            :data:`chargeback.model.chargeback.CHARGEBACKS`.
        problems: the violations of the contract, as sentences.
    """

    findings: Sequence[Finding] = ()
    inventory: ListedInventory = field(default_factory=lambda: ListedInventory(Inventory(), frozenset()))
    days: Mapping[date, GatheredDay] = field(default_factory=dict)
    usage: dict[date, pa.Table] = field(default_factory=dict)
    result: RunResult | None = None
    checks: Sequence[DayCheck] = ()
    chargebacks: Mapping[date, pa.Table] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[BillingLine]:
        """Every billing line, the oldest day's first."""
        return [line for _, gathered in sorted(self.days.items()) for line in gathered.lines]

    @property
    def billed(self) -> Decimal:
        """The sum of all billing lines."""
        return exact_sum(line.total_cost for line in self.lines)

    def charged(self, day: date) -> dict[str, Decimal]:
        """Return the amount charged to each identity on a day."""
        amounts: dict[str, list[Decimal]] = {}
        for row in self.chargebacks[day].select(["identity_id", "amount"]).to_pylist():
            amounts.setdefault(row["identity_id"], []).append(row["amount"])
        return {identity: exact_sum(each) for identity, each in sorted(amounts.items())}


def check_ecosystem(
    ecosystem: Any,
    plugin_settings: Mapping[str, Any],
    *,
    lookback_days: int = 10,
    tenant_id: str = TENANT,
    currency: str = "USD",
    folder: Path | None = None,
    today: date | None = None,
) -> Report:
    """Check that an ecosystem keeps the contract, and return its results.

    ``ecosystem`` is the object that the entry point names, ``plugin_settings`` the value of that key in the
    configuration; relative paths in it start at ``folder``. Bills are requested for the days from ``lookback_days`` ago
    to the day before yesterday (UTC); ``today`` replaces the present day if given. An error that the plugin reports for
    a day is not a problem.

    Raises:
        AssertionError: the contract is broken; the message lists every problem that was found.
    """
    report = Report()
    try:
        checked = guarded(ecosystem)
    except InvalidValue as mistake:
        raise AssertionError(f"the plugin cannot be used: {mistake}") from None
    settings = _settings(checked, plugin_settings, folder or Path())
    present = utc_now() if today is None else start_of_day(today) + timedelta(hours=12)
    context = _Context(lookback_days, tenant_id, currency, folder or Path(), present)
    with TemporaryDirectory(prefix="chargeback-testing-") as scratch:
        _ContractChecks(report, checked, settings, context, Path(scratch)).ask()
        if not report.problems:
            _Pipeline(report, checked, settings, context, Path(scratch)).run()
    if report.problems:
        listed = "\n".join(f"  - {problem}" for problem in report.problems)
        raise AssertionError(f"the ecosystem {checked.name} breaks its contract:\n{listed}")
    return report


@dataclass(frozen=True)
class _Context:
    """The tenant of the check."""

    lookback_days: int
    tenant_id: str
    currency: str
    folder: Path
    present: datetime

    def now(self) -> datetime:
        """Return a fixed time: the check has one day, however long it takes."""
        return self.present

    @property
    def window(self) -> DayRange:
        """The requested days: those of a run whose ``cutoff_days`` is 1."""
        today = self.present.date()
        return DayRange(today - timedelta(days=self.lookback_days), today - ONE_DAY)


def _settings(ecosystem: Ecosystem, written: Mapping[str, Any], folder: Path) -> PluginSettings:
    try:
        return ecosystem.settings_model.model_validate(dict(written), context={FOLDER: folder.absolute()})
    except ValidationError as error:
        raise AssertionError(f"the plugin_settings are not valid: {error}") from None


@dataclass
class _ContractChecks:
    """Calls every method twice, and reports results that differ or break the contract."""

    report: Report
    ecosystem: Ecosystem
    settings: PluginSettings
    asked_by: _Context
    scratch: Path

    def ask(self) -> None:
        """Call all methods."""
        asked_by = self.asked_by
        stop = StopSignal()
        context = TenantContext(
            TENANT,
            asked_by.tenant_id,
            asked_by.currency,
            asked_by.present.date(),
            stop,
            str(self.scratch),
            is_awaited=True,
            now=asked_by.now,
        )
        self._attempt(lambda: self.ecosystem.tenant_catalogue(self.settings))
        with self._record_problems(), self.ecosystem.open(context, self.settings) as gatherer:
            self._check(gatherer)
            self._attempt(lambda: self._inventory(gatherer))
            self._attempt(lambda: self._bill(gatherer))
            inventory = self.report.inventory.inventory
            self._measure("usage", lambda day: gatherer.usage(day, inventory))
            if isinstance(self.ecosystem, TopicEcosystem) and self.ecosystem.topic_plan(self.settings) is not None:
                self._measure("topics", gatherer.topics)

    def _check(self, gatherer: Gatherer) -> None:
        self.report.findings = tuple(gatherer.check())
        self.report.problems += [
            f"check: {finding.subject} does not work: {finding.detail}"
            for finding in self.report.findings
            if not finding.ok
        ]

    def _inventory(self, gatherer: Gatherer) -> None:
        self.report.inventory = listed = gatherer.inventory()
        if missing := sorted(listed.required & listed.failures.keys()):
            self.report.problems.append(f"inventory: {missing[0]} could not be listed: {listed.failures[missing[0]]}")

    def _bill(self, gatherer: Gatherer) -> None:
        window = self.asked_by.window
        self.report.days = {gathered.day: gathered for gathered in gatherer.billing(window)}
        label = f"plugin {self.ecosystem.name}: "
        for day, gathered in sorted(self.report.days.items()):
            if gathered.error is not None and gathered.error.startswith(label):
                self.report.problems.append(f"{day}: {gathered.error}")
        complete = [day for day, gathered in self.report.days.items() if gathered.error is None]
        for day in complete[:1] + complete[-1:]:
            for alone in gatherer.billing(DayRange(day, day + ONE_DAY)):
                if fingerprint(alone.lines) != fingerprint(self.report.days[day].lines):
                    self.report.problems.append(f"billing: {day} has another bill if it is requested alone")

    def _measure(self, method: str, ask: Callable[[date], MeasuredUsage]) -> None:
        """Measure every day, several in parallel, as the pipeline does."""
        days = list(self.asked_by.window)
        with ThreadPoolExecutor(4, thread_name_prefix="conformance") as pool:
            first, again = ([pool.submit(ask, day) for day in days] for _ in range(2))
        for day, one, other in zip(days, first, again, strict=True):
            with self._record_problems():
                table = one.result().table
                if method == "usage":
                    self.report.usage[day] = table
                if _rows(table) != _rows(other.result().table):
                    self.report.problems.append(f"{method} of {day}: a second call returned another result")

    def _attempt(self, question: Callable[[], object]) -> None:
        with self._record_problems():
            question()

    @contextmanager
    def _record_problems(self) -> Iterator[None]:
        try:
            yield
        except ChargebackError as error:
            self.report.problems.append(str(error))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@dataclass
class _Pipeline:
    """Runs the pipeline twice: the first run calculates, the second has nothing left to do."""

    report: Report
    ecosystem: Ecosystem
    settings: PluginSettings
    asked_by: _Context
    scratch: Path

    def run(self) -> None:
        """Run the pipeline, and check what is stored."""
        tenant = self._tenant()
        store = open_store(tenant)
        try:
            store.control.upgrade()
            self.report.result = self._once(tenant, store)
            self._note(self.report.result)
            again = self._once(tenant, store)
            if again.dates_calculated:
                self.report.problems.append(
                    f"a second run calculated {again.dates_calculated} days again although nothing has changed"
                )
            self._verify(store)
        finally:
            store.close()

    def _tenant(self) -> Tenant:
        storage = StorageSettings(connection_string=SecretStr("sqlite:///control.db"))
        settings = TenantSettings(
            ecosystem=self.ecosystem.name,
            tenant_id=self.asked_by.tenant_id,
            currency=self.asked_by.currency,
            lookback_days=self.asked_by.lookback_days,
            cutoff_days=1,
            storage=storage,
        )
        location = locate(storage, self.scratch)
        has_topics = isinstance(self.ecosystem, TopicEcosystem) and self.ecosystem.topic_plan(self.settings) is not None
        status = TopicStatus.ENABLED if has_topics else TopicStatus.DISABLED
        return Tenant(TENANT, settings, location, self.ecosystem, self.settings, topic_status=status)

    def _once(self, tenant: Tenant, store: TenantStore) -> RunResult:
        lease = acquire(store.control, LeaseOwner.this_process())
        stop, clock = StopSignal(), self.asked_by.now
        return run_tenant(tenant, store, lease, RunRequest(), stop=stop, listener=lambda _: None, clock=clock)

    def _note(self, result: RunResult) -> None:
        days: dict[str, list[date]] = {}
        for day, gathered in sorted(self.report.days.items()):
            if gathered.error is not None:
                days.setdefault(gathered.error, []).append(day)
        declared = {describe_days(those, error) for error, those in days.items()}
        optional = tuple(f"{name} could not be listed" for name in self.report.inventory.failures)
        for error in result.errors:
            if error not in declared and not (optional and error.startswith(optional)):
                self.report.problems.append(f"the pipeline: {error}")
        if result.outcome not in {RunOutcome.COMPLETED, RunOutcome.COMPLETED_WITH_ERRORS}:
            self.report.problems.append(f"the pipeline: the run ended as {result.outcome}")

    def _verify(self, store: TenantStore) -> None:
        self.report.checks = tuple(verify(store))
        self.report.chargebacks = {
            check.day: read_day(store.facts, CHARGEBACKS_TABLE, check.day) for check in self.report.checks
        }
        complete = {day for day, gathered in self.report.days.items() if gathered.error is None}
        for check in self.report.checks:
            if check.difference or (check.day in complete and check.state != "calculated"):
                self.report.problems.append(
                    f"{check.day}: billed {check.billing}, charged {check.chargebacks} ({check.state})"
                )
