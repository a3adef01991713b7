"""One run at work: the tenant, its storage, its lease, and the means to stop, to report and to collect errors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta

from chargeback.config import Tenant
from chargeback.errors import LeaseLost, Stopped
from chargeback.model.days import DayRange
from chargeback.pipeline.events import Account, Progress, RunRequest, Stage, StopSignal
from chargeback.sources.calls import CALLS, Calls
from chargeback.store.control.lease import Lease
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)


@dataclass
class Tally:
    """What a run has done so far."""

    dates_gathered: int = 0
    dates_pending: int = 0
    dates_calculated: int = 0
    chargeback_rows_written: int = 0
    lines: int = 0
    gathering_error: str | None = None
    errors: list[str] = field(default_factory=list)


class StageClock:
    """How long a run has been in each of its stages."""

    def __init__(self) -> None:
        self._spent: dict[Stage, float] = {}
        self._stage: Stage | None = None
        self._since = 0.0

    def enter(self, stage: Stage) -> None:
        """From now on the run is in this stage, which may be the one that it is in already."""
        self._spent = self.read()
        self._stage, self._since = stage, time.monotonic()

    def read(self) -> dict[Stage, float]:
        """Seconds by stage, the present one included."""
        if self._stage is None:
            return {}
        before = self._spent.get(self._stage, 0.0)
        return self._spent | {self._stage: before + time.monotonic() - self._since}


@dataclass
class Job:
    """Everything that the stages of one run share."""

    tenant: Tenant
    store: TenantStore
    lease: Lease
    request: RunRequest
    today: date
    stop: StopSignal
    listener: Callable[[Progress], None]
    tally: Tally = field(default_factory=Tally)
    clock: StageClock = field(default_factory=StageClock)
    calls_before: Calls = field(default_factory=CALLS.read)

    def check(self) -> None:
        """A safe place to end.

        Raises:
            Stopped: the run was asked to stop.
            LeaseLost: somebody else has taken over.
        """
        if self.lease.lost.is_set():
            raise LeaseLost("the lease was taken over", tenant=self.tenant.name)
        if self.stop.is_set():
            raise Stopped("the run was asked to stop", tenant=self.tenant.name)

    def enter(self, stage: Stage, day: date | None = None, done: int = 0, total: int = 0) -> None:
        """Tell the listener, and whoever reads the control database, where the run is."""
        self.clock.enter(stage)
        self.lease.show(stage, day)
        self.report(stage, day, done, total)

    def report(self, stage: Stage, day: date | None = None, done: int = 0, total: int = 0) -> None:
        """Tell the listener where the run is."""
        account = self.account()
        self.listener(Progress(self.tenant.name, stage, day, done, total, account.lines, account.rows, account))

    def account(self) -> Account:
        """What the run has done and needed so far."""
        tally = self.tally
        calls = {key: count - self.calls_before.get(key, 0) for key, count in CALLS.read().items()}
        return Account(
            tally.dates_gathered,
            tally.dates_calculated,
            tally.lines,
            tally.chargeback_rows_written,
            self.clock.read(),
            {key: count for key, count in calls.items() if count},
        )

    def trouble(self, error: str) -> None:
        """An error that the run survives."""
        log.warning("tenant %s: %s", self.tenant.name, error)
        self.tally.errors.append(error)

    @property
    def window(self) -> DayRange:
        """The UTC days that are gathered: ``[today − lookback_days, today − cutoff_days)``, as far as the provider's
        own memory and the tenant's retention go."""
        settings = self.tenant.settings
        history = self.tenant.ecosystem.capabilities.billing_history_days
        lookback = min(settings.lookback_days, settings.retention_days, history)
        end = self.today - timedelta(days=settings.cutoff_days)
        return DayRange(min(self.today - timedelta(days=lookback), end), end)

    def wants(self, day: date) -> bool:
        """Whether the request's range covers a day."""
        start, end = self.request.start, self.request.end
        return (start is None or day >= start) and (end is None or day <= end)
