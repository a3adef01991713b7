"""The context of a run: tenant, storage, lease, and the means to stop, report progress and collect errors."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import date, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.config import Tenant
from chargeback.config.compute import LOCAL, ComputeSettings
from chargeback.errors import ChargebackError, LeaseLost, Stopped
from chargeback.logs import LogCapture
from chargeback.model.days import Clock, DayRange, utc_now
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import Progress, RunCounts, RunStats, Stage, StopSignal, cancelled
from chargeback.sources.calls import CALLS, Calls
from chargeback.store.control import days as day_states
from chargeback.store.control import runs
from chargeback.store.control.lease import Lease
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)

#: A run without progress for this long hangs: its lease is no longer renewed, so that others can take over. No wait for
#: a provider, and no single step of a calculation, takes that long.
STALL_SECONDS = 1800
#: How often the progress within a stage is shown in the control database.
_SHOW_SECONDS: Final = 0.25


#: Among the types that could not be listed: no listing was fetched at all.
EVERYTHING: Final = "the inventory"


@dataclass
class RunRecord(RunCounts):
    """The counters and errors of a run. ``unlisted`` maps the types that could not be listed to the reason;
    ``days_of_errors`` has the days of each error that concerns days."""

    gathering_error: str | None = None
    unlisted: Mapping[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    days_of_errors: dict[str, list[date]] = field(default_factory=dict)

    def described_errors(self) -> list[str]:
        """Return each error once, in the order of its first occurrence, with the days it concerns."""
        return [
            describe_days(self.days_of_errors[each], each) if each in self.days_of_errors else each
            for each in self.errors
        ]


class StageClock:
    """How long a run has been in each of its stages."""

    def __init__(self) -> None:
        self._spent: dict[Stage, float] = {}
        self._stage: Stage | None = None
        self._since = 0.0

    def enter(self, stage: Stage) -> bool:
        """Set the current stage; return whether it is another one than before."""
        self._spent = self.read()
        is_new = stage is not self._stage
        self._stage, self._since = stage, time.monotonic()
        return is_new

    def read(self) -> dict[Stage, float]:
        """Return seconds by stage, including the current one."""
        if self._stage is None:
            return {}
        before = self._spent.get(self._stage, 0.0)
        return self._spent | {self._stage: before + time.monotonic() - self._since}


class ProgressWatch:
    """When a run last made progress: reached a safe point, started a stage, finished a day, or received a response."""

    def __init__(self) -> None:
        self._steps = 0
        self._seen: object = None
        self._seen_at = time.monotonic()

    def step(self) -> None:
        """Record progress."""
        self._steps += 1

    def is_recent(self, seconds: float) -> bool:
        """Return whether there was progress within the last ``seconds``."""
        now = (self._steps, sum(CALLS.read().values()))
        if now != self._seen:
            self._seen, self._seen_at = now, time.monotonic()
        return time.monotonic() - self._seen_at < seconds


@dataclass
class RunContext:
    """Everything that the stages of one run share.

    ``today`` is the UTC day on which the run started, even after midnight; ``now`` returns the current time; ``run_id``
    is the run's number once its start is recorded; ``compute`` sets where days are calculated.
    """

    tenant: Tenant
    store: TenantStore
    lease: Lease
    request: RunRequest
    today: date
    stop: StopSignal
    listener: Callable[[Progress], None]
    now: Clock = utc_now
    run_id: int | None = None
    compute: ComputeSettings = LOCAL
    record: RunRecord = field(default_factory=RunRecord)
    clock: StageClock = field(default_factory=StageClock)
    calls_before: Calls = field(default_factory=CALLS.read)
    progress: ProgressWatch = field(default_factory=ProgressWatch)
    log: LogCapture = field(init=False)

    def __post_init__(self) -> None:
        self.log = LogCapture(self.tenant.name)
        self._shown_at = 0.0

    def check(self) -> None:
        """Stop here if the run must end: a safe point.

        Raises:
            Stopped: the run was asked to stop.
            LeaseLost: another process has taken over.
        """
        self.progress.step()
        if self.lease.lost.is_set():
            raise LeaseLost("the lease was taken over", tenant=self.tenant.name)
        if self.stop.is_set():
            raise Stopped("the run was asked to stop", tenant=self.tenant.name)

    def enter(self, stage: Stage, day: date | None = None, done: int = 0, total: int = 0) -> None:
        """Report the stage to the listener and in the control database, which shows its days some times a second."""
        if self.clock.enter(stage):
            self.log.note(f"{stage.replace('_', ' ').capitalize()}{f' {total} days' if total else ''} begins.")
        if done in (0, total) or time.monotonic() >= self._shown_at + _SHOW_SECONDS:
            self.lease.show(stage, day, done, total)
            self._shown_at = time.monotonic()
        self.report(stage, day, done, total)

    def report(self, stage: Stage, day: date | None = None, done: int = 0, total: int = 0) -> None:
        """Report the progress to the listener."""
        self.progress.step()
        self.listener(Progress(self.tenant.name, stage, day, done, total, RunStats(**self.stats())))

    def stats(self) -> dict[str, Any]:
        """Return the counters, times and calls of the run so far, as the fields of :class:`RunStats`."""
        calls = {key: count - self.calls_before.get(key, 0) for key, count in CALLS.read().items()}
        return {
            **{counter.name: getattr(self.record, counter.name) for counter in fields(RunCounts)},
            "stage_seconds": self.clock.read(),
            "calls": {key: count for key, count in calls.items() if count},
        }

    def is_moving(self) -> bool:
        """Return whether the run made progress recently; a run that hangs gives up its lease."""
        return self.progress.is_recent(STALL_SECONDS)

    def attend(self, connection: Connection) -> None:
        """Store the new log lines, and end the run at its next safe point if it was cancelled; called with each
        heartbeat."""
        if self.run_id is None:
            return
        runs.add_log(connection, self.run_id, itertools.starmap(runs.RunLogLine, self.log.take()))
        if who := runs.cancelled_by(connection, self.run_id):
            self.stop.ask(cancelled(who))

    def record_error(self, error: str, day: date | None = None) -> None:
        """Record an error that does not end the run. The same error on several days is one error, logged once; the days
        after the first are logged at DEBUG."""
        if day is None:
            log.warning("tenant %s: %s", self.tenant.name, error)
            self.record.errors.append(error)
            return
        days = self.record.days_of_errors.setdefault(error, [])
        log.log(logging.DEBUG if days else logging.WARNING, "tenant %s: %s: %s", self.tenant.name, day, error)
        if not days:
            self.record.errors.append(error)
        days.append(day)

    @contextmanager
    def catch_day_errors(self, *days: date) -> Iterator[None]:
        """Record an unexpected error for each of these days, and continue with other days."""
        try:
            yield
        except ChargebackError:
            raise
        except Exception as error:
            log.exception("tenant %s: processing %s failed", self.tenant.name, ", ".join(map(str, days)))
            self.record_day_errors(f"internal error: {type(error).__name__}", *days)

    def record_day_errors(self, problem: str, *days: date, **changes: Any) -> None:
        """Record why some days cannot be processed, also in their states, with other ``changes``."""
        for day in days:
            self.record_error(problem, day)
        with self.lease.write() as connection:
            for day in days:
                day_states.save_day(connection, day, error=problem, **changes)

    @property
    def window(self) -> DayRange:
        """The UTC days that are gathered: ``[today − lookback_days, today − cutoff_days)``, limited by the provider's
        history and the tenant's retention."""
        settings = self.tenant.settings
        history = self.tenant.ecosystem.capabilities.billing_history_days
        lookback = min(settings.lookback_days, settings.retention_days, history)
        end = self.today - timedelta(days=settings.cutoff_days)
        return DayRange(min(self.today - timedelta(days=lookback), end), end)

    def covers(self, day: date) -> bool:
        """Return whether the request's range covers a day."""
        start, end = self.request.start, self.request.end
        return (start is None or day >= start) and (end is None or day <= end)

    def recalculates(self, day: date) -> bool:
        """Return whether the request recalculates a day."""
        return self.request.recalculate and self.covers(day)


def describe_days(days: Sequence[date], error: str) -> str:
    """Return an error with its days: the single day, or their number and range."""
    if len(days) == 1:
        return f"{days[0]}: {error}"
    return f"{len(days)} days ({min(days)} to {max(days)}): {error}"
